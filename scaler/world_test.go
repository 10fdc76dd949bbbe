package scaler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

var errAway = errors.New("the events are away")

// A store keeps states as the real one does: as text, by revision.
type store struct {
	mu       sync.Mutex
	bodies   map[string][]byte
	revision map[string]uint64
	next     uint64
	writes   []workload.State
	fails    func(op string, s workload.State) (fail, written bool)
	delay    time.Duration
}

func newStore() *store { return &store{bodies: map[string][]byte{}, revision: map[string]uint64{}} }

func (s *store) get(name string) workload.State {
	var st workload.State
	if body := s.bodies[name]; body != nil {
		if err := json.Unmarshal(body, &st); err != nil {
			panic(err)
		}
	}
	st.Revision = s.revision[name]
	return st
}

func (s *store) State(_ context.Context, name string) (workload.State, error) {
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if fail, _ := s.fails("get", workload.State{Workload: name}); fail {
			return workload.State{}, errAway
		}
	}
	return s.get(name), nil
}

func (s *store) Current(ctx context.Context, name string) (workload.State, error) {
	return s.State(ctx, name)
}

func (s *store) PutState(_ context.Context, st workload.State) (workload.State, error) {
	time.Sleep(s.delay)
	s.mu.Lock()
	defer s.mu.Unlock()
	fail, written := false, true
	if s.fails != nil {
		fail, written = s.fails("put", st)
	}
	if fail && !written {
		return workload.State{}, errAway
	}
	if st.Revision != s.revision[st.Workload] {
		return workload.State{}, fmt.Errorf("put %s: %w", st.Workload, scaler.ErrConflict)
	}
	body, err := json.Marshal(st)
	if err != nil {
		return workload.State{}, err
	}
	s.next++
	s.bodies[st.Workload], s.revision[st.Workload] = body, s.next
	st = s.get(st.Workload)
	s.writes = append(s.writes, st)
	if fail {
		return workload.State{}, errAway
	}
	return st, nil
}

// A link is one scaler's way to the store, which can be cut.
type link struct {
	*store
	cut atomic.Bool
}

func (l *link) State(ctx context.Context, name string) (workload.State, error) {
	if l.cut.Load() {
		return workload.State{}, errAway
	}
	return l.store.State(ctx, name)
}

func (l *link) Current(ctx context.Context, name string) (workload.State, error) {
	return l.State(ctx, name)
}

func (l *link) PutState(ctx context.Context, s workload.State) (workload.State, error) {
	if l.cut.Load() {
		return workload.State{}, errAway
	}
	return l.store.PutState(ctx, s)
}

// A gateway answers drains and reports its traffic each second.
type gateway struct {
	inFlight, queued map[string]int
	usedAt           map[string]time.Time
	silent           bool          // reports nothing and answers no drain
	deaf             bool          // reports, but answers no drain
	answerAfter      time.Duration // of a drain
}

// A world is everything around the scalers of one test.
type world struct {
	t         *testing.T
	engine    *engine
	store     *store
	board     *workload.Board
	connected atomic.Bool

	mu       sync.Mutex
	gateways map[string]*gateway
	drains   int
	events   []workload.Event
	recordIn time.Duration // how long one record takes
}

// inWorld runs a test in a bubble of its own time, with one gateway.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		w := &world{t: t, engine: newEngine(), store: newStore(), board: workload.NewBoard(), gateways: map[string]*gateway{}}
		w.connected.Store(true)
		w.engine.inUse = func(name string) bool { return w.load(name) > 0 }
		w.gateway("g1")
		ctx, cancel := context.WithCancel(context.Background())
		var reports sync.WaitGroup
		reports.Go(func() { w.report(ctx) })
		t.Cleanup(func() {
			cancel()
			reports.Wait()
			time.Sleep(24 * time.Hour) // what the engine still does ends
			w.engine.do(func() { assert.Empty(t, w.engine.faults) })
		})
		test(t, w)
	})
}

func (w *world) gateway(name string) *gateway {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gateways[name] == nil {
		w.gateways[name] = &gateway{inFlight: map[string]int{}, queued: map[string]int{}, usedAt: map[string]time.Time{}}
	}
	return w.gateways[name]
}

// use sets what a gateway has in flight, and reports it at once.
func (w *world) use(gateway, name string, inFlight int) {
	g := w.gateway(gateway)
	w.mu.Lock()
	g.inFlight[name], g.usedAt[name] = inFlight, time.Now()
	w.mu.Unlock()
	w.reportOne(gateway)
}

func (w *world) load(name string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gateways {
		n += g.inFlight[name]
	}
	return n
}

