//go:build linux

package process

import (
	"context"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
)

// A subscription is one Watch under way, with what it has not told yet. The
// queue is not bounded: its events are few, and the sink returns at once.
type subscription struct {
	mu     sync.Mutex
	queue  []scaler.Event // guarded by mu
	filled chan struct{}  // holds one token while the queue may have events
}

func (s *subscription) put(e scaler.Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

func (s *subscription) take() []scaler.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.queue
	s.queue = nil
	return events
}

// Watch tells the sink what happens to the processes of known workloads. No
// event is ever lost, so it resyncs once, at its beginning.
func (r *Runtime) Watch(ctx context.Context, sink func(scaler.Event)) error {
	s := &subscription{filled: make(chan struct{}, 1)}
	r.mu.Lock()
	r.subs[s] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.subs, s)
	}()
	sink(scaler.Event{Kind: scaler.Resynced, At: time.Now()})
	for {
		for _, e := range s.take() {
			sink(e)
		}
		select {
		case <-s.filled:
		case <-ctx.Done():
			return nil
		}
	}
}

// emitLocked tells every Watch what happened to a process. The caller holds
// mu, so that what is told first happened first.
func (r *Runtime) emitLocked(p *proc, e scaler.Event) {
	e.Workload, e.ID, e.At = p.Workload, p.id(), time.Now()
	r.log.Debug("process event", "workload", p.Workload, "pid", p.PID, "event", e.Kind.String(), "exit_code", e.ExitCode)
	if !r.known[p.Workload] {
		return
	}
	for s := range r.subs {
		s.put(e)
	}
}

// emitAlive tells of a pause or resumption, unless the process has ended:
// nothing comes after the news of its end.
func (r *Runtime) emitAlive(p *proc, e scaler.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.ending.Load() {
		r.emitLocked(p, e)
	}
}
