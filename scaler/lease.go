package scaler

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// mine reports whether this scaler holds the lease.
func (l *life) mine() bool { return l.st.Owner == l.s.cfg.Owner }

// lease says whose the state's lease is. One that was let go of is nobody's,
// also where a former life of this scaler did. Another's is held until it was not
// heard of for as long as a lease lasts. Clocks differ and are set: only the
// time since this scaler saw the last renewal counts, and only that.
func (l *life) lease(now time.Time) protocol.Lease {
	switch {
	case l.st.Owner == "":
		return protocol.LeaseNone
	case l.st.LeaseUntil.IsZero():
		return protocol.LeaseLapsed
	case l.mine():
		return protocol.LeaseMine
	case now.Before(l.seenAt.Add(l.s.cfg.Lease)):
		return protocol.LeaseHeld
	}
	return protocol.LeaseLapsed
}

// leaveAlone waits for another's lease to run out, and reads the state often
// enough to see each renewal.
func (l *life) leaveAlone() {
	l.stale = true
	l.lookAt(l.seenAt.Add(l.s.cfg.Lease))
	l.lookAt(time.Now().Add(l.s.cfg.Lease / 3))
}

// takeOver makes an ended lease of another scaler this one's; phase and
// generation stay.
func (l *life) takeOver(ctx context.Context) {
	from := l.st.Owner
	if l.write(ctx, protocol.TakeOver, nil) {
		l.log.Warn("lease taken over", "phase", l.st.Phase, "from", from)
	}
}

// renew writes the lease anew, and with it what a wake waits for by now.
func (l *life) renew(ctx context.Context) {
	l.write(ctx, protocol.Renew, func(st *workload.State) {
		if l.waking != nil {
			l.waking.tell(st)
		}
	})
}

// renewal reports whether it is time to renew the lease: each third of it.
func (l *life) renewal(now time.Time) bool {
	due := l.seenAt.Add(l.s.cfg.Lease / 3)
	if !l.mine() {
		return false
	}
	if now.Before(due) {
		l.lookAt(due)
		return false
	}
	return true
}

// leave hands over what this scaler held the lease of.
func (l *life) leave(ctx context.Context) {
	if !l.read {
		return
	}
	l.outdate()
	now := time.Now()
	f := protocol.Facts{Lease: l.lease(now), Task: l.task, Drain: l.drain.facts(now)}
	if m := protocol.Leave(f); m != protocol.Wait {
		l.write(ctx, m, nil)
	}
}
