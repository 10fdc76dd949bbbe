package scaler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A plan says how the copies of one workload behave.
type plan struct {
	start, stop time.Duration // how long these calls take
	boot        time.Duration // start returned to answering
	copies      int           // 0 makes one
	bootMore    time.Duration // added to boot for each further copy
	startErr    error
	exitAfter   time.Duration // after the start returned; 0: never
	exitCode    int
	oom         bool
	health      scaler.Health // of a fresh copy
	ignoresCtx  bool          // Start does not end with its context
	atLeast     time.Duration // any Start takes that long, also of what runs
	probe       time.Duration // how long one try takes
	address     string        // of every copy; empty: each has its own
}

// An engine is a platform in memory, shared by every scaler of a test. It
// notes what must never happen.
type engine struct {
	mu       sync.Mutex
	plans    map[string]*plan
	copies   map[string][]*instance // workload -> running or paused
	stopping map[string]chan struct{}
	starting map[string]int
	sinks    map[*int]chan scaler.Event
	mine     map[string]bool // workloads of the last Update

	started, stopped map[string]int // workload -> real starts and stops
	calls            map[string]int // workload -> Start calls
	order            []string       // workload names by Start call
	parallel, most   int            // Start calls under way
	serial           int
	rivals           []string        // no two of these may run at a time
	deaf             map[string]bool // ID -> does not answer
	listErr, logsErr error
	logs             []string
	lists            int
	hold             chan struct{} // not nil: List waits for its end
	faults           []string
	inUse            func(workload string) bool
	eventDelay       time.Duration
	tried            func()                     // called with each Probe, if not nil
	confirm          func(replica string) error // nil: what answers is what it seems
}

type instance struct {
	scaler.Instance
	at     time.Time // Start returned
	boot   time.Duration
	usable bool // Start has returned
}

func newEngine() *engine {
	return &engine{
		plans: map[string]*plan{}, copies: map[string][]*instance{}, stopping: map[string]chan struct{}{},
		starting: map[string]int{}, sinks: map[*int]chan scaler.Event{}, started: map[string]int{},
		stopped: map[string]int{}, calls: map[string]int{}, deaf: map[string]bool{},
		logs: []string{"boot", "last words"}, inUse: func(string) bool { return false },
	}
}

func (e *engine) plan(name string) *plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plans[name] == nil {
		e.plans[name] = &plan{start: 100 * time.Millisecond, stop: 100 * time.Millisecond, boot: 50 * time.Millisecond}
	}
	return e.plans[name]
}

// apart makes it a fault if two of these run at a time.
func (e *engine) apart(names ...string) { e.do(func() { e.rivals = names }) }

// meet notes that a rival runs when one is started; e.mu is held.
func (e *engine) meet(name string) {
	for _, other := range e.rivals {
		if other != name && slices.Contains(e.rivals, name) && (len(e.copies[other]) > 0 || e.starting[other] > 0) {
			e.fault("%s was started beside %s", name, other)
		}
	}
}

func (e *engine) fault(format string, args ...any) {
	e.faults = append(e.faults, fmt.Sprintf(format, args...))
}

func (e *engine) Start(ctx context.Context, w workload.Workload) ([]scaler.Instance, error) {
	p := e.plan(w.Name)
	e.mu.Lock()
	e.calls[w.Name]++
	e.order = append(e.order, w.Name)
	e.parallel++
	e.most = max(e.most, e.parallel)
	e.starting[w.Name]++
	e.meet(w.Name)
	ending := e.stopping[w.Name]
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.parallel--
		e.starting[w.Name]--
		e.mu.Unlock()
	}()
	if ending != nil {
		<-ending // of another scaler: believe no start before the end
	}
	begun := make(chan []scaler.Instance, 1)
	go func() { begun <- e.bringUp(w, p) }() // an engine goes on when its caller is gone
	if p.ignoresCtx {
		return <-begun, p.startErr
	}
	select {
	case insts := <-begun:
		return insts, p.startErr
	case <-ctx.Done():
		return nil, fmt.Errorf("start: %w", context.Cause(ctx))
	}
}

func (e *engine) Confirm(_ context.Context, replica string) error {
	if e.confirm == nil {
		return nil
	}
	return e.confirm(replica)
}

