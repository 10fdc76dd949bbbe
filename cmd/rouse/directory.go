package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rouse-dev/rouse/workload"
)

// A directory is what this process knows of all workloads: their
// descriptions, what is wrong with the others, and their last states. It is
// for the admin API and for finding a workload's node; requests never ask it.
// It is safe for concurrent use.
type directory struct {
	mu       sync.Mutex
	specs    map[string]workload.Workload // name -> description; guarded by mu
	problems []workload.Problem           // guarded by mu
	states   map[string]workload.State    // name -> last state; guarded by mu
	changed  chan struct{}                // closed and replaced with each state; guarded by mu
}

func newDirectory() *directory {
	return &directory{
		specs:   map[string]workload.Workload{},
		states:  map[string]workload.State{},
		changed: make(chan struct{}),
	}
}

// hasAll reports whether every one of them is described.
func (d *directory) hasAll(ws []workload.Workload) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range ws {
		if _, ok := d.specs[w.Name]; !ok {
			return false
		}
	}
	return true
}

// describe replaces every description.
func (d *directory) describe(ws []workload.Workload) {
	specs := make(map[string]workload.Workload, len(ws))
	for _, w := range ws {
		specs[w.Name] = w
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.specs = specs
}

// complain replaces what is wrong.
func (d *directory) complain(ps []workload.Problem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = ps
}

// observe takes in one state unless a later one is known.
func (d *directory) observe(s workload.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.Revision < d.states[s.Workload].Revision {
		return
	}
	d.states[s.Workload] = s
	close(d.changed)
	d.changed = make(chan struct{})
}

// reset forgets the states: the store was replaced.
func (d *directory) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.states)
}

func (d *directory) find(name string) (workload.Workload, workload.State, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, ok := d.specs[name]
	return w, d.stateOf(name), ok
}

// stateOf is called with mu held.
func (d *directory) stateOf(name string) workload.State {
	s := d.states[name]
	s.Workload = name
	return s
}

// list gives the names in order.
func (d *directory) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(maps.Keys(d.specs), strings.Compare)
}

// nodes gives the nodes that have workloads.
func (d *directory) nodes() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[string]bool{}
	for _, w := range d.specs {
		known[w.Node] = true
	}
	return slices.Sorted(maps.Keys(known))
}

func (d *directory) wrong() []workload.Problem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.problems)
}

// await blocks until the state of name satisfies done, and returns it, or
// until ctx ends, and returns the last state and ctx's error.
func (d *directory) await(ctx context.Context, name string, done func(workload.State) bool) (workload.State, error) {
	for {
		d.mu.Lock()
		s, changed := d.stateOf(name), d.changed
		d.mu.Unlock()
		if done(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	}
}
