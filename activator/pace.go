package activator

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// firstWindow is how many requests a fresh replica gets at first.
	firstWindow = 4
	// paceEscape is how long no answer may come before the window grows all
	// the same: those in it may be long polls, whose answer is hours away.
	paceEscape = 50 * time.Millisecond
	// maxWindow keeps doubling from overflowing; no queue is as long.
	maxWindow = 1 << 30
)

// A pacer bounds the requests that have been let go and not answered yet.
type pacer struct {
	window, unanswered int
	fixed              bool // the window does not grow
	answers            bool // since the last escape
}

func newPacer(concurrency, first int) pacer {
	if concurrency > 0 {
		return pacer{window: concurrency, fixed: true}
	}
	return pacer{window: first}
}

func (p *pacer) allows() bool { return p.unanswered < p.window }

func (p *pacer) released() { p.unanswered++ }

// answered makes room for the next, and for one more: the window doubles with
// each round of answers.
func (p *pacer) answered() {
	p.unanswered--
	p.answers = true
	p.grow(1)
}

// escape is called every paceEscape: without an answer since, the window
// doubles.
func (p *pacer) escape() {
	if !p.answers {
		p.grow(p.window)
	}
	p.answers = false
}

func (p *pacer) grow(n int) {
	if !p.fixed {
		p.window = min(p.window+n, maxWindow)
	}
}

// An opening is one time that a gate opened to requests that it held. It is
// guarded by the gate's lock, but for what never changes.
type opening struct {
	at    time.Time      // never changes
	wake  *workload.Wake // never changes; nil: nothing had to be started
	epoch uint64         // never changes

	pace  pacer
	left  int         // requests held when it opened that still are
	timer *time.Timer // calls escape; nil where the window is fixed
}

func (o *opening) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// startRelease makes the opening for those who are held. Under the lock.
func (g *Gate) startRelease(now time.Time, wake *workload.Wake) {
	g.epoch++
	o := &opening{at: now, wake: wake, epoch: g.epoch, pace: g.freshPace(), left: g.queue.requests}
	g.opening = o
	if !o.pace.fixed {
		o.timer = time.AfterFunc(paceEscape, func() { g.escape(o) })
	}
}

// freshPace is where a release begins: a few for each replica, or a single
// one when the only news of the replicas is that they refused the last.
func (g *Gate) freshPace() pacer {
	first := firstWindow * max(1, len(g.targets))
	if g.trial {
		first = 1
	}
	return newPacer(g.activator.cfg.ReleaseConcurrency, first)
}

// letGo hands over as many as the pace allows; with the last of them the gate
// is open to all. Under the lock.
func (g *Gate) letGo(now time.Time) {
	o := g.opening
	if o == nil {
		return
	}
	for g.queue.first != nil && o.pace.allows() {
		g.handOver(g.queue.first, now)
	}
	if g.queue.first == nil {
		o.stop()
		g.opening = nil
		g.publish()
	}
}

// handOver turns a waiter into a request in flight: one step under the lock,
// so it is at any moment counted as one or the other.
func (g *Gate) handOver(w *waiter, now time.Time) {
	w.target = g.choose(g.targets, w.prefer)
	w.target.enter(weightOf(w.quiet()))
	w.opening, w.released = g.opening, now
	g.opening.pace.released()
	g.end(w, nil, now)
}

// end gives w's place back and tells it so. Under the lock, once for each.
func (g *Gate) end(w *waiter, err error, now time.Time) {
	g.queue.remove(w)
	g.activator.heldCost.Add(-w.charge)
	w.err, w.ended = err, true
	close(w.done)
	if o := g.opening; o != nil && w.epoch < o.epoch {
		if o.left--; o.left == 0 {
			g.record(o.wake, now)
		}
	}
}

// record reports a cold start; nil is none.
func (g *Gate) record(wake *workload.Wake, now time.Time) {
	if wake == nil {
		return
	}
	done := *wake
	done.ReleasedAt = now
	if !g.activator.records.put(done) {
		g.log().Warn("cold start not reported", "wake", done.ID)
	}
}

// escape runs on o's timer while o goes on.
func (g *Gate) escape(o *opening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening != o {
		return
	}
	o.pace.escape()
	g.letGo(time.Now())
	if g.opening == o {
		o.timer.Reset(paceEscape)
	}
}

// answered lets the next go after an answer to a request let go by o.
func (g *Gate) answered(o *opening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening != o {
		return
	}
	o.pace.answered()
	g.letGo(time.Now())
}
