// Package simulation runs whole nodes, gateways and scalers as they are, on a
// bus, an engine and clients that are simulated, in the time of
// testing/synctest, from a seed: what arrives when, what gets lost, what
// breaks is decided by the seed alone, so that a run can be had again.
//
// What must hold is checked while it runs (rules_test.go) and at its end
// (calm_test.go). A seed that breaks a rule prints what happened, and
//
//	go test ./system_test/simulation -run TestSimulation -sim.seed=N -v
//
// gives it again. Many more than the tests run are had by
//
//	go test ./system_test/simulation -run TestSimulation -sim.from=100000 -sim.for=10m -timeout 0
package simulation

import (
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/workload"
)

const detail = false

// A world is one simulation.
type world struct {
	plan     *plan
	mutant   mutant
	dice     *dice
	rules    *rules
	engine   *engine
	bus      *bus
	gateways []*place
	scalers  []*place
	tasks    sync.WaitGroup // all that must have ended in the end
	*trace

	countMu sync.Mutex
	counts  map[string]int // guarded by countMu

	mu     sync.Mutex // guards the bus, the engine, and what follows; no node is called under it
	storm  bool       // things go wrong
	named  map[string]*scalerNode
	leased map[*request]struct{}
	asked  map[string]bool // of a mutant

	troubledAt time.Time // when a node, the bus or the engine was last seen away
}

func newWorld(p *plan, m mutant) *world {
	w := &world{
		plan: p, mutant: m, dice: newDice(p.seed), trace: &trace{begun: time.Now()}, counts: map[string]int{}, storm: true,
		named: map[string]*scalerNode{}, leased: map[*request]struct{}{}, asked: map[string]bool{},
	}
	w.rules, w.engine, w.bus = newRules(w), newEngine(w), newBus(w)
	w.bus.catalog, w.bus.version = p.specs, 1
	for i := range p.gateways {
		w.gateways = append(w.gateways, &place{w: w, name: fmt.Sprintf("g%d", i+1), make: func(p *place) node { return newGateway(w, p) }})
	}
	for i := range p.scalers {
		w.scalers = append(w.scalers, &place{w: w, name: fmt.Sprintf("s%d", i+1), make: func(p *place) node { return newScalerNode(w, p) }})
	}
	return w
}

// do runs f under the lock of the world.
func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// did counts something.
func (w *world) did(what string) {
	w.countMu.Lock()
	defer w.countMu.Unlock()
	w.counts[what]++
}

func (w *world) at(p *place) (n node) {
	w.do(func() { n = p.node })
	return n
}

// scalerOf finds a scaler by the name of its incarnation. Under world.mu.
func (w *world) scalerOf(name string) *scalerNode { return w.named[name] }

// delay is how long a message takes.
func (w *world) delay(a about) time.Duration {
	a.what += " takes"
	if w.dice.chance(a, w.plan.tails) {
		return w.dice.between(a, w.plan.low, w.plan.tail)
	}
	return w.dice.between(a, w.plan.low, w.plan.high)
}

// lost reports whether a message is.
func (w *world) lost(a about) bool {
	a.what += " lost"
	return w.dice.chance(a, w.plan.loss)
}

// An outcome is what came of one seed.
type outcome struct {
	seed   uint64
	broken []string
	counts map[string]int
	trace  *trace
	spent  time.Duration // of the simulation's own time
}

func (o *outcome) failed() bool { return len(o.broken) > 0 }

// simulate runs one seed in a bubble of its own.
func simulate(t *testing.T, p *plan, m mutant) (o *outcome) {
	var w *world
	defer func() {
		if trouble := recover(); trouble != nil { // a goroutine is left, or all stand still
			o = &outcome{seed: p.seed, broken: []string{fmt.Sprint(trouble)}, trace: &trace{}}
			if w != nil {
				o.trace, o.counts = w.trace, w.counts
			}
			if _, ours := trouble.(error); !ours {
				o.broken = append(o.broken, string(debug.Stack()))
			}
		}
	}()
	bubble.Test(t, func(*testing.T) {
		w = newWorld(p, m)
		w.run()
		o = &outcome{seed: p.seed, broken: w.rules.all(), counts: maps.Clone(w.counts), trace: w.trace, spent: time.Since(w.begun)}
	})
	return o
}

// run lets the storm pass and then checks that all comes to rest.
func (w *world) run() {
	w.begin()
	var clients sync.WaitGroup
	clients.Go(func() { w.arrive(&clients) })
	clients.Go(w.strikeAll)
	for until := w.begun.Add(w.plan.storm); time.Now().Before(until); {
		time.Sleep(time.Second + 7)
		synctest.Wait()
		w.compare()
	}
	w.do(func() { w.storm = false })
	w.note("world", "calm")
	w.calm(&clients)
	w.end()
}

// begin starts the nodes one after the other.
func (w *world) begin() {
	for _, p := range append(append([]*place(nil), w.scalers...), w.gateways...) {
		time.Sleep(w.dice.between(about{"begin", p.name, ""}, time.Millisecond, 50*time.Millisecond))
		p.start()
	}
}

// arrive sends the requests that were planned.
func (w *world) arrive(clients *sync.WaitGroup) {
	for i, a := range w.plan.arrivals {
		time.Sleep(time.Until(w.begun.Add(a.at)))
		clients.Go(func() { _ = w.send(a, fmt.Sprintf("r%d", i)) })
	}
}

func (w *world) strikeAll() {
	for _, f := range w.plan.faults {
		time.Sleep(time.Until(w.begun.Add(f.at)))
		w.strike(f)
	}
}

// compare checks that each gate's view is the truth. Nothing runs meanwhile.
func (w *world) compare() {
	w.do(w.rules.stale)
	for _, p := range w.gateways {
		g, ok := w.at(p).(*gateway)
		if !ok {
			continue
		}
		for _, v := range g.act.Views() {
			var is traffic
			w.do(func() { is = *g.traffic(v.Name) })
			if v.InFlight != is.leased || v.Queued != is.waiting {
				w.rules.broke("%s sees %d in flight and %d held of %s, there are %d and %d", g.name, v.InFlight, v.Queued, v.Name, is.leased, is.waiting)
			}
			if v.Queued > w.plan.queue {
				w.rules.broke("%s holds %d of %s", g.name, v.Queued, v.Name)
			}
		}
	}
}

// troubled reports that a scaler, the bus or the engine is away, or has come
// back of late. Under world.mu.
func (w *world) troubled() bool {
	here := w.bus.up && !w.engine.away && len(w.bus.catalog) == len(w.plan.specs)
	for _, p := range w.scalers {
		n, ok := p.node.(*scalerNode)
		here = here && ok && p.cuts == 0 && n.conn.connected
	}
	if !here {
		w.troubledAt = time.Now()
	}
	return time.Since(w.troubledAt) < 2*lateness
}

// phases gives the stored phase of each workload.
func (w *world) phases() map[string]workload.Phase {
	w.mu.Lock()
	defer w.mu.Unlock()
	phases := map[string]workload.Phase{}
	for _, s := range w.plan.specs {
		phases[s.Name] = w.rules.stored(s.Name).Phase
	}
	return phases
}
