package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A boxPhase is where a container is.
type boxPhase uint8

const (
	down boxPhase = iota
	starting
	up
	ending
)

// An engine is a platform of containers, shared by every scaler. What it was
// asked to do it does, whatever becomes of who asked. It is guarded by
// world.mu.
type engine struct {
	w         *world
	boxes     map[string][]*box // workload -> its containers
	free      []string          // addresses, the longest unused first
	listeners []*listener
	away      bool // calls fail and no event is told

	ended      map[string]time.Time // ID -> when that start ended
	clearSince time.Time            // since when calls pass and events are told
}

// A box is one container.
type box struct {
	name, workload string
	phase          boxPhase
	serial         int // of its starts
	replica        *replica
	changed        chan struct{} // closed at each change of the phase
	restarts       bool          // by itself when it ends by itself
}

// A replica is one start of one container.
type replica struct {
	workload.Replica
	box       *box
	answersAt time.Time
	stopped   string   // who is ending it; empty: nobody
	stopBy    *stopAsk // not nil where that is a scaler
	serving   map[*request]struct{}
	ended     chan struct{}
	never     bool // becomes ready
}

// A stopAsk is one call of Stop.
type stopAsk struct {
	node string
}

func newEngine(w *world) *engine {
	e := &engine{w: w, boxes: map[string][]*box{}, ended: map[string]time.Time{}}
	n := 1
	for _, s := range w.plan.specs {
		for i := range w.plan.copies[s.Name] {
			e.boxes[s.Name] = append(e.boxes[s.Name], &box{
				name: fmt.Sprintf("%s-%d", s.Name, i), workload: s.Name, changed: make(chan struct{}),
				restarts: w.dice.chance(about{"restarts", "", s.Name}, 0.3),
			})
			e.free = append(e.free, fmt.Sprintf("10.0.0.%d:80", n))
			n++
		}
	}
	e.free = append(e.free, fmt.Sprintf("10.0.0.%d:80", n))
	return e
}

func (b *box) turn(p boxPhase) {
	b.phase = p
	close(b.changed)
	b.changed = make(chan struct{})
}

func (e *engine) about(what string, b *box) about { return about{what, "engine", b.name} }

// begin starts a container that is down. It says why it could not.
func (e *engine) begin(b *box, by string) error {
	w := e.w
	if w.storm && w.dice.chance(e.about("no start", b), w.plan.startFails) {
		w.did("start failed")
		w.note("engine", "%s: %s could not start it", b.name, by)
		return &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonStartError, Detail: "no space left"}}
	}
	b.serial++
	address := e.free[0]
	e.free = e.free[1:]
	b.replica = &replica{
		Replica: workload.Replica{ID: fmt.Sprintf("%s.%d", b.name, b.serial), Address: address, StartedAt: time.Now()},
		box:     b, serving: map[*request]struct{}{}, ended: make(chan struct{}),
	}
	w.note("engine", "%s: started by %s at %s", b.replica.ID, by, address)
	b.turn(starting)
	r := b.replica
	time.AfterFunc(w.dice.between(e.about("start", b), 20*time.Millisecond, w.plan.start), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		e.runs(r)
	})
	return nil
}

// runs ends the start of r.
func (e *engine) runs(r *replica) {
	b, w := r.box, e.w
	if b.replica != r || b.phase != starting {
		return
	}
	b.turn(up)
	r.answersAt = time.Now().Add(w.dice.between(e.about("boot", b), time.Millisecond, w.plan.boot))
	w.note("engine", "%s: runs", r.ID)
	e.tell(scaler.Event{Kind: scaler.Started, Workload: b.workload, ID: r.ID})
	if !w.storm {
		return
	}
	switch u := w.dice.float(e.about("fate", b)); {
	case u < w.plan.neverReady:
		w.did("start never ready")
		r.never = true
	case u < w.plan.neverReady+w.plan.exits:
		w.did("exit after start")
		e.dieIn(r, w.dice.between(e.about("exits", b), 0, 3*w.plan.boot), 1)
	}
}

func (e *engine) dieIn(r *replica, d time.Duration, code int) {
	time.AfterFunc(d, func() {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		e.die(r, code)
	})
}

