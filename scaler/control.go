package scaler

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// Wake brings the workload up if it is not, and returns when it is ready or
// has failed. While one start is under way, more wakes join it. It returns
// early, with Later, when ctx ends; the start goes on.
func (s *Scaler) Wake(ctx context.Context, w workload.Wake) Verdict {
	return s.ask(ctx, w).Verdict
}

// Sleep puts the workload to sleep and returns nil once it is: its gates
// close, the requests in flight end, it is stopped. Requests that come
// meanwhile are held and wake it again afterwards. If it is still in use after
// five seconds, or when ctx ends, its gates open again and the error wraps
// ErrInUse, or ErrUnsure where a gateway did not say. ErrUnknown and ErrClosed
// are the other refusals.
func (s *Scaler) Sleep(ctx context.Context, name string) error {
	l := s.life(name)
	if l == nil {
		return fmt.Errorf("sleep %s: %w", name, ErrUnknown)
	}
	a := &sleepAsk{reply: make(chan error, 1)}
	if !l.post(func() { l.askedToSleep(a) }) {
		return fmt.Errorf("sleep %s: %w", name, ErrClosed)
	}
	select {
	case err := <-a.reply:
		return wrapSleep(name, err)
	case <-ctx.Done():
	}
	// The life answers at once, knowing what it waited for; it alone decides
	// whether the stop has begun.
	cause := context.Cause(ctx)
	if !l.post(func() { l.withdrawSleep(a, cause) }) {
		return fmt.Errorf("sleep %s: %w", name, ErrClosed)
	}
	return wrapSleep(name, <-a.reply)
}

func wrapSleep(name string, err error) error {
	if err != nil {
		return fmt.Errorf("sleep %s: %w", name, err)
	}
	return nil
}

// Logs returns up to n of the last lines that the workload wrote.
func (s *Scaler) Logs(ctx context.Context, name string, n int) ([]string, error) {
	l := s.life(name)
	if l == nil {
		return nil, fmt.Errorf("logs of %s: %w", name, ErrUnknown)
	}
	lines, err := l.watch.logs(ctx, l.glimpse().spec, n)
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", name, err)
	}
	return lines, nil
}

// SleepsAt is when the workload will be put to sleep if nothing happens until
// then. It is zero while it is in use or not ready, and for what is kept awake
// for any other reason.
func (s *Scaler) SleepsAt(name string) time.Time {
	l := s.life(name)
	if l == nil {
		return time.Time{}
	}
	g, now := l.glimpse(), time.Now()
	if g.state.Phase != workload.Ready || s.awakeReason(g.spec, now) != nil {
		return time.Time{}
	}
	if use := s.deps.Board.Use(name, now); use.InFlight+use.Queued > 0 {
		return time.Time{}
	}
	at := s.idleAt(g.spec, g.readySince, g.floor, now)
	if at.IsZero() {
		return at
	}
	return latest(at, g.state.KeptUntil)
}
