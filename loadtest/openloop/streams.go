//go:build linux

package openloop

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// streams is a run over h2c: Conns times Streams workers, of which one at a
// time waits for the next arrival and then sends it itself, so that nothing
// has to be handed over between due and sent.
type streams struct {
	targets []target
	giveUp  context.Context // ends what is in flight when the run is ended

	turn     sync.Mutex    // held by the worker that waits
	sends    schedule.Next // guarded by turn
	number   uint64        // guarded by turn
	finished bool          // guarded by turn: nothing more is sent

	mu sync.Mutex // guards the book, but for stop, now and cfg
	*book
}

func runStreams(ctx context.Context, b *book, address string, targets []target) error {
	giveUp, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	s := &streams{targets: targets, giveUp: giveUp, sends: b.cfg.Schedule.Arrivals(), number: firstID(), book: b}
	conns := make([]*streamConn, b.cfg.Conns)
	for i := range conns {
		conns[i] = newStreamConn(address, s.dialled)
		defer conns[i].close()
		if _, err := conns[i].get(giveUp); err != nil {
			b.fault("before the start: " + err.Error())
		}
	}
	s.open()
	var workers sync.WaitGroup
	for range b.cfg.Streams {
		for _, c := range conns {
			workers.Go(func() { s.work(c) })
		}
	}
	over := make(chan struct{})
	go func() { workers.Wait(); close(over) }()
	s.watch(over, cancel)
	return nil
}

func (s *streams) dialled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.result.DialsMeasured++
}

// watch ends the run when it is time, and returns when nobody works.
func (s *streams) watch(over <-chan struct{}, cancel func()) {
	ticks := time.NewTicker(patrol)
	defer ticks.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticks.C:
		}
		now := s.now()
		s.mu.Lock()
		s.look(now)
		s.tick(now)
		if s.ended(now) {
			cancel()
		}
		s.mu.Unlock()
	}
}

func (s *streams) work(c *streamConn) {
	for {
		job, more := s.await()
		if !more {
			return
		}
		s.exchange(c, job)
	}
}

// A job is a request to be sent now.
type job struct {
	send
	target *target
	id     http1.ID
}

// await gives the next arrival when it is due, and false when there is none
// or the run has ended.
func (s *streams) await() (job, bool) {
	free := s.now()
	s.turn.Lock()
	defer s.turn.Unlock()
	if s.finished || s.giveUp.Err() != nil {
		return job{}, false
	}
	arrival, more := s.sends()
	if !more || !s.sleepUntil(arrival.At) {
		s.finished = true
		return job{}, false
	}
	s.number++
	now := s.now()
	j := job{
		send{arrival.At, now, now - max(arrival.At, free)},
		&s.targets[arrival.Target%len(s.targets)], http1.NewID(s.number),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(now)
	s.start(j.send)
	return j, true
}

// sleepUntil is false when the run ended before.
func (s *streams) sleepUntil(at time.Duration) bool {
	for {
		d := at - s.now()
		if d <= 0 {
			return true
		}
		if s.giveUp.Err() != nil {
			return false
		}
		sharpen() // this may be another thread than the last time
		limit := unix.NsecToTimespec(min(d, patrol).Nanoseconds())
		_ = unix.Nanosleep(&limit, nil) // interrupted: once more
	}
}

func (s *streams) exchange(c *streamConn, j job) {
	ctx, cancel := context.WithTimeout(s.giveUp, s.cfg.Timeout)
	defer cancel()
	e, err := c.ask(ctx, j)
	e.at = s.now()
	switch {
	case err == nil:
	case s.giveUp.Err() != nil:
		e = end{outcome: Unfinished}
	case errors.Is(err, context.DeadlineExceeded):
		e = end{outcome: TimedOut, reason: "timeout: no answer within " + s.cfg.Timeout.String()}
	default:
		e.reason = e.outcome.String() + ": " + err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finish(j.send, e)
}
