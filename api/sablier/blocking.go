package sablier

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/activator"
)

// blocking answers once everybody whom the call is about is ready.
func (a *API) blocking(w http.ResponseWriter, r *http.Request) {
	q, p, wrong := a.understand(r)
	if wrong == nil {
		_ = pass(r.Context(), p.optional, q.keep)
		if pass(r.Context(), p.gating, q.keep) != nil {
			p, wrong = a.await(r.Context(), &q, p)
		}
	}
	if wrong != nil {
		a.blockingCalls.refused.Inc()
		fail(w, r, *wrong)
		return
	}
	a.blockingCalls.ready.Inc()
	writeReady(w, p)
}

// understand gives what a call asks for and whom it is about.
func (a *API) understand(r *http.Request) (q query, p party, wrong *problem) {
	q, err := parseQuery(r.URL.RawQuery)
	if err != nil {
		return q, p, badRequest(err)
	}
	p, wrong = a.index.Load().find(&q)
	return q, p, wrong
}

// pass lets a call pass where all are awake. Those that are not are asked for,
// all at once: nobody is to be started only after another is ready. It gives one
// that is not awake, rather one that cannot be than one that is not yet; nil
// where all are.
func pass(ctx context.Context, members []*member, keep time.Duration) *notReady {
	var first *notReady
	for _, m := range members {
		err := m.gate.Await(ctx, activator.Ask{NoHold: true}, keep)
		if err != nil && (first == nil || errors.Is(first.err, activator.ErrHoldTimeout)) {
			first = &notReady{m, err}
		}
	}
	return first
}

// A notReady says who was not, and why.
type notReady struct {
	member *member
	err    error
}

func (e *notReady) Error() string { return e.member.name + ": " + e.err.Error() }
func (e *notReady) Unwrap() error { return e.err }

// await returns once all are ready at a time, at once when one cannot be, and
// after the timeout. A group that changes meanwhile is taken as it is then. It
// gives whom it waited for last.
func (a *API) await(ctx context.Context, q *query, p party) (party, *problem) {
	began := time.Now()
	for {
		err := awaitAll(ctx, p.gating, q.timeout-time.Since(began), q.keep)
		if err != nil && (q.group == "" || !errors.Is(err, activator.ErrRemoved)) {
			return p, a.explain(q, p, err)
		}
		now, missing := a.index.Load().find(q)
		switch {
		case missing != nil:
			return p, missing
		case err != nil && slices.Equal(now.gating, p.gating): // the catalog is about to follow its gates
			if !rest(ctx, time.Millisecond) || time.Since(began) > q.timeout {
				return p, a.explain(q, p, err)
			}
		}
		p = now
		if pass(ctx, p.gating, q.keep) == nil {
			return p, nil
		}
	}
}

func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// awaitAll waits for all of them at once; the first that cannot be ready ends
// the wait.
func awaitAll(ctx context.Context, members []*member, timeout, keep time.Duration) *notReady {
	if timeout <= 0 {
		return &notReady{members[0], activator.ErrHoldTimeout}
	}
	if len(members) == 1 {
		return awaitOne(ctx, members[0], timeout, keep)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() {
			if err := awaitOne(ctx, m, timeout, keep); err != nil {
				cancel(err) // the first is the cause of the others
			}
		})
	}
	all.Wait()
	var first *notReady
	if errors.As(context.Cause(ctx), &first) {
		return first
	}
	if ctx.Err() != nil {
		return &notReady{members[0], fmt.Errorf("%w: %w", activator.ErrCanceled, context.Cause(ctx))}
	}
	return nil
}

func awaitOne(ctx context.Context, m *member, timeout, keep time.Duration) *notReady {
	if err := m.gate.Await(ctx, activator.Ask{Hold: timeout, Bytes: heldBytes}, keep); err != nil {
		return &notReady{m, err}
	}
	return nil
}

// heldBytes is what holding a call costs: its goroutine, the buffers of its
// connection, its head.
const heldBytes = 16 << 10

// explain makes the problem of an error of await.
func (a *API) explain(q *query, p party, err *notReady) *problem {
	if errors.Is(err, activator.ErrHoldTimeout) {
		return timedOut(q, p)
	}
	why := problemOf(err.member, err.err)
	if why.id == "start-failed" {
		a.cfg.Logger.Warn("start asked for by a proxy failed", "workload", err.member.name, "error", err.err)
	}
	return why
}

func timedOut(q *query, p party) *problem {
	out := &problem{Status: http.StatusGatewayTimeout, id: "timeout", Title: "Gateway Timeout", retry: retrySoon}
	var names []string
	for _, m := range p.gating {
		info := m.info()
		out.Instances = append(out.Instances, info)
		if info.Status != statusReady {
			names = append(names, m.name+": "+string(info.Status))
		}
	}
	out.Detail = fmt.Sprintf("not ready after %s: %s; the wake goes on", q.timeout, strings.Join(names, ", "))
	return out
}
