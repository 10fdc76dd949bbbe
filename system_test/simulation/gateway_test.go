package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

const activityEvery = time.Second

var (
	errDied   = errors.New("the gateway died")
	errCutOff = errors.New("the gateway is going down")
)

// A gateway is one that runs: the activator, wired to the bus as cmd/rouse
// does it.
type gateway struct {
	w     *world
	place *place
	name  string
	conn  *conn
	act   *activator.Activator
	feed  *feed
	bell  chan struct{} // rings when the catalog has to be read
	back  chan struct{} // rings when the connection is back

	requests context.Context // of those that it serves
	breakOff context.CancelCauseFunc
	base     context.Context
	end      context.CancelFunc
	running  sync.WaitGroup // requests; Add only under world.mu
	done     chan struct{}

	serving, leaving bool            // guarded by world.mu
	known            map[string]bool // the catalog; guarded by world.mu
	version          int             // of it; guarded by world.mu
	farewell         bool            // it was heard since it no longer listens; guarded by world.mu
	heard            time.Time       // when the bus has last heard of it; guarded by world.mu
	truth            map[string]*traffic
}

// A traffic is what is true of one workload at one gateway.
type traffic struct{ waiting, leased int }

func newGateway(w *world, p *place) *gateway {
	g := &gateway{
		w: w, place: p, name: p.incarnation(), conn: &conn{w: w, name: p.name},
		bell: make(chan struct{}, 1), back: make(chan struct{}, 1), done: make(chan struct{}), truth: map[string]*traffic{}, known: map[string]bool{},
	}
	g.requests, g.breakOff = context.WithCancelCause(context.Background())
	g.base, g.end = context.WithCancel(context.Background())
	g.act = activator.New(activator.Config{
		Gateway: g.name, QueueRequests: w.plan.queue,
		Rand: func(name string) float64 { return w.dice.float(about{"chance", p.name, name}) },
	}, g)
	g.conn.onConnected = []func(){func() { poke(g.bell) }, func() { poke(g.back) }}
	return g
}

// run begins once the bus is reached, and ends with base.
func (g *gateway) run() {
	defer close(g.done)
	ready := make(chan struct{}, 1)
	g.conn.onConnected = append(g.conn.onConnected, func() { poke(ready) })
	g.w.do(func() { g.w.connect(g.conn) })
	select {
	case <-ready:
	case <-g.base.Done():
		return
	}
	g.feed = newFeed(g.conn, g.w.bus.states, func(r record, _ time.Time) { g.act.Observe(decodeState(r)) }, g.act.Reset)
	g.w.do(func() { g.w.bus.drained = append(g.w.bus.drained, g) })
	var parts sync.WaitGroup
	parts.Go(func() { _ = g.act.Run(g.base) })
	parts.Go(func() { g.feed.run(g.base) })
	parts.Go(func() { g.followCatalog(g.base) })
	parts.Go(func() { g.report(g.base) })
	parts.Go(func() { g.introduce(g.base) })
	parts.Wait()
	g.w.do(func() {
		for i, other := range g.w.bus.drained {
			if other == g {
				g.w.bus.drained = append(g.w.bus.drained[:i:i], g.w.bus.drained[i+1:]...)
				break
			}
		}
	})
}

// introduce makes itself known before it serves anything.
func (g *gateway) introduce(ctx context.Context) {
	for {
		_, err := retry(ctx, g.conn, about{"introduce", g.conn.name, ""}, func() (struct{}, error) {
			g.tell(g.activity(false))
			return struct{}{}, nil
		})
		if err == nil {
			break
		}
		if !g.w.rest(ctx, about{"introduce again", g.conn.name, ""}, activityEvery/4) {
			return
		}
	}
	g.w.do(func() { g.serving = !g.leaving && !g.conn.dead })
	g.w.note(g.name, "serves")
}

func (g *gateway) activity(last bool) workload.Activity {
	a := g.act.Activity()
	a.Leaving = last
	return a
}

// tell writes an activity into its stream. Under world.mu.
func (g *gateway) tell(a workload.Activity) {
	if !g.leaving {
		a.Place = g.place.name
	}
	g.heard, g.farewell = time.Now(), g.leaving
	if g.w.mutant.noInFlight {
		a.Loads = nil
	}
	g.w.bus.activity.write(g.name, "", a)
}

