package docker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A view is what is known of the engine's containers. It makes no calls: it
// is told what others saw, finds out what has changed by that, and keeps the
// news until somebody takes them. All methods are safe for concurrent use.
type view struct {
	mu        sync.Mutex          // guards all but the channels' contents
	entries   map[string]*entry   // container ID -> what is known of it
	workloads []workload.Workload // of the last Update
	// telling is false until the first check against the engine is over:
	// what was there before is no news.
	telling bool
	news    []scaler.Event
	dirty   map[string]struct{} // IDs to inspect
	moved   chan struct{}       // closed and replaced when an entry changes

	toTell  chan struct{} // holds one: there are news
	toLook  chan struct{} // holds one: there are dirty ones
	changed chan struct{} // holds one: other containers, names or ports
}

// An entry is one container. Its record is zero beyond the sighting until it
// has been looked at.
type entry struct {
	record
	looked bool // the record is from an inspect
	// known says that its state is known, by an inspect or because its
	// creation was seen: a change of it is news.
	known bool
	// version grows with each change: what was asked of the engine before
	// the last one is out of date.
	version uint64
	// op holds a token while a start or a stop of it is under way.
	op chan struct{}
	// starting says that a start of ours is under way, which looks at it
	// itself once it is done.
	starting bool
	// ending is when somebody asked this run to end, as long as it has not;
	// zero: nobody. The engine takes a start in that time for one of what runs.
	ending time.Time
	// outOfMemory says that this run went over its memory.
	outOfMemory bool
	looking     bool // a refresh is under way
	// writesFrom is when the output of the last run begins at the earliest,
	// after the end of the run before. The engine's time of the start is too
	// late, what starts quickly has written something by then.
	writesFrom time.Time
	// pending is an end that is not told before one look at its cause.
	pending *scaler.Event
}

func newView() *view {
	return &view{
		entries: map[string]*entry{},
		dirty:   map[string]struct{}{},
		moved:   make(chan struct{}),
		toTell:  make(chan struct{}, 1),
		toLook:  make(chan struct{}, 1),
		changed: make(chan struct{}, 1),
	}
}

// signal leaves a value in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// update takes over the workloads, and asks for a look at the containers
// that are of interest now. Of what runs already it tells that it started.
func (v *view) update(ws []workload.Workload) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.workloads
	v.workloads = slices.Clone(ws)
	for _, e := range v.entries {
		if v.wanted(e) && !e.looked {
			v.soil(e)
		}
		if !e.serving() {
			continue
		}
		for _, w := range v.selecting(e) {
			if !slices.ContainsFunc(before, func(b workload.Workload) bool { return b.Name == w.Name }) {
				v.tell(scaler.Event{Kind: scaler.Started, Workload: w.Name, ID: e.replicaID(), At: e.startedAt})
			}
		}
	}
}

// wanted reports whether e may be inspected and acted on: it carries the
// opt-in, or a workload names it.
func (v *view) wanted(e *entry) bool { return e.Enabled() || len(v.selecting(e)) > 0 }

func (v *view) selecting(e *entry) []workload.Workload {
	var ws []workload.Workload
	for i := range v.workloads {
		if v.workloads[i].Selects(e.Container) {
			ws = append(ws, v.workloads[i])
		}
	}
	return ws
}

// soil asks for a look at e.
func (v *view) soil(e *entry) {
	v.dirty[e.ID] = struct{}{}
	signal(v.toLook)
}

// takeDirty returns the IDs to look at now, and marks that it is being done.
func (v *view) takeDirty() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var ids []string
	for id := range v.dirty {
		if e := v.entries[id]; e != nil && e.looking {
			continue // again, when that look is over
		} else if e != nil {
			e.looking = true
			ids = append(ids, id)
		}
		delete(v.dirty, id)
	}
	return ids
}

// refreshed says that a look that takeDirty asked for is over, for better or
// worse: what waited for it is told now.
func (v *view) refreshed(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[id]
	if e == nil {
		return
	}
	e.looking = false
	v.tellPending(e, false)
	if _, again := v.dirty[id]; again {
		signal(v.toLook)
	}
}

// bump notes that e changed.
func (v *view) bump(e *entry) {
	e.version++
	close(v.moved)
	v.moved = make(chan struct{})
}

// get returns a copy of what is known.
func (v *view) get(id string) (entry, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil {
		return *e, true
	}
	return entry{}, false
}

// serving finds the container that runs as that replica.
func (v *view) serving(replica string) (id string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, e := range v.entries {
		if e.serving() && strings.HasPrefix(replica, short(id)) && e.replicaID() == replica {
			return id, true
		}
	}
	return "", false
}

// hold waits until no other start or stop of the container is under way, and
// returns how to end this one.
func (v *view) hold(ctx context.Context, id string) (release func(), err error) {
	e, ok := v.get(id)
	if !ok {
		return nil, errGone
	}
	select {
	case e.op <- struct{}{}:
		return func() { <-e.op }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// starting marks a start of ours. Its end, with an unknown outcome or not,
// is to be told by started.
func (v *view) starting(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil {
		e.starting = true
	}
}

func (v *view) started(id string, unknown bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil {
		e.starting = false
		if unknown {
			v.soil(e)
		}
	}
}

// ending reports whether somebody asked the run to end that began then.
func (v *view) ending(id string, startedAt time.Time) bool {
	e, ok := v.get(id)
	return ok && !e.ending.IsZero() && e.startedAt.Equal(startedAt)
}

// asked notes that we ask the run to end. By the engine's clock that is after
// its begin.
func (v *view) asked(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil && e.serving() {
		e.ending = e.startedAt.Add(1)
		v.bump(e)
	}
}

// survived notes that whoever was asked to end has not cared.
func (v *view) survived(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil {
		e.ending = time.Time{}
	}
}

// movement returns a channel that is closed at the next change of any entry.
func (v *view) movement() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.moved
}
