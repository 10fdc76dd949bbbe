package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/scaler/probe"
	"github.com/rouse-dev/rouse/scaler/process"
	"github.com/rouse-dev/rouse/workload"
)

// closeTimeout bounds the end of the processes that a node started.
const closeTimeout = 30 * time.Second

// A node is the scaler of one machine: its runtimes, the catalog that is made
// of what they have, and the wires to the events.
type node struct {
	*core
	docker  *docker.Runtime // nil: this node has no containers
	process *process.Runtime
	scaler  *scaler.Scaler
	hooks   *webhooks
	board   *workload.Board // what every gateway says, this process's included

	mu  sync.Mutex
	cfg Config // its defaults and entries make the catalog; guarded by mu

	published atomic.Pointer[workload.Catalog] // the last one that was told

	reload     chan struct{}   // see again; buffered 1
	complained map[string]bool // problems that were logged; of keepCatalog alone
}

// newNode wires a scaler. Close has to follow.
func newNode(ctx context.Context, c *core) (*node, error) {
	if err := c.monitorNATS(); err != nil {
		return nil, err
	}
	n := &node{core: c, cfg: c.cfg, board: workload.NewBoard(), reload: make(chan struct{}, 1)}
	runtimes := map[string]scaler.Runtime{}
	if err := n.openDocker(ctx); err != nil {
		return nil, err
	}
	if n.docker != nil {
		runtimes["docker"] = named{n.docker, n.named}
	}
	p, err := process.New(process.Config{Dir: filepath.Join(c.cfg.NATS.StoreDir, "process"), Logger: c.log})
	if err != nil {
		return nil, err
	}
	n.process = p
	runtimes["process"] = p
	n.scaler = scaler.New(scaler.Config{
		Node: c.cfg.Node, StartsInParallel: c.cfg.Limits.StartsInParallel,
		LostGateway: c.cfg.Limits.LostGatewayAfter, Tracer: c.tracer(), Logger: c.log, Registerer: c.reg,
	}, scaler.Deps{
		Runtimes: runtimes, Prober: probe.New(), Store: store{c.bus}, Drainer: c.bus, Recorder: c.bus,
		Board: n.board, Connected: c.bus.HearsGateways,
	})
	if n.hooks, err = newWebhooks(c, n.again); err != nil {
		return nil, err
	}
	c.onActivity = append(c.onActivity, n.board.Hear)
	c.whenReconnected(n.scaler.Reconcile)
	return n, nil
}

// openDocker connects to the engine. One that does not answer is an error,
// unless nobody asked for containers: the address is the default and the
// file's workloads are processes.
func (n *node) openDocker(ctx context.Context) error {
	cfg := n.core.cfg.Docker
	if cfg.Host == "" {
		return nil
	}
	d, err := docker.New(docker.Config{
		Host: cfg.Host, LabelPrefix: cfg.LabelPrefix, ForeignPrefixes: foreignPrefixes(n.core.cfg.Compat),
		Address: docker.Addressing(cfg.Address), Logger: n.log,
	})
	if err != nil {
		return fail(exitConfig, fmt.Errorf("docker.host: %w", err))
	}
	if err := d.Ping(ctx); err != nil {
		if n.needsDocker() {
			return fail(exitUnreachable, err)
		}
		n.log.Warn("no docker engine, only processes are run", "error", err)
		return nil
	}
	n.docker = d
	return nil
}

func foreignPrefixes(products []compat) []string {
	var prefixes []string
	for _, p := range products {
		prefixes = append(prefixes, string(p))
	}
	return prefixes
}

func (n *node) needsDocker() bool {
	if n.core.cfg.Origin("docker.host") != "default" || len(n.core.cfg.Workloads) == 0 {
		return true
	}
	for _, e := range n.core.cfg.Workloads {
		if e.Process == nil {
			return true
		}
	}
	return false
}

// run looks after the node's workloads until ctx ends.
func (n *node) run(ctx context.Context) error {
	return together(ctx,
		n.scaler.Run,
		n.keepCatalog,
		func(ctx context.Context) error { return n.bus.ServeWakes(ctx, n.core.cfg.Node, wakesInHand, n.wake) },
		func(ctx context.Context) error { return n.bus.ServeSleep(ctx, n.core.cfg.Node, n.sleep) },
		func(ctx context.Context) error { return n.bus.ServeKeep(ctx, n.core.cfg.Node, n.scaler.Keep) },
		func(ctx context.Context) error { return n.bus.ServeLogs(ctx, n.core.cfg.Node, n.scaler.Logs) },
		n.hooks.run,
		forgetting(n.board),
	)
}

// wakesInHand is how many wakes a node works on or keeps waiting for a place
// at a time. Places are limited by starts_in_parallel, not by this; it only
// has to be larger than the number of workloads that wake at once.
const wakesInHand = 1000

func (n *node) wake(ctx context.Context, w workload.Wake) events.Verdict {
	switch v := n.scaler.Wake(ctx, w); v.Kind {
	case scaler.Later:
		return events.Later(v.After)
	case scaler.Permanent:
		return events.Permanent(v.Reason)
	}
	return events.Done()
}

func (n *node) sleep(ctx context.Context, name string) error {
	err := n.scaler.Sleep(ctx, name)
	switch {
	case errors.Is(err, scaler.ErrInUse):
		return &events.AskError{Code: codeInUse, Message: err.Error()}
	case errors.Is(err, scaler.ErrUnsure):
		return &events.AskError{Code: codeUnsure, Message: err.Error()}
	}
	return err
}

