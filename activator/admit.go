package activator

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// defaultHold is for a workload that says nothing: below the read timeouts of
// the usual proxies in front.
const defaultHold = 50 * time.Second

// enter is the way of a request that cannot pass at once. What is held stands
// on this frame and those below it: kept small, a server's goroutine makes do
// with a stack of 4 KiB instead of 8.
func (g *Gate) enter(ctx context.Context, ask *Ask) (Lease, error) {
	w, lease, err := g.admit(ask, time.Now())
	if w == nil {
		return lease, err
	}
	if !w.noWake {
		g.stir()
	}
	g.wait(ctx, w, ask.Hold)
	if w.err != nil {
		return Lease{}, w.err
	}
	l := g.lease(w.target, w.quiet())
	l.held = w
	return l, nil
}

// admit looks again, under the lock, and then gives the request a place in the
// queue, or a lease, or the reason why neither.
func (g *Gate) admit(ask *Ask, now time.Time) (*waiter, Lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if ask.Refused != "" {
		g.refuse(ask.Refused, now)
	}
	g.settle(now)
	if g.passing && g.opening == nil {
		t := g.choose(g.targets, ask.Prefer)
		t.enter(weightOf(ask.quiet()))
		return nil, g.lease(t, ask.quiet()), nil
	}
	if err := g.admissible(ask, now); err != nil {
		return nil, Lease{}, err
	}
	if ask.NoHold {
		g.used(ask.keep)
		return nil, Lease{}, ErrHoldTimeout
	}
	w := &waiter{
		done:   make(chan struct{}),
		charge: ask.charge(),
		queued: now,
		epoch:  g.epoch,
		noWake: ask.NoWake,
		keep:   ask.keep,
		prefer: ask.Prefer,
	}
	g.queue.push(w, ask.Refused != "")
	return w, Lease{}, nil
}

// admissible refuses what must not be held, and asks for the workload on
// behalf of what may. Under the lock.
func (g *Gate) admissible(ask *Ask, now time.Time) error {
	if g.over != nil {
		return g.over
	}
	if ask.NoWake && !g.passing {
		return ErrAsleep
	}
	if g.state.Phase == workload.Failed && now.Before(g.state.RetryAt) {
		g.rejected[rejectedFailed].Add(1)
		return &FailedError{g.state}
	}
	charge := ask.charge()
	if err := g.reserve(charge); err != nil {
		return err
	}
	if g.passing {
		return nil
	}
	err := g.ask(ask.Traceparent, now)
	if err != nil {
		g.activator.heldCost.Add(-charge)
	}
	return err
}

// reserve checks the bounds of what is held. The one over all gates is taken
// at once, because no lock guards it. Under the lock.
func (g *Gate) reserve(charge int64) error {
	if charge == 0 {
		return nil
	}
	cfg, limit := &g.activator.cfg, g.spec.QueueRequests
	if limit <= 0 {
		limit = g.activator.cfg.QueueRequests
	}
	switch {
	case g.queue.requests >= limit:
		g.rejected[rejectedRequests].Add(1)
		return &FullError{BoundRequests}
	case g.queue.bytes+charge > cfg.QueueBytes:
		g.rejected[rejectedBytes].Add(1)
		return &FullError{BoundBytes}
	case g.activator.heldCost.Add(charge) > cfg.TotalQueueBytes:
		g.activator.heldCost.Add(-charge)
		g.rejected[rejectedTotal].Add(1)
		return &FullError{BoundTotal}
	}
	return nil
}

// wait is the wait itself: its end is whichever comes first to the lock.
func (g *Gate) wait(ctx context.Context, w *waiter, hold time.Duration) {
	// A function costs a held request half of what a timer's channel does.
	timer := time.AfterFunc(g.holdFor(hold), func() { g.leave(w, ErrHoldTimeout) })
	g.block(ctx, w)
	timer.Stop()
}

func (g *Gate) block(ctx context.Context, w *waiter) {
	select {
	case <-w.done:
	case <-ctx.Done():
		g.cancel(ctx, w)
	}
}

func (g *Gate) cancel(ctx context.Context, w *waiter) {
	g.leave(w, fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx)))
}

func (g *Gate) holdFor(hold time.Duration) time.Duration {
	if hold > 0 {
		return hold
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.spec.HoldTimeout > 0 {
		return g.spec.HoldTimeout
	}
	return defaultHold
}

// leave ends w with err, unless it has ended already: then that end holds,
// even a lease that nobody is there to use and that the caller gives back.
func (g *Gate) leave(w *waiter, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.ended {
		return
	}
	g.endUnserved(w, err, time.Now())
	g.letGo(time.Now())
}

// endUnserved ends w without a lease: it was a use of the workload all the
// same. Under the lock.
func (g *Gate) endUnserved(w *waiter, err error, now time.Time) {
	if !w.noWake {
		g.used(w.keep)
	}
	g.end(w, err, now)
}

// endAll ends all who wait and match. Under the lock.
func (g *Gate) endAll(err error, now time.Time, match func(*waiter) bool) {
	for w := g.queue.first; w != nil; {
		next := w.next
		if match(w) {
			g.endUnserved(w, err, now)
		}
		w = next
	}
}

func anyone(*waiter) bool { return true }
