package activator

import (
	"sync/atomic"
	"time"
)

const (
	// tripAfter is how many requests in a row a replica has to fail before it
	// is passed over.
	tripAfter = 5
	// firstTrip is how long it then is; it doubles with each further failure,
	// up to maxTrip.
	firstTrip = time.Second
	maxTrip   = time.Minute
)

// A breaker keeps requests from a replica that fails them, for as long as
// there is another: the last one is never taken out. It knows what clients
// met alone, not the probes of the scaler, and begins anew with each start of
// a replica. The zero value is closed. Asking it takes no lock.
//
// An open one lets a single request through each time its pause is over. An
// answer to it closes the breaker; without one, the next request goes through
// after as long again.
type breaker struct {
	failures atomic.Int32 // in a row
	next     atomic.Int64 // clock reading at which one request may pass; 0: closed
}

// closed is for the warm path.
func (b *breaker) closed() bool { return b.next.Load() == 0 }

// admits reports whether a request may pass at now, a clock reading. Of many
// that ask an open one at once, one may.
func (b *breaker) admits(now int64) bool {
	next := b.next.Load()
	if next == 0 {
		return true
	}
	return now >= next && b.next.CompareAndSwap(next, now+int64(b.pause()))
}

// failed takes in that a request got no answer, or one that says that there
// was none.
func (b *breaker) failed(now int64) {
	if b.failures.Add(1) >= tripAfter {
		b.next.Store(now + int64(b.pause()))
	}
}

func (b *breaker) pause() time.Duration {
	more := max(0, b.failures.Load()-tripAfter)
	return min(firstTrip<<min(more, 10), maxTrip)
}

// served takes in an answer.
func (b *breaker) served() {
	if b.failures.Load() != 0 || b.next.Load() != 0 {
		b.failures.Store(0)
		b.next.Store(0)
	}
}
