package activator

import (
	"cmp"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// quietAfter is how long a workload must be unused for its next use to be
// news: shorter gaps are covered by the reports of each second.
const quietAfter = time.Second

// Activity is the traffic of every workload that ever had a request here,
// sorted by name.
func (a *Activator) Activity() workload.Activity {
	now := a.clock.now()
	activity := workload.Activity{Gateway: a.cfg.Gateway}
	for _, g := range a.all() {
		if l, ok := g.load(now); ok {
			activity.Loads = append(activity.Loads, l)
		}
	}
	slices.SortFunc(activity.Loads, func(x, y workload.Load) int { return cmp.Compare(x.Workload, y.Workload) })
	return activity
}

// Changed has a value when a workload that was reported as idle has come into
// use since: the activity is worth sending at once. There is one channel, for
// one reader.
func (a *Activator) Changed() <-chan struct{} { return a.changed }

// A View is one workload as this gateway sees it.
type View struct {
	Name string
	// State is the last news of it; it must not be changed.
	State workload.State
	// Replicas are those of State.
	Replicas []ReplicaView
	// InFlight counts every request in flight, also on replicas that State
	// has no more, and those that do not count as use.
	InFlight int
	// Queued counts every held request.
	Queued int
	// LastRequest is when the last counted request ended, now while there is
	// one in flight or held, zero when there never was one.
	LastRequest time.Time
	// KeptUntil is until when Await has it kept awake; zero: never.
	KeptUntil time.Time
}

// A ReplicaView is one replica and what this gateway has in flight on it.
type ReplicaView struct {
	workload.Replica
	InFlight int
}

// Views gives every workload of the catalog, sorted by name.
func (a *Activator) Views() []View {
	gates := *a.gates.Load()
	views := make([]View, 0, len(gates))
	for _, g := range gates {
		views = append(views, g.view())
	}
	slices.SortFunc(views, func(x, y View) int { return cmp.Compare(x.Name, y.Name) })
	return views
}

func (g *Gate) view() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	v := View{
		Name:     g.name,
		State:    g.state,
		Replicas: make([]ReplicaView, len(g.targets)),
		InFlight: g.inFlight(),
		Queued:   g.queue.requests,
	}
	for i := range g.targets {
		v.Replicas[i] = ReplicaView{g.targets[i].Replica, g.targets[i].inFlight()}
	}
	if g.inUse()+g.queue.counted > 0 {
		v.LastRequest = time.Now()
	} else if last := g.lastUsed.Load(); last != 0 {
		v.LastRequest = g.activator.clock.time(last)
	}
	if until := g.keptUntil.Load(); until != 0 {
		v.KeptUntil = g.activator.clock.time(until)
	}
	return v
}

// load is the gate's part of the activity; false when there never was any.
func (g *Gate) load(now int64) (workload.Load, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Quiet comes before the look: a use that the look misses is then news.
	g.quiet.Store(true)
	l := workload.Load{Workload: g.name, InFlight: g.inUse(), Queued: g.queue.counted, IdleMS: -1}
	last := g.lastUsed.Load()
	if l.InFlight+l.Queued > 0 {
		l.IdleMS = 0
	} else if last != 0 {
		l.IdleMS = max(0, now-last) / int64(time.Millisecond)
	}
	kept := g.keptUntil.Load()
	if kept != 0 {
		if l.KeepMS = (kept - now) / int64(time.Millisecond); l.KeepMS == 0 {
			l.KeepMS = -1 // it is over, and was there
		}
	}
	if l.IdleMS >= 0 && l.IdleMS < quietAfter.Milliseconds() || kept > now && now-g.admitted.Load() < int64(quietAfter) {
		g.quiet.Store(false)
	}
	return l, l.IdleMS >= 0 || g.admitted.Load() != 0
}

// stir says that the gate is in use.
func (g *Gate) stir() {
	if g.quiet.Load() && g.quiet.CompareAndSwap(true, false) {
		poke(g.activator.changed)
	}
}

// touch says that a use of the gate ended now. It is good to a millisecond:
// the gates of busy workloads do not fight over a cache line.
func (g *Gate) touch() {
	now, last := g.activator.clock.now(), g.lastUsed.Load()
	if last == 0 || now-last >= int64(time.Millisecond) {
		g.lastUsed.CompareAndSwap(last, now)
	}
}

// busy reports whether anything is in flight.
func (g *Gate) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight() > 0
}
