package activator

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// Drain closes the gate of a workload that was written to drain as that
// revision, even before the news of it, and counts at once what is in flight
// and held. Newer news opens it again. Where newer news is known already the
// gate stays as it is, and the answer says so. An unknown workload has nothing.
func (a *Activator) Drain(name string, revision uint64) workload.Drained {
	d := workload.Drained{Gateway: a.cfg.Gateway}
	if g := a.lookup(name); g != nil {
		g.drain(&d, revision, time.Now())
	}
	return d
}

func (g *Gate) drain(d *workload.Drained, revision uint64, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d.Open = !g.rules.Drain(revision)
	g.settle(now) // closes, before it counts
	d.InFlight, d.Queued = g.inFlight(), g.queue.counted
	if g.onTheWay() {
		d.InFlight++
	}
}

// inFlight counts what is in flight on every replica there is or was. Under
// the lock.
func (g *Gate) inFlight() int {
	n := 0
	for _, t := range g.tallies {
		n += t.inFlight()
	}
	return n
}

// inUse is the same without the requests that do not count as use.
func (g *Gate) inUse() int {
	n := 0
	for _, t := range g.tallies {
		n += t.used()
	}
	return n
}
