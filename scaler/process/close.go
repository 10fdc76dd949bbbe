//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Close ends everything that runs, whichever runtime started it, and forgets
// the rest. Each process has its stop timeout to end by itself; when ctx ends
// first, what is left is killed. It returns once all is over, with an error
// if something survived.
func (r *Runtime) Close(ctx context.Context) error {
	procs := r.shut()
	for _, p := range procs {
		p.ask(p.Grace)
	}
	err := awaitAll(ctx, procs)
	r.Detach()
	return err
}

// Detach leaves everything that runs alone, for the next runtime to adopt,
// and returns once nothing here watches it any more.
func (r *Runtime) Detach() {
	r.shut()
	r.mu.Lock()
	select {
	case <-r.detached:
	default:
		close(r.detached)
	}
	r.mu.Unlock()
	r.owners.Wait()
}

// shut lets nothing start any more, and returns what runs.
func (r *Runtime) shut() []*proc {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var procs []*proc
	for _, s := range r.slots {
		if s.proc != nil {
			procs = append(procs, s.proc)
		}
	}
	return procs
}

func (r *Runtime) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// afterKill is how long the kernel may take to end what was killed.
const afterKill = 5 * time.Second

func awaitAll(ctx context.Context, procs []*proc) error {
	var left []error
	for _, p := range procs {
		select {
		case <-p.gone:
			continue
		case <-ctx.Done():
		}
		p.ask(0)
		select {
		case <-p.gone:
		case <-time.After(afterKill):
			left = append(left, fmt.Errorf("end %s: process %d survived its kill", p.Workload, p.PID))
		}
	}
	return errors.Join(left...)
}
