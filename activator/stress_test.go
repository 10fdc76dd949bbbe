package activator_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// started runs an activator with wiki for a test with real goroutines.
func started(tb testing.TB, cfg activator.Config, waker activator.Waker) *activator.Activator {
	tb.Helper()
	a := activator.New(cfg, waker)
	a.Update([]workload.Workload{{Name: "wiki", HoldTimeout: 30 * time.Second}})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return a
}

// Ready comes at any moment of an arrival: between its look and its wait too.
func TestNoArrivalMissesTheNews(t *testing.T) {
	a := started(t, activator.Config{}, &wakeLog{})
	g := a.Gate("wiki")
	for round := range uint64(300) {
		var arrivals sync.WaitGroup
		for range 8 {
			arrivals.Go(func() {
				lease, err := g.Acquire(context.Background(), activator.Ask{Hold: 20 * time.Second})
				assert.NoError(t, err, "the news was missed")
				lease.Release()
			})
		}
		a.Observe(ready(round+1, 2*round+1))
		arrivals.Wait()
		a.Observe(state(workload.Asleep, round+1, 2*round+2))
	}
	v := a.Views()[0]
	assert.Zero(t, v.Queued)
	assert.Zero(t, v.InFlight)
}

// The warm path looks, counts itself and looks again; a drain closes and then
// counts. In between is where a request could be overlooked.
func TestADrainThatFoundNothingHasOverlookedNothing(t *testing.T) {
	const drains = 60_000
	a := activator.New(activator.Config{}, &wakeLog{})
	a.Update([]workload.Workload{{Name: "wiki"}})
	g := a.Gate("wiki")
	var gone atomic.Uint64 // the last generation that a drain found free
	var over atomic.Bool
	var senders sync.WaitGroup
	for range 2 {
		senders.Go(func() {
			for i := 0; !over.Load(); i++ {
				// By turns: now the acquiring is what fills the time, then
				// the holding, with rests for drains to find nothing.
				slow := i >> 12 & 1
				for range slow * (i % 700) {
					gone.Load()
				}
				lease, err := g.Acquire(context.Background(), activator.Ask{NoWake: true})
				if err != nil {
					continue
				}
				generation := uint64(lease.Replica().StartedAt.Unix())
				for range 1 + slow*(i%1500) {
					if generation <= gone.Load() {
						t.Errorf("in flight on generation %d, which is gone", generation)
						over.Store(true)
						break
					}
				}
				lease.Release()
			}
		})
	}
	for n := uint64(1); n <= drains && !over.Load(); n++ {
		s := ready(n, 2*n)
		s.Replicas[0].StartedAt = time.Unix(int64(n), 0)
		a.Observe(s)
		if a.Drain("wiki", 2*n+1).InFlight == 0 {
			gone.Store(n)
		}
	}
	over.Store(true)
	senders.Wait()
	assert.Greater(t, gone.Load(), uint64(drains/100))
}

// A tallyOfEnds counts how the requests of the storm ended.
type tallyOfEnds struct {
	entered, served, canceled, full, late, failed atomic.Int64
}

func (e *tallyOfEnds) sum() int64 {
	return e.served.Load() + e.canceled.Load() + e.full.Load() + e.late.Load() + e.failed.Load()
}

func (e *tallyOfEnds) count(t *testing.T, err error) {
	var failed *activator.FailedError
	switch {
	case err == nil:
		e.served.Add(1)
	case errors.Is(err, activator.ErrCanceled):
		e.canceled.Add(1)
	case errors.Is(err, activator.ErrQueueFull):
		e.full.Add(1)
	case errors.Is(err, activator.ErrHoldTimeout):
		e.late.Add(1)
	case errors.As(err, &failed):
		e.failed.Add(1)
	default:
		t.Errorf("an end nobody knows: %v", err)
	}
}

const (
	stormRounds = 300
	stormBound  = 24
	stormers    = 40
)

// A storm opens, drains and closes one gate over and over while requests
// arrive, leave, time out and end.
type storm struct {
	t       *testing.T
	a       *activator.Activator
	ends    tallyOfEnds
	stopped [stormRounds + 2]atomic.Bool // by generation: its replica is gone
	over    atomic.Bool
}

// arrive sends one request after the other.
func (s *storm) arrive(seed int) {
	g := s.a.Gate("wiki")
	for i := seed; !s.over.Load(); i++ {
		ctx, cancel := context.WithCancel(context.Background())
		ask := activator.Ask{Hold: 10 * time.Second}
		switch i % 7 {
		case 0:
			ask.Hold = time.Duration(i%5) * 100 * time.Microsecond
		case 1:
			time.AfterFunc(time.Duration(i%9)*50*time.Microsecond, cancel)
		}
		s.ends.entered.Add(1)
		lease, err := g.Acquire(ctx, ask)
		s.ends.count(s.t, err)
		switch {
		case err == nil:
			s.use(&lease)
		case errors.Is(err, activator.ErrQueueFull):
			time.Sleep(200 * time.Microsecond) // or nobody else gets a turn
		}
		cancel()
	}
}

