// Package scaler owns the phase of every workload of one node: it starts
// what is asked for, proves it ready, announces it, drains it once nobody
// uses it, and puts it to sleep. It declares Runtime, the platform it acts
// on.
//
// It knows neither HTTP nor how wakes and states travel nor any platform:
// Store, Drainer, Recorder and Runtime are handed to it.
//
// It guarantees that each change of a phase is one compare-and-set, that the
// start and the stop of one workload never overlap, that ready is proved and
// never assumed, and that nothing is stopped which might be in use: not while
// a gateway is silent, not while the events are away, not after a restart
// before a full idle timeout has passed. DESIGN.md has the states and rules.
package scaler

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Scaler looks after the workloads of one node. All methods are safe for
// concurrent use.
type Scaler struct {
	cfg     Config
	deps    Deps
	log     *slog.Logger
	metrics *metrics
	places  *places
	history *history
	watches map[string]*watch // runtime -> what is heard and listed of it; never changed

	silent  []string                  // gateways that were told of as silent; of Run's goroutine alone
	changed chan struct{}             // lives were added; buffered 1
	sighted atomic.Pointer[time.Time] // since when the gateways can be heard; nil: they cannot

	mu         sync.Mutex
	updated    bool                     // Update was called; guarded by mu
	lives      map[string]*life         // workload -> its life; guarded by mu
	ending     map[string]chan struct{} // workload -> closed when its former life has ended; guarded by mu
	dependants map[string][]string      // workload -> who needs it; guarded by mu
	rivals     map[string][]string      // workload -> for whom it makes way; replaced as a whole; guarded by mu
}

// New makes a scaler without workloads; nothing happens before Run.
func New(cfg Config, deps Deps) *Scaler {
	cfg = cfg.withDefaults()
	if deps.Connected == nil {
		deps.Connected = func() bool { return true }
	}
	s := &Scaler{
		cfg:     cfg,
		deps:    deps,
		log:     cfg.Logger.With("node", cfg.Node, "owner", cfg.Owner),
		places:  newPlaces(cfg.StartsInParallel),
		watches: map[string]*watch{},
		changed: make(chan struct{}, 1),
		lives:   map[string]*life{},
		ending:  map[string]chan struct{}{},
	}
	s.metrics = newMetrics(cfg.Registerer, s.eachLife)
	s.history = newHistory(deps.Recorder, s.log)
	for name, rt := range deps.Runtimes {
		s.watches[name] = newWatch(s, name, rt)
	}
	return s
}

// Run looks after the workloads until ctx ends, and returns nil once all that
// it began has ended. It is called once.
func (s *Scaler) Run(ctx context.Context) error {
	historyCtx, endHistory := context.WithCancel(context.WithoutCancel(ctx))
	var lives, rest sync.WaitGroup
	rest.Go(func() { s.history.run(historyCtx) })
	for _, w := range s.watches {
		lives.Go(func() { w.run(ctx) })
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.listen(time.Now())
		s.tellOfSilence(time.Now())
		for _, l := range s.unstarted() {
			lives.Go(func() { l.run(ctx) })
		}
		select {
		case <-ctx.Done():
		case <-s.changed:
		case <-tick.C:
		}
	}
	lives.Wait() // their last words belong to the history
	endHistory()
	rest.Wait()
	return nil
}

// Update replaces the workloads. What is new is looked after from now on, a
// new description applies from the next decision, and what is gone is left as
// it runs. Those of other nodes, or of a runtime that there is not, are
// ignored. The slice is not kept.
func (s *Scaler) Update(ws []workload.Workload) {
	ours := map[string]workload.Workload{}
	byRuntime := map[string][]workload.Workload{}
	for _, w := range ws {
		if w.Node != s.cfg.Node {
			continue
		}
		if s.watches[w.Runtime] == nil {
			s.log.Error("workload of a runtime that this node does not have", "workload", w.Name, "runtime", w.Runtime)
			continue
		}
		ours[w.Name] = w
		byRuntime[w.Runtime] = append(byRuntime[w.Runtime], w)
	}
	for name, watch := range s.watches {
		watch.runtime.Update(byRuntime[name])
	}
	s.replace(ours)
	for _, watch := range s.watches {
		watch.askAfresh()
	}
}

func (s *Scaler) replace(ours map[string]workload.Workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retire(ours)
	s.dependants = map[string][]string{}
	for name, w := range ours {
		for _, needed := range w.DependsOn {
			s.dependants[needed] = append(s.dependants[needed], name)
		}
		if l := s.lives[name]; l != nil {
			l.post(func() { l.spec = w })
		} else {
			s.lives[name] = newLife(s, w, s.ending[name])
		}
	}
	s.rivals = rivalsOf(ours)
	s.updated = true
	signal(s.changed)
}

// retire ends the lives of what is no longer ours, or runs elsewhere; s.mu is
// held.
func (s *Scaler) retire(ours map[string]workload.Workload) {
	maps.DeleteFunc(s.ending, func(_ string, done chan struct{}) bool { return closed(done) })
	for name, l := range s.lives {
		w, kept := ours[name]
		if kept && w.Runtime == l.watch.name {
			continue
		}
		l.remove()
		delete(s.lives, name)
		if l.started {
			s.ending[name] = l.done
		}
		if !kept {
			s.metrics.forget(name)
		}
	}
}

// Reconcile compares the store and the runtimes soon, without waiting for the
// next time it is due: after the events were away, for one. Nothing is put to
// sleep before every gateway has had the time to be heard again.
func (s *Scaler) Reconcile() {
	s.sighted.Store(nil)
	s.listen(time.Now())
	s.eachLife(func(l *life) { l.post(l.reconnected) })
	for _, w := range s.watches {
		w.askAfresh()
	}
}

// listen keeps count of how long the gateways could be heard without a break.
func (s *Scaler) listen(now time.Time) {
	switch {
	case !s.deps.Connected():
		s.sighted.Store(nil)
	case s.sighted.Load() == nil:
		s.sighted.Store(&now)
	}
}

func (s *Scaler) life(name string) *life {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives[name]
}

func (s *Scaler) eachLife(visit func(*life)) {
	s.mu.Lock()
	lives := make([]*life, 0, len(s.lives))
	for _, l := range s.lives {
		lives = append(lives, l)
	}
	s.mu.Unlock()
	for _, l := range lives {
		visit(l)
	}
}

func (s *Scaler) unstarted() []*life {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ls []*life
	for _, l := range s.lives {
		if !l.started {
			l.started = true
			ls = append(ls, l)
		}
	}
	return ls
}

// chance gives a part of d.
func (s *Scaler) chance(name string, d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.cfg.Rand(name))
}

// signal rings a bell that has room for one ring; a second one while the
// first is unheard says no more than the first.
func signal(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

func closed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// heard takes what is in a channel, if anything is.
func heard[T any](ch <-chan T) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func latest(ts ...time.Time) time.Time {
	var last time.Time
	for _, t := range ts {
		if t.After(last) {
			last = t
		}
	}
	return last
}
