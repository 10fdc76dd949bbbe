package simulation

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// closing is how long a node that ends keeps its connection for what it said
// last.
const closing = 250 * time.Millisecond

// A scalerNode is a scaler that runs, wired to the bus and the engine as
// cmd/rouse does it.
type scalerNode struct {
	w        *world
	place    *place
	name     string
	conn     *conn
	platform *platform
	board    *workload.Board
	scaler   *scaler.Scaler
	feed     *feed // of the gateways' activity
	wakes    *wakeServer

	base context.Context
	end  context.CancelFunc
	asks sync.WaitGroup // to sleep; Add only under world.mu
	done chan struct{}
}

func newScalerNode(w *world, p *place) *scalerNode {
	n := &scalerNode{
		w: w, place: p, name: p.incarnation(), conn: &conn{w: w, name: p.name},
		board: workload.NewBoard(), done: make(chan struct{}),
	}
	n.base, n.end = context.WithCancel(context.Background())
	n.platform = &platform{engine: w.engine, node: n.name, name: p.name, calls: map[string]string{}}
	lost := w.plan.lostGateway
	if w.mutant.hasty {
		lost = time.Nanosecond
	}
	n.scaler = scaler.New(scaler.Config{
		Node: "n", Owner: n.name, StartsInParallel: 2, LostGateway: lost, Logger: slog.New(slog.DiscardHandler),
		Rand: func(name string) float64 { return w.dice.float(about{"chance", p.name, name}) },
	}, scaler.Deps{
		Runtimes: map[string]scaler.Runtime{"sim": n.platform}, Prober: n.platform, Store: store{n.conn, n.name},
		Drainer: drainer{n.conn}, Board: n.board, Connected: n.hearsGateways,
	})
	n.wakes = &wakeServer{conn: n.conn, handle: n.scaler.Wake}
	return n
}

// hearsGateways reports that the last words of every gateway were read since
// the connection stands.
func (n *scalerNode) hearsGateways() (hears bool) {
	n.w.do(func() { hears = n.conn.connected && n.feed != nil && n.feed.upTo == n.conn.number })
	return hears
}

// run begins once the bus is reached, and ends with base.
func (n *scalerNode) run() {
	defer close(n.done)
	ready := make(chan struct{}, 1)
	n.conn.onConnected = []func(){func() { poke(ready) }}
	n.w.do(func() { n.w.connect(n.conn) })
	select {
	case <-ready:
	case <-n.base.Done():
		return
	}
	n.w.do(func() { n.conn.onConnected = []func(){n.scaler.Reconcile, n.bind} })
	f := newFeed(n.conn, n.w.bus.activity, n.hear, nil)
	n.w.do(func() { n.feed = f })
	n.update()
	var parts sync.WaitGroup
	parts.Go(func() { _ = n.scaler.Run(n.base) })
	parts.Go(func() { n.feed.run(n.base) })
	parts.Go(func() { n.wakes.run(n.base) })
	n.bind()
	parts.Wait()
}

func (n *scalerNode) hear(r record, at time.Time) { n.board.Hear(r.activity, at) }

// bind makes the queue hand out what waits.
func (n *scalerNode) bind() {
	_ = n.conn.send("bind", "", func() { n.w.bus.wakes.resume() })
}

// update takes the catalog, which a scaler makes itself.
func (n *scalerNode) update() {
	var ws []workload.Workload
	n.w.do(func() { ws = n.w.bus.catalog })
	n.scaler.Update(ws)
}

// sleep asks for a workload to be put to sleep, as a person does.
func (n *scalerNode) sleep(name string) {
	begun := false
	n.w.do(func() {
		if begun = n.scaler != nil && n.base.Err() == nil; begun {
			n.asks.Add(1)
		}
	})
	if !begun {
		return
	}
	go func() {
		defer n.asks.Done()
		ctx, cancel := context.WithTimeout(n.base, n.w.dice.between(about{"sleep limit", n.conn.name, name}, time.Second, 30*time.Second))
		defer cancel()
		err := n.scaler.Sleep(ctx, name)
		n.w.note(n.name, "asked to put %s to sleep: done %v", name, err == nil)
	}()
}

func (n *scalerNode) crash() {
	n.w.do(func() {
		n.conn.dead, n.platform.dead = true, true
		n.end()
	})
	<-n.done
	n.asks.Wait()
}

func (n *scalerNode) stop() {
	n.w.do(n.end)
	<-n.done
	n.asks.Wait()
	time.Sleep(closing)
	n.w.do(func() { n.conn.dead, n.platform.dead = true, true })
}
