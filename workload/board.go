package workload

import (
	"slices"
	"sync"
	"time"
)

// An Activity is what one gateway has to say about its traffic, once a
// second and at once when a workload stops being idle. Its numbers are
// totals, not differences, so a lost one costs nothing. It is the gateway's
// sign of life as well.
type Activity struct {
	Gateway string `json:"gateway"`
	// Place names where it listens: whoever was heard from there before and is
	// silent now is dead. Empty for one that does not listen.
	Place string `json:"place,omitempty"`
	// Leaving is true in the last one, sent at a clean end.
	Leaving bool `json:"leaving,omitempty"`
	// Loads has every workload that the gateway ever had a request for.
	Loads []Load `json:"loads,omitempty"`
}

// A Load is one gateway's traffic for one workload.
type Load struct {
	Workload string `json:"workload"`
	InFlight int    `json:"in_flight"`
	Queued   int    `json:"queued"`
	// IdleMS is how many milliseconds ago the last counted request began or
	// ended: an age, so that two clocks need not agree. -1 means never.
	IdleMS int64 `json:"idle_ms"`
	// KeepMS is for how many milliseconds from now on it is to be kept awake
	// for requests that take another way than through the gateway; less than
	// 0: how long ago that was over. 0: it never was since it runs.
	KeepMS int64 `json:"keep_ms,omitempty"`
}

// Gone is how long after its last sign of life a gateway counts as silent: it
// may have died, or been cut off and be serving still. Three reports of one
// second.
const Gone = 3 * time.Second

// A Board puts together what every gateway says. It is safe for concurrent
// use. Of a gateway that went silent the last word is kept and ages: what it
// was using when last heard counts as used at that moment.
type Board struct {
	mu       sync.Mutex
	gateways map[string]*gatewayReport // gateway -> last word; guarded by mu
}

type gatewayReport struct {
	place    string
	heard    time.Time
	left     bool                  // it said goodbye
	replaced bool                  // another was heard from its place since
	loads    map[string]loadReport // workload -> last word
}

type loadReport struct {
	inFlight, queued int
	lastUsed         time.Time // zero: never
	keptUntil        time.Time // zero: not kept
}

// NewBoard makes an empty board.
func NewBoard() *Board { return &Board{gateways: map[string]*gatewayReport{}} }

// Hear takes in one report that arrived at now, be it in the past. A leaving
// gateway is no longer alive at once; its last use is still known until
// Forget.
func (b *Board) Hear(a Activity, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	g := b.gateways[a.Gateway]
	if g == nil {
		b.makeRoom()
		g = &gatewayReport{loads: map[string]loadReport{}}
		b.gateways[a.Gateway] = g
	}
	g.place, g.heard, g.left, g.replaced = a.Place, now, a.Leaving, false
	b.replace(a)
	for _, l := range a.Loads {
		r := loadReport{inFlight: l.InFlight, queued: l.Queued}
		if l.IdleMS >= 0 {
			r.lastUsed = now.Add(-time.Duration(l.IdleMS) * time.Millisecond)
		}
		if l.KeepMS != 0 {
			r.keptUntil = now.Add(time.Duration(l.KeepMS) * time.Millisecond)
		}
		if a.Leaving {
			r.inFlight, r.queued = 0, 0
		}
		g.loads[l.Workload] = r
	}
}

// maxGateways bounds a board, should somebody report under ever new names.
const maxGateways = 10_000

// makeRoom drops the gateway that was not heard for longest, if there are too
// many. Under the lock.
func (b *Board) makeRoom() {
	if len(b.gateways) < maxGateways {
		return
	}
	oldest := ""
	for name, g := range b.gateways {
		if oldest == "" || g.heard.Before(b.gateways[oldest].heard) {
			oldest = name
		}
	}
	delete(b.gateways, oldest)
}

// replace takes whoever was at the place of a before for dead, unless it is
// heard again: a gateway that no longer listens may be ending its last
// requests. Under the lock.
func (b *Board) replace(a Activity) {
	if a.Place == "" {
		return
	}
	for name, g := range b.gateways {
		if name != a.Gateway && g.place == a.Place {
			g.replaced = true
		}
	}
}

// Alive lists the gateways heard within Gone before now.
func (b *Board) Alive(now time.Time) []string {
	return b.list(func(g *gatewayReport) bool { return g.alive(now) })
}

// Silent lists the gateways that may be serving although nothing is heard of
// them: last heard longer than Gone ago, without a goodbye, and no other has
// been heard from their place. Those that could have been heard before lost
// are left out; since is from when on they could.
func (b *Board) Silent(now, since, lost time.Time) []string {
	return b.list(func(g *gatewayReport) bool {
		return !g.left && !g.replaced && !g.alive(now) && (g.heard.After(lost) || since.After(lost))
	})
}

func (g *gatewayReport) alive(now time.Time) bool { return !g.left && now.Sub(g.heard) < Gone }

// list names the gateways that match, sorted.
func (b *Board) list(match func(*gatewayReport) bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var names []string
	for name, g := range b.gateways {
		if match(g) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A Use is the traffic of one workload over all gateways.
type Use struct {
	InFlight, Queued int
	// LastUsed is the latest moment it was known to be in use; zero: never.
	LastUsed time.Time
	// KeptUntil is until when it is to be kept awake for requests that take
	// another way; zero: it never was. It outlives the gateway that told.
	KeptUntil time.Time
}

// Use sums up one workload at now. A gateway that is alive and has requests
// in flight or queued makes LastUsed now; one that went silent with some
// makes it the moment it was last heard.
func (b *Board) Use(workload string, now time.Time) Use {
	b.mu.Lock()
	defer b.mu.Unlock()
	var u Use
	for _, g := range b.gateways {
		l, ok := g.loads[workload]
		if !ok {
			continue
		}
		if l.keptUntil.After(u.KeptUntil) {
			u.KeptUntil = l.keptUntil
		}
		used := l.lastUsed
		if l.inFlight+l.queued > 0 {
			if g.alive(now) {
				u.InFlight += l.inFlight
				u.Queued += l.queued
				used = now
			} else if g.heard.After(used) {
				used = g.heard
			}
		}
		if used.After(u.LastUsed) {
			u.LastUsed = used
		}
	}
	return u
}

// Forget drops gateways not heard for longer than age, so that a board does
// not grow with every gateway that ever was.
func (b *Board) Forget(now time.Time, age time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, g := range b.gateways {
		if now.Sub(g.heard) > age {
			delete(b.gateways, name)
		}
	}
}