func (w *world) report(ctx context.Context) {
	for ctx.Err() == nil {
		w.mu.Lock()
		var names []string
		for name := range w.gateways {
			names = append(names, name)
		}
		w.mu.Unlock()
		for _, name := range names {
			w.reportOne(name)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (w *world) reportOne(gateway string) {
	if !w.connected.Load() {
		return
	}
	w.mu.Lock()
	g := w.gateways[gateway]
	a, now := workload.Activity{Gateway: gateway}, time.Now()
	for name, used := range g.usedAt {
		a.Loads = append(a.Loads, workload.Load{
			Workload: name, InFlight: g.inFlight[name], Queued: g.queued[name], IdleMS: now.Sub(used).Milliseconds(),
		})
	}
	silent := g.silent
	w.mu.Unlock()
	if !silent {
		w.board.Hear(a, now)
	}
}

func (w *world) Drain(ctx context.Context, name string, _ uint64, gateways []string) ([]workload.Drained, error) {
	w.mu.Lock()
	w.drains++
	var got []workload.Drained
	var missing error
	var slowest time.Duration
	for _, gw := range gateways {
		g := w.gateways[gw]
		if g == nil || g.silent || g.deaf {
			missing = fmt.Errorf("no answer of %s", gw)
			continue
		}
		slowest = max(slowest, g.answerAfter)
		got = append(got, workload.Drained{Gateway: gw, InFlight: g.inFlight[name], Queued: g.queued[name]})
	}
	w.mu.Unlock()
	time.Sleep(slowest)
	if missing != nil {
		<-ctx.Done()
	}
	return got, missing
}

func (w *world) drained() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drains
}

func (w *world) RecordEvent(_ context.Context, e workload.Event) error {
	time.Sleep(w.recordIn)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
	return nil
}

func (w *world) kinds(name string) (kinds []workload.EventKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Workload == name {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// A node is one scaler at work.
type node struct {
	*scaler.Scaler
	link *link
	stop func() // ends it cleanly
	reg  *prometheus.Registry
}

// kill ends it without any last word.
func (n *node) kill() {
	n.link.cut.Store(true)
	n.stop()
}

// scaler starts one more scaler on the same store and engine.
func (w *world) scaler(cfg scaler.Config, ws ...workload.Workload) *node {
	w.t.Helper()
	n := &node{link: &link{store: w.store}, reg: prometheus.NewRegistry()}
	cfg.Node, cfg.Logger, cfg.Registerer = "n1", slog.New(slog.DiscardHandler), n.reg
	if testing.Verbose() {
		cfg.Logger = slog.New(slog.NewTextHandler(w.t.Output(), nil))
	}
	n.Scaler = scaler.New(cfg, scaler.Deps{
		Runtimes: map[string]scaler.Runtime{"fake": w.engine}, Prober: w.engine, Store: n.link, Drainer: w,
		Recorder: w, Board: w.board, Connected: w.connected.Load,
	})
	n.Update(ws)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { assert.NoError(w.t, n.Run(ctx)) })
	n.stop = func() { cancel(); run.Wait() }
	w.t.Cleanup(n.stop)
	synctest.Wait()
	return n
}

func (w *world) state(name string) workload.State {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	return w.store.get(name)
}

// phases lists the phases that a workload went through, without repetition,
// and without the first word that it is asleep.
func (w *world) phases(name string) (ps []workload.Phase) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	for _, st := range w.store.writes {
		first := len(ps) == 0 && st.Phase == workload.Asleep && st.Generation == 0
		if st.Workload == name && !first && (len(ps) == 0 || ps[len(ps)-1] != st.Phase) {
			ps = append(ps, st.Phase)
		}
	}
	return ps
}

// put writes a state as somebody else would.
func (w *world) put(st workload.State) {
	w.t.Helper()
	st.Revision = w.state(st.Workload).Revision
	_, err := w.store.PutState(context.Background(), st)
	require.NoError(w.t, err)
}

func (w *world) fail(f func(op string, s workload.State) (fail, written bool)) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	w.store.fails = f
}

// ready checks that a workload is ready, and served by exactly what runs.
func (w *world) ready(name string, generation uint64) workload.State {
	w.t.Helper()
	st := w.state(name)
	require.Equal(w.t, workload.Ready, st.Phase, "%+v", st)
	require.Equal(w.t, generation, st.Generation)
	var ids []string
	for _, r := range st.Replicas {
		ids = append(ids, r.ID)
	}
	running := w.engine.running(name)
	slices.Sort(ids)
	slices.Sort(running)
	require.Equal(w.t, running, ids)
	return st
}

func spec(name string) workload.Workload {
	return workload.Workload{
		Name: name, Node: "n1", Runtime: "fake", IdleTimeout: time.Minute, WakeTimeout: time.Minute,
		StopTimeout: 10 * time.Second, Ready: workload.Readiness{Kind: workload.ReadyAuto},
	}
}

func ask(name string) workload.Wake {
	now := time.Now()
	return workload.Wake{ID: "w", Workload: name, Trigger: workload.TriggerRequest, Gateway: "g1", RequestedAt: now, PublishedAt: now}
}

// wake brings a workload up and checks that it is.
func (n *node) wake(t *testing.T, name string) {
	t.Helper()
	require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), ask(name)))
}