// keepCatalog makes the catalog anew whenever containers or the configuration
// change, and tells everybody who needs it.
func (n *node) keepCatalog(ctx context.Context) error {
	var changed <-chan struct{}
	if n.docker != nil {
		changed = n.docker.Changed()
	}
	again := time.NewTicker(time.Minute) // brings back what a lost store lost
	defer again.Stop()
	if err := n.awaitDocker(ctx); err != nil {
		return nil
	}
	for {
		n.settle(ctx)
		n.publish(ctx)
		select {
		case <-changed:
		case <-n.reload:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// again has the catalog made and told anew.
func (n *node) again() {
	select {
	case n.reload <- struct{}{}:
	default:
	}
}

// awaitDocker blocks until the containers are known: a catalog without them
// would take their routes away from every gateway.
func (n *node) awaitDocker(ctx context.Context) error {
	if n.docker == nil {
		return nil
	}
	return poll(ctx, n.docker.Connected)
}

// settle waits until changed containers have been looked at, for a second at
// most: one that is recreated is unknown for a moment, and its route must not
// go for that.
func (n *node) settle(ctx context.Context) {
	if n.docker == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = poll(ctx, n.docker.Settled) // then as it is
}

// poll blocks until cond holds or ctx ends.
func poll(ctx context.Context, cond func() bool) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// known blocks until this node's first catalog has come back over the events.
func (n *node) known(ctx context.Context) error {
	return poll(ctx, func() bool { c := n.published.Load(); return c != nil && n.dir.hasAll(c.Workloads) })
}

// publish makes the catalog and tells the scaler, and the gateways through
// the events. What could not be told is told again a second later.
func (n *node) publish(ctx context.Context) {
	c := n.build()
	n.complain(c.Problems)
	n.scaler.Update(c.Workloads)
	for {
		err := n.bus.ReplaceProblems(ctx, n.core.cfg.Node, slices.Concat(c.Problems, n.hooks.problems()))
		if err == nil {
			err = n.bus.ReplaceWorkloads(ctx, n.core.cfg.Node, c.Workloads)
		}
		if err == nil {
			n.published.Store(&c)
			return
		}
		if ctx.Err() != nil {
			return
		}
		n.log.Warn("workloads not told", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

func (n *node) build() workload.Catalog {
	in := catalog.Input{Node: n.core.cfg.Node, Prefix: n.core.cfg.Docker.LabelPrefix}
	n.mu.Lock()
	in.Defaults, in.Entries = n.cfg.Defaults, n.cfg.Workloads
	n.mu.Unlock()
	if n.docker != nil {
		in.Containers = n.docker.Containers()
	}
	return catalog.Build(in)
}

// ready is what a scaler needs beside the events.
func (n *node) ready(ctx context.Context) []api.Check {
	checks := append(n.core.ready(ctx), api.Check{Name: "catalog", OK: n.published.Load() != nil, Detail: "what this node has was told"})
	if n.docker != nil {
		checks = append(checks, api.Check{Name: "docker", OK: n.docker.Connected(), Detail: "events of the engine at " + n.core.cfg.Docker.Host})
	}
	return checks
}

// close ends what the node started and must not outlive it: its processes.
// Containers stay as they are, and are adopted by the next.
func (n *node) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return n.process.Close(ctx)
}

// store is the events' bucket with the scaler's errors.
type store struct{ *events.Bus }

// State goes on from a record that nobody can read, which the bus has told
// of: the next write replaces it.
func (s store) State(ctx context.Context, name string) (workload.State, error) {
	return readable(s.Bus.State(ctx, name))
}

// Current is the same of what the leader has.
func (s store) Current(ctx context.Context, name string) (workload.State, error) {
	return readable(s.Bus.Current(ctx, name))
}

func readable(st workload.State, err error) (workload.State, error) {
	if errors.Is(err, events.ErrMalformed) {
		return st, nil
	}
	return st, err
}

// PutState is compare and set.
func (s store) PutState(ctx context.Context, st workload.State) (workload.State, error) {
	st, err := s.Bus.PutState(ctx, st)
	if errors.Is(err, events.ErrConflict) {
		return st, fmt.Errorf("%w: %w", scaler.ErrConflict, err)
	}
	return st, err
}

// named is a runtime that also knows the containers which the file names,
// sound or not: what an entry leaves out, only the container can tell.
type named struct {
	*docker.Runtime
	entries func() []workload.Workload
}

// Update adds what the file names to the workloads.
func (r named) Update(ws []workload.Workload) {
	known := map[string]bool{}
	for _, w := range ws {
		known[w.Name] = true
	}
	for _, w := range r.entries() {
		if !known[w.Name] {
			ws = append(ws, w)
		}
	}
	r.Runtime.Update(ws)
}

// named gives the file's entries for containers, as far as they name them.
func (n *node) named() []workload.Workload {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ws []workload.Workload
	for _, e := range n.cfg.Workloads {
		if e.Container != "" || e.Service != "" {
			ws = append(ws, workload.Workload{Name: e.Name, Node: n.core.cfg.Node, Runtime: "docker", Container: e.Container, Service: e.Service})
		}
	}
	return ws
}