// die ends r now: what it was answering breaks off, its address is free.
func (e *engine) die(r *replica, code int) {
	b, w := r.box, e.w
	if b.replica != r || b.phase == down {
		return
	}
	w.note("engine", "%s: ended with %d", r.ID, code)
	b.replica = nil
	e.ended[r.ID] = time.Now()
	close(r.ended)
	if w.plan.swaps { // the next start, whosever, gets it
		e.free = slices.Insert(e.free, 0, r.Address)
	} else {
		e.free = append(e.free, r.Address)
	}
	b.turn(down)
	e.tell(scaler.Event{Kind: scaler.Died, Workload: b.workload, ID: r.ID, ExitCode: code})
	if b.restarts && r.stopped == "" && !e.away {
		time.AfterFunc(w.dice.between(e.about("restart", b), 50*time.Millisecond, time.Second), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if b.phase == down {
				w.did("restart by itself")
				_ = e.begin(b, "itself")
			}
		})
	}
}

// end asks a container to end; it does within the time that the plan says.
func (e *engine) end(b *box, by string, ask *stopAsk) {
	r := b.replica
	r.stopped, r.stopBy = by, ask
	e.w.note("engine", "%s: stopped by %s", r.ID, by)
	b.turn(ending)
	e.dieIn(r, e.w.dice.between(e.about("stop", b), 10*time.Millisecond, e.w.plan.stop), 0)
}

// at finds who has an address and answers there.
func (e *engine) at(address string) *replica {
	for _, boxes := range e.boxes {
		for _, b := range boxes {
			if r := b.replica; r != nil && r.Address == address && b.phase != starting && r.answers() {
				return r
			}
		}
	}
	return nil
}

func (r *replica) answers() bool { return !r.never && !time.Now().Before(r.answersAt) }

// find gives a start that has not ended; nil if it has.
func (e *engine) find(id string) *replica {
	for _, boxes := range e.boxes {
		for _, b := range boxes {
			if b.replica != nil && b.replica.ID == id {
				return b.replica
			}
		}
	}
	return nil
}

// ends reports whether a container of a workload is being stopped.
func (e *engine) ends(name string) bool {
	return slices.ContainsFunc(e.boxes[name], func(b *box) bool { return b.phase == ending })
}

// running lists every container that is not down, by name.
func (e *engine) running() (names []string) {
	for _, boxes := range e.boxes {
		for _, b := range boxes {
			if b.phase != down {
				names = append(names, b.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

var errEngineAway = fmt.Errorf("cannot connect to the engine: %w", scaler.ErrAway)

// A listener is one scaler's connection to the events of the engine.
type listener struct {
	queue chan told
	last  time.Time // when the last event in the queue is due
	cut   bool
	name  string
}

// A told is an event and when it arrives.
type told struct {
	event scaler.Event
	due   time.Time
}

// tell sends an event to all who hear; who is cut off misses it.
func (e *engine) tell(ev scaler.Event) {
	ev.At = time.Now()
	for _, l := range e.listeners {
		if !l.cut && !e.away {
			l.put(e.w, ev)
		}
	}
}

// put keeps the order of what happened.
func (l *listener) put(w *world, ev scaler.Event) {
	due := time.Now().Add(w.dice.between(about{"event", l.name, ev.Workload}, 100*time.Microsecond, w.plan.events))
	if !due.After(l.last) {
		due = l.last.Add(time.Microsecond)
	}
	l.last = due
	select {
	case l.queue <- told{ev, due}:
	default:
		panic("a listener of the engine stands still")
	}
}

// cutEvents breaks every stream of events; it is made again after d.
func (e *engine) cutEvents(d time.Duration) {
	e.clearSince = time.Now().Add(d + 100*time.Millisecond)
	for _, l := range e.listeners {
		l.cut = true
		for len(l.queue) > 0 {
			<-l.queue
		}
		again := d + e.w.dice.between(about{"events again", l.name, ""}, 0, 100*time.Millisecond)
		time.AfterFunc(again, func() {
			e.w.mu.Lock()
			defer e.w.mu.Unlock()
			l.cut = false
			l.put(e.w, scaler.Event{Kind: scaler.Resynced})
		})
	}
}

// wait blocks until a container has changed; world.mu is held before and
// after.
func (e *engine) wait(ctx context.Context, b *box) error {
	changed := b.changed
	e.w.mu.Unlock()
	defer e.w.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
