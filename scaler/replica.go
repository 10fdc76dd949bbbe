package scaler

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// A replica is one running copy as its life knows it.
type replica struct {
	Instance
	since    time.Time // when it was first known to run
	proved   bool
	provedAt time.Time
	stop     context.CancelFunc // ends the proof under way; nil: there is none
	givenUp  bool               // was not ready in time: try it once with each list
	resting  bool               // no try before the next list
	trouble  atomic.Pointer[string]
}

// unproving ends what is done to prove it.
func (r *replica) unproving() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// began takes in what Start returned.
func (l *life) began(insts []Instance) {
	now := time.Now()
	for _, in := range insts {
		if !in.Paused {
			l.admit(in, now)
		}
	}
	for _, r := range l.runs {
		r.since, r.givenUp, r.resting = now, false, false
	}
	clear(l.early)
}

// admit takes in one that runs, with the news of it that came earlier.
func (l *life) admit(in Instance, now time.Time) {
	e, heard := l.early[in.ID]
	switch {
	case heard && ended(e.Kind):
		l.end = e
		return
	case heard:
		in.Health = health(e.Kind, in.Health)
	}
	r := l.runs[in.ID]
	if r == nil || r.Address != in.Address {
		l.drop(in.ID)
		r = &replica{since: now}
		l.runs[in.ID] = r
	}
	r.Instance = in
}

func (l *life) drop(id string) {
	if r := l.runs[id]; r != nil {
		r.unproving()
		delete(l.runs, id)
	}
}

// keepOnly drops what is not among all that runs.
func (l *life) keepOnly(all []Instance) {
	for id := range l.runs {
		if !slices.ContainsFunc(all, func(in Instance) bool { return in.ID == id }) {
			l.drop(id)
		}
	}
}

func (l *life) dropAll() {
	for id := range l.runs {
		l.drop(id)
	}
}

// list takes in what runs, if nothing happened since seq that could make it
// outdated.
func (l *life) list(insts []Instance, seq uint64) {
	if seq != l.seq.Load() || l.task != protocol.TaskNone {
		l.wantList()
		return
	}
	run := map[string]bool{}
	clear(l.early)
	for _, in := range insts {
		if in.Paused {
			continue
		}
		run[in.ID] = true
		l.admit(in, time.Now())
	}
	for id := range l.runs {
		if !run[id] {
			l.drop(id)
			continue
		}
		l.runs[id].resting = false
	}
	l.listed = true
}

// wantList asks for a list once there is nothing else to do: one that comes
// while a task begins or ends would not be believed.
func (l *life) wantList() { l.relist = true }

// heard takes in one event.
func (l *life) heard(e Event) {
	r := l.runs[e.ID]
	switch {
	case e.Kind == Started:
		if ended(l.early[e.ID].Kind) {
			delete(l.early, e.ID) // resumed
		}
		if r == nil && l.task != protocol.TaskStart { // Start itself tells what it started
			l.wantList()
		}
	case ended(e.Kind) && (e.ID == "" || l.spec.Stop.Lives()):
		// What was resumed may have the name of what was paused, so that only
		// a list can tell whether this is old news.
		l.end = e
		l.wantList()
	case ended(e.Kind) && r != nil:
		l.end = e
		l.drop(e.ID)
	case r != nil:
		if r.Health = health(e.Kind, r.Health); r.Health == HealthUnhealthy {
			r.unproving()
		}
	case e.ID == "":
		l.wantList()
	default:
		l.early[e.ID] = e
	}
}

func ended(k EventKind) bool { return k == Died || k == Removed }

func health(k EventKind, before Health) Health {
	switch k {
	case Healthy:
		return HealthHealthy
	case Unhealthy:
		return HealthUnhealthy
	}
	return before
}

// proveRuns sees to it that all that runs is being proved, where that could
// matter: not what is about to be stopped, nor what another scaler has in
// hand.
func (l *life) proveRuns(ctx context.Context) {
	f := protocol.Facts{Lease: l.lease(time.Now()), Task: l.task, Wake: protocol.Wake{Failed: l.giving()}}
	if !l.read || !f.MayProve() || l.spec.Job {
		return
	}
	for _, r := range l.runs {
		switch {
		case r.proved || r.resting || r.stop != nil:
		case l.spec.Ready.Kind == workload.ReadyDocker:
			if r.Health == HealthHealthy {
				l.believe(ctx, r)
			}
		case r.Health != HealthUnhealthy:
			l.prove(ctx, r)
		}
	}
}

// believe takes the engine's word for r, at once or after ReadyAfter.
func (l *life) believe(ctx context.Context, r *replica) {
	if l.spec.ReadyAfter == 0 {
		r.proved, r.provedAt = true, time.Now()
		return
	}
	l.prove(ctx, r)
}

// prove tries r until it answers; what was given up before gets one try.
func (l *life) prove(ctx context.Context, r *replica) {
	limit := l.wakeTimeout()
	if r.givenUp {
		limit = 0
	}
	ctx, r.stop = context.WithCancel(ctx)
	spec, target, since := l.spec, r.Replica, r.since
	l.children.Go(func() {
		at, err := l.s.untilReady(ctx, attempt{spec, target, since, limit, &r.trouble})
		l.post(func() {
			if ctx.Err() != nil {
				return // dropped meanwhile, or asked to be left alone
			}
			r.unproving()
			r.proved, r.provedAt = err == nil, at
			r.givenUp, r.resting = err != nil, err != nil
		})
	})
}

// proved lists what may be served, in a fixed order, and when the first of
// them was proved.
func (l *life) proved() (replicas []workload.Replica, first time.Time) {
	for _, r := range l.runs {
		if !r.proved {
			continue
		}
		replicas = append(replicas, r.Replica)
		if first.IsZero() || r.provedAt.Before(first) {
			first = r.provedAt
		}
	}
	slices.SortFunc(replicas, func(a, b workload.Replica) int { return cmp.Compare(a.ID, b.ID) })
	return replicas, first
}
