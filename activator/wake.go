package activator

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// outlive bounds how long an ask that nobody took goes on once nobody waits
// for it any more.
const outlive = time.Minute

// An asking is one cold start as this gateway asks for it: from the first
// request that meets a closed gate until the gate opens or the start fails.
// It belongs to no request, and outlives each of them.
type asking struct {
	wake workload.Wake // the ask as it was last sent

	// What was known when it began.
	generation uint64
	phase      workload.Phase
	unknown    bool

	due    time.Time // of the next ask
	taken  bool      // one was handed over
	failed bool      // the last was not
}

// ask has the workload asked for on behalf of one request, unless too many
// cold starts were. Under the lock.
func (g *Gate) ask(traceparent string, now time.Time) error {
	if a := g.asking; a != nil && g.queue.counted == 0 && now.Sub(a.wake.RequestedAt) > outlive {
		g.asking = nil // a leftover: nobody took it, or nothing came of it
	}
	if a := g.asking; a != nil && !now.Before(a.due) {
		a.taken = false // even for one who does not stay, it is time to repeat
	}
	if g.asking == nil {
		if wait := g.limited(now); wait > 0 {
			g.rejected[rejectedWakes].Add(1)
			return &LimitedError{wait}
		}
		g.startAsking(traceparent, now)
	}
	g.summon()
	return nil
}

// askAgain is ask for those who are held already, when the gate has closed
// before their turn: the bound on cold starts counts them, but does not turn
// them away. Under the lock.
func (g *Gate) askAgain(now time.Time) {
	if g.asking == nil && g.over == nil {
		g.limited(now)
		g.startAsking("", now)
		g.summon()
	}
}

// limited takes a cold start out of those allowed, or gives the time until the
// next may be. To join one that is under way, or to ask after replicas that
// refused, is no cold start. Under the lock.
func (g *Gate) limited(now time.Time) time.Duration {
	if g.limit == nil || g.refusal != nil || g.state.Phase == workload.Waking {
		return 0
	}
	r := g.limit.ReserveN(now, 1)
	wait := r.DelayFrom(now)
	if wait == 0 {
		return 0
	}
	r.CancelAt(now)
	return wait.Truncate(time.Millisecond) + time.Millisecond // never too early
}

func (g *Gate) startAsking(traceparent string, now time.Time) {
	g.asking = &asking{
		wake: workload.Wake{
			ID:          rand.Text(),
			Workload:    g.name,
			Trigger:     workload.TriggerRequest,
			Gateway:     g.activator.cfg.Gateway,
			Traceparent: traceparent,
			RequestedAt: now,
		},
		generation: g.state.Generation,
		phase:      g.state.Phase,
		unknown:    g.state.Revision == 0,
		due:        now,
	}
	if g.tending {
		poke(g.nudge) // it rests between two asks of the cold start before
	}
}

// summon makes sure that somebody tends the gate. Under the lock.
func (g *Gate) summon() {
	if !g.tending {
		g.tending = g.activator.asks.put(g)
	}
}

// tend asks for the workload at once and again and again, for as long as
// somebody waits and the gate is closed.
func (g *Gate) tend(ctx context.Context) {
	for {
		e, pause := g.next(time.Now())
		switch {
		case e != nil:
			g.asked(e, g.activator.waker.Wake(ctx, e.wake))
		case pause == 0 || !g.rest(ctx, pause):
			return
		}
	}
}

// An errand is one ask on its way.
type errand struct {
	wake    workload.Wake
	asking  *asking
	refusal *refusal // the one that it tells of
}

// next says what whoever tends the gate has to do: an errand now, or a pause
// before the next look; neither means that it is done.
func (g *Gate) next(now time.Time) (*errand, time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(now)
	a := g.asking
	if a == nil || !g.wanted(now) {
		g.tending = false
		return nil, 0
	}
	due := a.due
	if r := g.refusal; r != nil && r.asked && r.until.Before(due) {
		due = r.until
	}
	if now.Before(due) {
		return nil, due.Sub(now)
	}
	a.due = now.Add(g.jitter(g.activator.cfg.WakeRepeat))
	a.wake.PublishedAt = now
	a.wake.Generation = g.state.Generation
	a.wake.Unreachable = g.rules.Unreachable()
	return &errand{a.wake, a, g.refusal}, 0
}

// wanted reports whether there is still somebody to ask for: who waits, or,
// should all have left, the ask itself until it is handed over.
func (g *Gate) wanted(now time.Time) bool {
	a := g.asking
	tooOld := now.Sub(a.wake.RequestedAt) >= outlive
	return protocol.Asks(g.queue.counted > 0, a.taken || tooOld)
}

// asked takes in what came of an errand.
func (g *Gate) asked(e *errand, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.refusal != nil {
		e.refusal.asked = true
	}
	a := e.asking
	if err == nil {
		a.taken, a.failed = true, false
		return
	}
	if !a.failed {
		g.log().Warn("wake not handed over", "wake", a.wake.ID, "error", err)
	}
	a.failed = true
}

// rest pauses; false means that ctx has ended.
func (g *Gate) rest(ctx context.Context, pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-g.nudge:
	case <-timer.C:
	}
	return true
}

// coldStart is the record of the cold start that opens the gate now, nil when
// nothing was asked for or nothing had to be started. It is the scaler's where
// there is one, whoever asked first. Under the lock.
func (g *Gate) coldStart(now time.Time) *workload.Wake {
	if g.asking == nil || !g.asking.led(g.state) {
		return nil
	}
	w := g.asking.wake
	if g.state.Wake != nil {
		w = *g.state.Wake
	}
	w.OpenedAt = now
	return &w
}

// led reports whether what was asked for came of a start, rather than of a
// drain that was called off or a replica that was there all along.
func (a *asking) led(s workload.State) bool {
	switch {
	case s.Wake != nil && s.Wake.ID == a.wake.ID:
		return true
	case a.unknown: // it may have been ready for long
		return s.Wake != nil && !s.Wake.ReadyAt.Before(a.wake.RequestedAt)
	case s.Generation > a.generation:
		return true
	}
	return a.phase != workload.Ready && a.phase != workload.Draining
}

// jitter is d give or take a fifth: many gateways must not ask in step.
func (g *Gate) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*g.activator.cfg.Rand(g.name)))
}
