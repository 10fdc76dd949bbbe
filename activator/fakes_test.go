package activator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/workload"
)

// began is a moment for State.Since that no test's clock comes near.
var began = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)

// state is news of wiki. Each revision that is not the same phase as the one
// before it begins a new one: since is the revision that began it.
func state(phase workload.Phase, generation, revision uint64) workload.State {
	return workload.State{
		Workload: "wiki", Phase: phase, Generation: generation, Revision: revision,
		Since: began.Add(time.Duration(revision) * time.Second),
	}
}

func ready(generation, revision uint64, replicas ...string) workload.State {
	s := state(workload.Ready, generation, revision)
	if len(replicas) == 0 {
		replicas = []string{fmt.Sprintf("r%d", generation)}
	}
	for _, id := range replicas {
		s.Replicas = append(s.Replicas, workload.Replica{ID: id, Address: id + ":80"})
	}
	return s
}

func ids(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("replica-%d", i))
	}
	return list
}

// A wakeLog is a Waker that keeps what it was asked, and then does what a test
// wants it to.
type wakeLog struct {
	mu    sync.Mutex
	wakes []workload.Wake
	times []time.Time
	do    func(workload.Wake) error
}

func (l *wakeLog) Wake(_ context.Context, w workload.Wake) error {
	l.mu.Lock()
	l.wakes = append(l.wakes, w)
	l.times = append(l.times, time.Now())
	do := l.do
	l.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(w)
}

func (l *wakeLog) all() []workload.Wake {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]workload.Wake(nil), l.wakes...)
}

// when gives the moments of the asks.
func (l *wakeLog) when() []time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]time.Time(nil), l.times...)
}

func (l *wakeLog) answer(do func(workload.Wake) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.do = do
}

// A rig is a running activator that has one workload, wiki, with a waker that
// says yes to everything. It lives in a bubble of synctest.
type rig struct {
	*activator.Activator
	t     *testing.T
	wakes *wakeLog
	gate  *activator.Gate
	stop  func() // ends Run and waits for it
}

// inBubble runs a test with a rig.
func inBubble(t *testing.T, cfg activator.Config, test func(t *testing.T, r *rig)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, cfg)
		defer r.stop()
		test(t, r)
	})
}

func newRig(t *testing.T, cfg activator.Config) *rig {
	cfg.Gateway = "gw"
	r := &rig{t: t, wakes: &wakeLog{}}
	r.Activator = activator.New(cfg, r.wakes)
	r.Update([]workload.Workload{{Name: "wiki", HoldTimeout: 50 * time.Second}})
	r.gate = r.Gate("wiki")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		synctest.Wait()
	})
	return r
}

// by has the workload's replicas chosen by a strategy.
func (r *rig) by(s workload.Strategy) {
	r.Update([]workload.Workload{{Name: "wiki", HoldTimeout: 50 * time.Second, Strategy: s}})
}

// A call is one Acquire in its own goroutine. Its methods are for the test's
// goroutine, once synctest.Wait has returned.
type call struct {
	cancel context.CancelCauseFunc
	result chan result
	got    *result // what came out of result, once it has
}

type result struct {
	lease activator.Lease
	err   error
	at    time.Time
}

// ask starts an Acquire and returns once it has ended or waits.
func (r *rig) ask(ask activator.Ask) *call {
	ctx, cancel := context.WithCancelCause(context.Background())
	c := &call{cancel: cancel, result: make(chan result, 1)}
	go func() {
		lease, err := r.gate.Acquire(ctx, ask)
		c.result <- result{lease, err, time.Now()}
	}()
	synctest.Wait()
	return c
}

// done reports whether the call has ended.
func (c *call) done() bool {
	if c.got == nil {
		select {
		case got := <-c.result:
			c.got = &got
		default:
		}
	}
	return c.got != nil
}

// ending is how the call ended, all zero when it has not.
func (c *call) ending() *result {
	if !c.done() {
		return &result{}
	}
	return c.got
}

func (c *call) error() error            { return c.ending().err }
func (c *call) lease() *activator.Lease { return &c.ending().lease }
func (c *call) ended() time.Time        { return c.ending().at }

// leave ends the caller's context, and the wait with it.
func (c *call) leave(cause error) {
	c.cancel(cause)
	synctest.Wait()
}

// held starts n requests, one after the other, that must all wait.
func (r *rig) held(n int) []*call {
	r.t.Helper()
	calls := make([]*call, n)
	for i := range calls {
		calls[i] = r.ask(activator.Ask{})
		require.False(r.t, calls[i].done(), "request %d was not held: %v", i, calls[i].error())
	}
	return calls
}

// see is Observe, and lets everything happen that follows.
func (r *rig) see(s workload.State) {
	r.Observe(s)
	synctest.Wait()
}

// pass takes a lease that must be there at once.
func (r *rig) pass(ask activator.Ask) *call {
	r.t.Helper()
	c := r.ask(ask)
	require.True(r.t, c.done(), "request was held")
	require.NoError(r.t, c.error())
	return c
}

func (r *rig) view() activator.View { return r.Views()[0] }

// rest lets time pass.
func rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func served(calls []*call) int {
	n := 0
	for _, c := range calls {
		if c.done() && c.error() == nil {
			n++
		}
	}
	return n
}

func release(calls ...*call) {
	for _, c := range calls {
		c.lease().Release()
	}
	synctest.Wait()
}
