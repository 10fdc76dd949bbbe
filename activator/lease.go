package activator

import (
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Lease is the right to send one request to one replica. The zero value is
// no lease, and its methods do nothing. It must not be copied once it is used:
// Release is idempotent for one variable, not for two. Its methods are safe
// for concurrent use.
type Lease struct {
	gate   *Gate
	target *target
	held   *waiter // nil when it passed at once
	weight uint64
	begun  int64 // clock reading; of StrategyFastest alone
	stage  uint32
	failed uint32 // 1: the replica failed the request
}

// The stages of a lease.
const (
	stageSent uint32 = iota
	stageAnswered
	stageReleased
)

// Times are the moments of a wait: it came, the gate opened, its turn came.
type Times struct{ Queued, Opened, Released time.Time }

// Replica is where to send the request; the zero Replica for no lease.
func (l *Lease) Replica() workload.Replica {
	if l.target == nil {
		return workload.Replica{}
	}
	return l.target.Replica
}

// Key names the replica for Ask.Prefer, in a form that is fit for a cookie;
// empty for no lease.
func (l *Lease) Key() string {
	if l.target == nil {
		return ""
	}
	return l.target.key
}

// Cold reports that the request was held, however shortly.
func (l *Lease) Cold() bool { return l.held != nil }

// Held is how long; 0 for a request that passed at once.
func (l *Lease) Held() time.Duration {
	if l.held == nil {
		return 0
	}
	return l.held.released.Sub(l.held.queued)
}

// Times gives the moments of the wait; zero for a request that passed at
// once. A request that came while those before it were still being let go has
// its Queued after Opened.
func (l *Lease) Times() Times {
	if l.held == nil {
		return Times{}
	}
	return Times{l.held.queued, l.held.opening.at, l.held.released}
}

// Wake is the record of the cold start that the request was held for, with
// OpenedAt set; it must not be changed. It is nil for one that passed at
// once, and for one that was held without anything having to be started: a
// drain was called off, or a replica that refused answers again.
func (l *Lease) Wake() *workload.Wake {
	if l.held == nil {
		return nil
	}
	return l.held.opening.wake
}

// Failed says that the replica did not do its part: it broke off before an
// answer, or what it answered is that it had none (502, 504). To be busy (429,
// 503) or refuse a connection is no failure, nor is what the client did. It
// comes before Answered, if that comes at all. Only the first call counts.
func (l *Lease) Failed() {
	if l.gate != nil && atomic.CompareAndSwapUint32(&l.failed, 0, 1) {
		l.target.breaker.failed(l.gate.activator.clock.now())
	}
}

// Answered says that the first byte of the answer has come: the next of those
// held may go, and the replica is proved to be there. Only the first call
// counts.
func (l *Lease) Answered() {
	if l.gate == nil || !atomic.CompareAndSwapUint32(&l.stage, stageSent, stageAnswered) {
		return
	}
	l.target.cleared()
	if atomic.LoadUint32(&l.failed) == 0 {
		l.target.breaker.served()
	}
	if l.begun != 0 {
		l.target.measure(l.begun, l.gate.activator.clock.now())
	}
	if l.held != nil {
		l.gate.answered(l.held.opening)
	}
}

// Release gives the lease back. It implies that the next of those held may
// go, but proves nothing about the replica. Only the first call counts.
func (l *Lease) Release() {
	if l.gate == nil {
		return
	}
	stage := atomic.SwapUint32(&l.stage, stageReleased)
	if stage == stageReleased {
		return
	}
	if l.weight == weightUse {
		l.gate.touch() // before it leaves: nobody may see it gone and unused for long
	}
	l.target.leave(l.weight)
	if stage == stageSent && l.held != nil {
		l.gate.answered(l.held.opening)
	}
}
