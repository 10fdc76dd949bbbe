package activator

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// staleLatency is how long an average is believed without a new answer.
	staleLatency = 10 * time.Second
	// latencyShare is the share of one answer in the average: an eighth.
	latencyShare = 8
)

// choose picks one of targets, which must not be empty: the preferred one if
// it may be used, else by the workload's strategy. Whichever that is, a replica
// that refused a connection within the last second, or whose breaker is open,
// is passed over while there is another.
func (g *Gate) choose(targets []target, preferred string) *target {
	if len(targets) == 1 {
		return &targets[0]
	}
	if preferred != "" {
		if t := g.preferred(targets, preferred); t != nil {
			return t
		}
	}
	return g.byStrategy(targets)
}

// preferred gives the target of that key if it may be used, else nil.
func (g *Gate) preferred(targets []target, key string) *target {
	for i := range targets {
		t := &targets[i]
		if t.key == key && !t.suspected(g.activator.clock) && t.breaker.closed() {
			return t
		}
	}
	return nil
}

func (g *Gate) byStrategy(targets []target) *target {
	var t *target
	switch *g.strategy.Load() {
	case workload.StrategyRoundRobin:
		t = &targets[(g.turn.Add(1)-1)%uint32(len(targets))]
	case workload.StrategyFastest:
		a, b := twoOf(targets)
		t = faster(a, b, g.activator.clock.now())
	default:
		t = lessLoaded(twoOf(targets))
	}
	if t.suspect.Load() == 0 && t.breaker.closed() {
		return t
	}
	return g.replace(targets, t)
}

// replace gives another replica in the place of t, should t have refused of
// late or its breaker be open: the least loaded one that may be used; if there
// is none, the least loaded that did not refuse, whatever its breaker says.
func (g *Gate) replace(targets []target, t *target) *target {
	c := g.activator.clock
	now := c.now()
	if !t.suspected(c) && t.breaker.admits(now) {
		return t
	}
	var usable, there *target
	for i := range targets {
		switch u := &targets[i]; {
		case u.suspected(c):
		case u.breaker.closed():
			usable = lighter(usable, u)
		default:
			there = lighter(there, u)
		}
	}
	switch {
	case usable != nil:
		return usable
	case there != nil:
		return there
	}
	return t
}

// lighter is the one with less in flight; a may be nil.
func lighter(a, b *target) *target {
	if a == nil {
		return b
	}
	return lessLoaded(a, b)
}

// twoOf gives two different targets by chance.
func twoOf(targets []target) (*target, *target) {
	r, n := rand.Uint64(), uint32(len(targets))
	i := uint32(r) % n
	j := (i + 1 + uint32(r>>32)%(n-1)) % n
	return &targets[i], &targets[j]
}

func lessLoaded(a, b *target) *target {
	if b.inFlight() < a.inFlight() {
		return b
	}
	return a
}

func faster(a, b *target, now int64) *target {
	pa, pb := a.promise(now), b.promise(now)
	switch {
	case pa < pb:
		return a
	case pb < pa:
		return b
	}
	return lessLoaded(a, b)
}

// promise estimates the wait for an answer. A replica without a fresh average
// promises the best, so that it is tried, but only to one request at a time.
func (t *tally) promise(now int64) int64 {
	busy, latency := int64(t.inFlight()), t.latency.Load()
	if busy == 0 && (latency == 0 || now-t.measured.Load() > int64(staleLatency)) {
		return 0
	}
	if latency == 0 {
		return math.MaxInt64
	}
	return latency * (busy + 1)
}

// measure takes one answer into the average. Two at once may lose one.
func (t *tally) measure(begun, now int64) {
	sample, latency := max(now-begun, 1), t.latency.Load()
	if latency == 0 || now-t.measured.Load() > int64(staleLatency) {
		latency = sample
	}
	t.latency.Store(latency + (sample-latency)/latencyShare)
	t.measured.Store(now)
}