func (s *storm) use(lease *activator.Lease) {
	generation := lease.Replica().StartedAt.Unix()
	for range 3 {
		if s.stopped[generation].Load() {
			s.t.Error("in flight on a replica whose gate had drained")
		}
		runtime.Gosched()
	}
	lease.Answered()
	if s.stopped[generation].Load() {
		s.t.Error("in flight on a replica whose gate had drained")
	}
	lease.Release()
	lease.Release()
}

// up is Ready with a replica that tells its generation.
func (s *storm) up(generation, revision uint64) workload.State {
	up := ready(generation, revision)
	up.Replicas[0].StartedAt = time.Unix(int64(generation), 0)
	return up
}

// turn brings up a generation and takes it down.
func (s *storm) turn(generation, revision uint64) {
	up := s.up(generation, revision)
	s.a.Observe(up)
	for served := s.ends.served.Load(); s.ends.served.Load() < served+20; {
		runtime.Gosched()
	}
	switch generation % 3 {
	case 0: // it fails out of the blue; a drain's safety is not to be had
		s.a.Observe(state(workload.Failed, generation, revision+4))
		return
	case 1: // the news comes first
		s.a.Observe(state(workload.Draining, generation, revision+1))
	}
	for s.a.Drain("wiki", revision+2).InFlight > 0 {
		runtime.Gosched()
	}
	s.stopped[generation].Store(true)
	s.a.Observe(state(workload.Draining, generation, revision+2))
	s.a.Observe(up) // late
	s.a.Observe(state(workload.Asleep, generation, revision+3))
	s.a.Observe(state(workload.Draining, generation, revision+2))
}

func TestAStormOfOpeningsAndClosingsLosesNothing(t *testing.T) {
	cfg := activator.Config{QueueRequests: stormBound, QueueBytes: stormBound * 4096, TotalQueueBytes: stormBound * 4096}
	s := &storm{t: t, a: started(t, cfg, &wakeLog{})}
	var stormersDone sync.WaitGroup
	for i := range stormers {
		stormersDone.Go(func() { s.arrive(i * 1001) })
	}
	stormersDone.Go(func() {
		for !s.over.Load() {
			if q := s.a.Views()[0].Queued; q > stormBound {
				t.Errorf("%d held, bound is %d", q, stormBound)
			}
			runtime.Gosched()
		}
	})
	for g := range uint64(stormRounds) {
		s.turn(g+1, 10*g+1)
	}
	s.a.Observe(s.up(stormRounds+1, 10*stormRounds+1)) // lets the last go
	s.over.Store(true)
	stormersDone.Wait()

	e := &s.ends
	t.Logf("entered %d: served %d, canceled %d, full %d, too late %d, failed %d", e.entered.Load(),
		e.served.Load(), e.canceled.Load(), e.full.Load(), e.late.Load(), e.failed.Load())
	assert.Equal(t, e.entered.Load(), e.sum())
	v := s.a.Views()[0]
	assert.Zero(t, v.Queued)
	assert.Zero(t, v.InFlight)
	s.fill()
}

// fill proves that every place has been given back: all of them can be taken.
func (s *storm) fill() {
	s.a.Observe(state(workload.Asleep, stormRounds+1, 10*stormRounds+2))
	g := s.a.Gate("wiki")
	ctx, cancel := context.WithCancel(context.Background())
	var waiters sync.WaitGroup
	for range stormBound {
		waiters.Go(func() {
			_, err := g.Acquire(ctx, activator.Ask{})
			assert.ErrorIs(s.t, err, activator.ErrCanceled)
		})
	}
	require.Eventually(s.t, func() bool { return s.a.Views()[0].Queued == stormBound }, 20*time.Second, time.Millisecond)
	_, err := g.Acquire(ctx, activator.Ask{})
	assert.ErrorIs(s.t, err, activator.ErrQueueFull)
	cancel()
	waiters.Wait()
}

func TestAHeldRequestIsSmall(t *testing.T) {
	const n = 4000
	a := started(t, activator.Config{QueueRequests: n}, &wakeLog{})
	g := a.Gate("wiki")
	ctx, cancel := context.WithCancel(context.Background())
	arrive := make(chan struct{})
	var waiters sync.WaitGroup
	for range n { // the goroutine is not the gate's
		waiters.Go(func() {
			<-arrive
			_, err := g.Acquire(ctx, activator.Ask{})
			assert.ErrorIs(t, err, activator.ErrCanceled)
		})
	}
	before := heap()
	close(arrive)
	require.Eventually(t, func() bool { return a.Views()[0].Queued == n }, 30*time.Second, time.Millisecond)
	each := (heap() - before) / n
	t.Logf("%d bytes on the heap for each held request", each)
	assert.Less(t, each, int64(768))
	cancel()
	waiters.Wait()
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
