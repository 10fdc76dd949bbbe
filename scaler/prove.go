package scaler

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// A try of something that does not listen yet costs little right after
	// its start, when a millisecond counts, and adds up later, when it does
	// not: the pause is a share of the time that has passed.
	probeFirst = time.Millisecond
	probeMost  = 25 * time.Millisecond
	probeShare = 50 // 2 %

	// A try may take as long as a fresh one on a quick link needs, and more
	// and more the longer none has come to an end: on a slow link, or where
	// the path that is asked is slow, a fixed limit would never be met.
	tryFirst = 250 * time.Millisecond
	tryMost  = 5 * time.Second
	tryShare = 10 // 10 %
)

// An attempt is the proof of one replica.
type attempt struct {
	spec    workload.Workload
	target  workload.Replica
	since   time.Time     // when it began to run
	limit   time.Duration // for all tries; 0 makes one
	trouble *atomic.Pointer[string]
}

// untilReady tries until the replica answers, and returns when it did. An
// error means that ctx ended or the limit was reached.
func (s *Scaler) untilReady(ctx context.Context, a attempt) (time.Time, error) {
	begun := time.Now()
	if a.spec.Ready.Kind == workload.ReadyDocker {
		return a.settle(ctx, begun) // the engine has said so
	}
	for {
		tried := time.Now()
		err := s.try(ctx, a, tryLimit(tried.Sub(a.since)))
		now := time.Now()
		if err == nil {
			return a.settle(ctx, now)
		}
		trouble := err.Error()
		a.trouble.Store(&trouble)
		if now.Sub(begun) >= a.limit {
			return now, err
		}
		if err := wait(ctx, probePause(now.Sub(a.since))-now.Sub(tried)); err != nil {
			return now, err
		}
	}
}

// settle waits between the proof and its being believed, and returns when that
// is. What was given up before is believed at once.
func (a attempt) settle(ctx context.Context, proved time.Time) (time.Time, error) {
	if a.limit == 0 || a.spec.ReadyAfter == 0 {
		return proved, nil
	}
	err := wait(ctx, a.spec.ReadyAfter)
	return time.Now(), err
}

// try probes once. What answers is the replica only if that still runs
// afterwards: before, its address may have passed to something else.
func (s *Scaler) try(ctx context.Context, a attempt, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := s.deps.Prober.Probe(ctx, a.spec, a.target); err != nil {
		return err
	}
	if r, ok := s.deps.Runtimes[a.spec.Runtime].(Confirmer); ok {
		return r.Confirm(ctx, a.target.ID)
	}
	return nil
}

// tryLimit is how long one try may take of what has run for elapsed.
func tryLimit(elapsed time.Duration) time.Duration {
	return min(max(tryFirst, elapsed/tryShare), tryMost)
}

// probePause is the time from one try to the next of what has run for elapsed.
func probePause(elapsed time.Duration) time.Duration {
	return min(max(probeFirst, elapsed/probeShare), probeMost)
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
