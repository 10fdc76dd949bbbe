package scaler

import (
	"context"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// A keepAsk is one Keep that waits until it is written.
type keepAsk struct {
	span  time.Duration
	reply chan time.Time // buffered 1
}

// Keep has the workload awake for span from now on, in place of what was asked
// for before, and returns until when; it is woken if it sleeps. 0 ends it: the
// idle timeout counts again. It is part of the state, so that it outlives the
// scaler, and more than workload.MaxKeep is cut to that. It blocks until it is
// written or ctx ends: then it may or may not be. Errors wrap ErrUnknown,
// ErrClosed or ctx's.
func (s *Scaler) Keep(ctx context.Context, name string, span time.Duration) (until time.Time, err error) {
	l := s.life(name)
	if l == nil {
		return time.Time{}, fmt.Errorf("keep %s: %w", name, ErrUnknown)
	}
	a := &keepAsk{span: min(max(span, 0), workload.MaxKeep), reply: make(chan time.Time, 1)}
	if !l.post(func() { l.keeps = append(l.keeps, a) }) {
		return time.Time{}, fmt.Errorf("keep %s: %w", name, ErrClosed)
	}
	select {
	case until = <-a.reply:
		return until, nil
	case <-l.done:
		return time.Time{}, fmt.Errorf("keep %s: %w", name, ErrClosed)
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("keep %s: %w", name, context.Cause(ctx))
	}
}

// keep writes the last thing that was asked for. While another scaler holds
// the lease the state is its own, and who asks waits. It reports whether
// there was anything to write.
func (l *life) keep(ctx context.Context, now time.Time) bool {
	if len(l.keeps) == 0 || l.lease(now) == protocol.LeaseHeld {
		return false
	}
	next, span := l.st, l.keeps[len(l.keeps)-1].span
	if next.KeptUntil = now.Add(span).Round(0); span == 0 {
		next.KeptUntil = time.Time{}
	}
	if span > 0 && next.Reason.Code == workload.ReasonAsked {
		next.Reason = workload.Reason{} // it was wanted asleep, and is not any more
	}
	if l.put(ctx, next) {
		for _, a := range l.keeps {
			a.reply <- next.KeptUntil
		}
		l.keeps = nil
	}
	return true
}

// keptAwake reports whether somebody has it kept awake at t.
func (l *life) keptAwake(t time.Time) bool { return t.Before(l.st.KeptUntil) }
