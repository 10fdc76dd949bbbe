package router

import (
	"context"
	"runtime"
	"time"
)

const (
	// turnsPerCore keeps the cores busy while some wait for their workloads.
	turnsPerCore = 8
	// turnLimit is when a turn ends without an answer: that may be hours away.
	turnLimit = 5 * time.Millisecond
)

// turns bound how many of the requests that were held are sent at once, over
// all workloads. The gates let them go at a pace that each workload can bear;
// but many workloads that wake together would have thousands of requests run
// at the same time, and one to an awake workload would wait for a core behind
// all of them. First come, first served.
type turns struct {
	places chan struct{} // holds one for each turn taken
}

func newTurns() *turns {
	return &turns{make(chan struct{}, turnsPerCore*runtime.GOMAXPROCS(0))}
}

// A turn is to be ended with the answer. The zero value is none.
type turn struct {
	turns *turns
	limit *time.Timer
}

// take waits for a turn for as long as wait; then the request goes without
// one. The error is the cause of ctx's end.
func (t *turns) take(ctx context.Context, wait time.Duration) (turn, error) {
	select {
	case t.places <- struct{}{}:
		return t.begin(), nil
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case t.places <- struct{}{}:
		return t.begin(), nil
	case <-timer.C:
		return turn{}, nil
	case <-ctx.Done():
		return turn{}, context.Cause(ctx)
	}
}

func (t *turns) begin() turn { return turn{t, time.AfterFunc(turnLimit, t.expire)} }

// expire ends a turn at its limit, but not before all else that could run now
// has: as long as the cores are what is waited for, no more is sent.
func (t *turns) expire() {
	runtime.Gosched()
	t.give()
}

func (t *turns) give() { <-t.places }

// end gives the turn back, unless its limit has done so. It may be called
// again.
func (t *turn) end() {
	if t.limit != nil && t.limit.Stop() {
		t.turns.give()
	}
	*t = turn{}
}