func (e *engine) bringUp(w workload.Workload, p *plan) []scaler.Instance {
	e.mu.Lock()
	if p.startErr != nil {
		e.mu.Unlock()
		time.Sleep(p.start)
		return nil
	}
	var fresh []*instance
	if len(e.copies[w.Name]) == 0 {
		e.started[w.Name]++
		for i := range max(1, p.copies) {
			fresh = append(fresh, e.add(w.Name, p, i))
		}
	}
	var resumed []*instance
	for _, c := range e.copies[w.Name] {
		if c.Paused {
			c.Paused = false
			resumed = append(resumed, c)
		}
	}
	running := slices.Clone(e.copies[w.Name])
	e.mu.Unlock()
	time.Sleep(p.atLeast)
	if len(fresh)+len(resumed) > 0 {
		time.Sleep(p.start)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range slices.Concat(fresh, resumed) {
		c.at, c.usable = time.Now(), true
		if !slices.Contains(e.copies[w.Name], c) {
			continue // ended already
		}
		e.tell(scaler.Event{Kind: scaler.Started, Workload: w.Name, ID: c.ID})
		if p.exitAfter > 0 {
			time.AfterFunc(p.exitAfter, func() { e.die(w.Name, c.ID, p.exitCode, p.oom) })
		}
	}
	var insts []scaler.Instance
	for _, c := range running { // though it may have ended by now
		insts = append(insts, c.Instance)
	}
	return insts
}

// add makes one running copy; e.mu is held.
func (e *engine) add(name string, p *plan, i int) *instance {
	e.serial++
	id := fmt.Sprintf("%s-%d", name, e.serial)
	c := &instance{
		Instance: scaler.Instance{
			Workload: name, Health: p.health,
			Replica: workload.Replica{ID: id, Address: "10.0.0.1:" + id, StartedAt: time.Now()},
		},
		boot: p.boot + time.Duration(i)*p.bootMore,
	}
	if p.address != "" {
		c.Address = p.address
	}
	e.copies[name] = append(e.copies[name], c)
	return c
}

// byHand starts a copy as a person would.
func (e *engine) byHand(name string) string {
	p := e.plan(name)
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.add(name, p, 0)
	c.at, c.usable = time.Now(), true
	e.tell(scaler.Event{Kind: scaler.Started, Workload: name, ID: c.ID})
	return c.ID
}

func (e *engine) die(name, id string, code int, oom bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.copies[name])
	e.copies[name] = slices.DeleteFunc(e.copies[name], func(c *instance) bool { return c.ID == id })
	if len(e.copies[name]) < before {
		e.tell(scaler.Event{Kind: scaler.Died, Workload: name, ID: id, ExitCode: code, OOM: oom})
	}
}

func (e *engine) setHealth(name string, h scaler.Health, k scaler.EventKind) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.copies[name] {
		c.Health = h
		e.tell(scaler.Event{Kind: k, Workload: name, ID: c.ID})
	}
}

func (e *engine) Stop(ctx context.Context, w workload.Workload) error {
	p := e.plan(w.Name)
	e.mu.Lock()
	if e.starting[w.Name] > 0 {
		e.fault("stop of %s during its start", w.Name)
	}
	if e.inUse(w.Name) {
		e.fault("stop of %s in use", w.Name)
	}
	ended := make(chan struct{})
	e.stopping[w.Name] = ended
	e.stopped[w.Name]++
	e.mu.Unlock()
	go func() {
		time.Sleep(p.stop)
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.copies[w.Name] {
			c.Paused = w.Stop == workload.StopPause
			e.tell(scaler.Event{Kind: scaler.Died, Workload: w.Name, ID: c.ID})
		}
		if w.Stop != workload.StopPause {
			e.copies[w.Name] = nil
		}
		delete(e.stopping, w.Name)
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop: %w", context.Cause(ctx))
	}
}

func (e *engine) List(context.Context) ([]scaler.Instance, error) {
	e.mu.Lock()
	hold := e.hold
	e.lists++
	if e.listErr != nil {
		defer e.mu.Unlock()
		return nil, e.listErr
	}
	var all []scaler.Instance
	for _, cs := range e.copies {
		for _, c := range cs {
			if c.usable {
				all = append(all, c.Instance)
			}
		}
	}
	e.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return all, nil
}

func (e *engine) Watch(ctx context.Context, sink func(scaler.Event)) error {
	ch, key := make(chan scaler.Event, 10_000), new(int)
	e.mu.Lock()
	e.sinks[key] = ch
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.sinks, key)
		e.mu.Unlock()
	}()
	sink(scaler.Event{Kind: scaler.Resynced})
	for {
		select {
		case ev := <-ch:
			e.mu.Lock()
			delay := e.eventDelay
			e.mu.Unlock()
			time.Sleep(time.Until(ev.At.Add(delay)))
			sink(ev)
		case <-ctx.Done():
			return nil
		}
	}
}

// tell sends an event; e.mu is held.
func (e *engine) tell(ev scaler.Event) {
	ev.At = time.Now()
	for _, ch := range e.sinks {
		ch <- ev
	}
}

func (e *engine) Logs(_ context.Context, _ workload.Workload, n int) ([]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.logs[max(0, len(e.logs)-n):], e.logsErr
}

func (e *engine) Update(ws []workload.Workload) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mine = map[string]bool{}
	for _, w := range ws {
		e.mine[w.Name] = true
	}
}

// Probe answers for the engine's copies.
func (e *engine) Probe(ctx context.Context, w workload.Workload, r workload.Replica) error {
	select {
	case <-time.After(e.plan(w.Name).probe):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tried != nil {
		e.tried()
	}
	for _, cs := range e.copies {
		for _, c := range cs {
			if c.Address != r.Address { // a try knows no more than that
				continue
			}
			if !c.usable && c.ID == r.ID {
				e.fault("probe of %s before its start returned", c.ID)
			}
			if c.Paused || e.deaf[c.ID] || time.Since(c.at) < c.boot {
				return errors.New("connection refused")
			}
			return nil
		}
	}
	return errors.New("no route to host")
}

func (e *engine) running(name string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var ids []string
	for _, c := range e.copies[name] {
		if !c.Paused {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (e *engine) count(of map[string]int, name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return of[name]
}

// do changes the engine under its lock.
func (e *engine) do(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}