func (g *gateway) report(ctx context.Context) {
	tick := time.NewTicker(activityEvery)
	defer tick.Stop()
	for {
		a := g.activity(false)
		_ = g.conn.send("activity", "", func() { g.tell(a) })
		select {
		case <-tick.C:
		case <-g.act.Changed():
		case <-g.back:
		case <-ctx.Done():
			a := g.activity(true)
			_ = g.conn.send("activity", "", func() { g.tell(a) })
			return
		}
	}
}

// drain answers a drain, as the activator does.
func (g *gateway) drain(name string, revision uint64) workload.Drained {
	if g.w.mutant.openDrain {
		revision = 0
	}
	d := g.act.Drain(name, revision)
	d.Gateway = g.name
	d.Open = d.Open && !g.w.mutant.openDrain
	if g.w.mutant.noInFlight {
		d.InFlight, d.Queued = 0, 0
	}
	g.w.note(g.name, "drained of %s %d", name, revision)
	return d
}

// followCatalog keeps the gates those of the catalog.
func (g *gateway) followCatalog(ctx context.Context) {
	type catalog struct {
		version   int
		workloads []workload.Workload
	}
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		c, err := call(ctx, g.conn, about{"catalog", g.conn.name, ""}, func() (catalog, error) {
			return catalog{g.w.bus.version, g.w.bus.catalog}, nil
		})
		if err == nil && c.version != g.version {
			g.version = c.version
			g.act.Update(c.workloads)
			g.w.do(func() { g.known = names(c.workloads) })
		}
		if err != nil && g.w.rest(ctx, about{"catalog again", g.conn.name, ""}, checkAgain) {
			continue
		}
		select {
		case <-g.bell:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func names(ws []workload.Workload) map[string]bool {
	known := map[string]bool{}
	for _, w := range ws {
		known[w.Name] = true
	}
	return known
}

// Wake puts an ask on its way, and reads the state again.
func (g *gateway) Wake(ctx context.Context, ask workload.Wake) error {
	known := false
	g.w.do(func() { known = g.known[ask.Workload] })
	if !known {
		return fmt.Errorf("wake %s: not in the catalog", ask.Workload)
	}
	if g.w.mutant.wakeOnce && g.repeats(ask) {
		return nil
	}
	_, err := retry(ctx, g.conn, about{"wake", g.conn.name, ask.Workload}, func() (struct{}, error) {
		g.w.bus.wakes.publish(ask)
		return struct{}{}, nil
	})
	g.w.note(g.name, "asks for %s of generation %d, unreachable %v: %v", ask.Workload, ask.Generation, ask.Unreachable, err)
	if g.w.mutant.blindFeed {
		return err
	}
	if s, readErr := (store{g.conn, g.name}).State(ctx, ask.Workload); readErr == nil {
		g.act.Observe(s)
	}
	return err
}

// repeats is what a mutant asks: the second ask of a cold start is not sent,
// and the first may get lost.
func (g *gateway) repeats(ask workload.Wake) (again bool) {
	g.w.do(func() {
		again = g.w.asked[ask.ID]
		g.w.asked[ask.ID] = true
	})
	return again || g.w.dice.chance(about{"wake lost", g.conn.name, ask.Workload}, 0.05)
}

// crash ends it without a word: nothing leaves it any more, and then it ends.
func (g *gateway) crash() {
	g.w.do(func() { g.conn.dead, g.serving = true, false })
	g.breakOff(errDied)
	g.end()
	<-g.done
	g.running.Wait()
}

// stop ends it in good order: the last requests are waited for.
func (g *gateway) stop() {
	g.w.do(func() { g.serving, g.leaving = false, true })
	ended := make(chan struct{})
	go func() { g.running.Wait(); close(ended) }()
	grace := time.NewTimer(g.w.plan.grace)
	defer grace.Stop()
	select {
	case <-ended:
	case <-grace.C:
		g.breakOff(errCutOff)
		<-ended
	}
	g.end()
	<-g.done
	g.breakOff(errCutOff)
	time.Sleep(closing) // what it has said leaves
	g.w.do(func() { g.conn.dead = true })
}
