package activator

import (
	"context"
	"time"
)

// onTheWayFor is how long a request that Await let go may take to reach the
// workload: it goes from a proxy beside this gateway, which does not see it.
const onTheWayFor = time.Second

// Await is Acquire for a request that takes another way to the workload than
// through this gateway, such as that of a proxy that asks first. It waits, is
// held and asks for the workload like any other, but gets no lease. Since
// nobody here sees how long that request goes on, the workload is kept awake
// for keep (of more than 0) from the end of the call on, be it an error;
// IdleTimeout does not count for it. That ends with what runs. At an open gate it takes no lock and
// allocates nothing.
func (g *Gate) Await(ctx context.Context, ask Ask, keep time.Duration) error {
	if s := g.snapshot.Load(); s.open {
		g.keep(keep)
		if g.snapshot.Load() == s { // else a drain may not have seen it
			return nil
		}
	}
	ask.keep = max(keep, 1)
	lease, err := g.enter(ctx, &ask)
	if err != nil {
		return err
	}
	g.keep(keep)
	lease.Release()
	return nil
}

// keep has the workload kept awake for d from now on. Both readings are good
// to a millisecond, as touch is.
func (g *Gate) keep(d time.Duration) {
	now, last := g.activator.clock.now(), g.admitted.Load()
	if last == 0 || now-last >= int64(time.Millisecond) {
		g.admitted.Store(now)
	}
	for until := now + int64(d); ; {
		kept := g.keptUntil.Load()
		if until-kept < int64(time.Millisecond) || g.keptUntil.CompareAndSwap(kept, until) {
			break
		}
	}
	g.stir()
}

// used says that a use of the gate ended now, one of Await's by its keep.
func (g *Gate) used(keep time.Duration) {
	if keep > 0 {
		g.keep(keep)
	} else {
		g.touch()
	}
}

// onTheWay reports whether a request that Await let go may be about to reach
// the workload.
func (g *Gate) onTheWay() bool {
	at := g.admitted.Load()
	return at != 0 && g.activator.clock.now()-at < int64(onTheWayFor)
}
