package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/activator"
)

// tellEvents answers a page with a stream of events: how the wait goes, and
// at last that it is over.
func (x *exchange) tellEvents(ctx context.Context, v *visit) {
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the events back
	h.Set("X-Request-Id", x.requestID)
	x.WriteHeader(200)
	_, _ = x.Write([]byte("retry: 1000\n\n")) // an error shows in writeError
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for !x.writeError {
		news, more := v.news()
		if news.over {
			x.tellEnd(ctx, v, news)
			return
		}
		text, _ := json.Marshal(v.progress(news)) // strings and ints cannot fail
		x.event("progress", text)
		for fresh := false; !fresh && !x.writeError; {
			select {
			case <-ctx.Done():
				x.outcome = outcomeCanceled
				return
			case <-more:
				fresh = true
			case <-beat.C:
				_, _ = x.Write([]byte(":\n\n"))
				x.flush()
			}
		}
	}
	x.outcome = outcomeCanceled
}

// event sends one event. An error shows in writeError.
func (x *exchange) event(name string, data []byte) {
	_, _ = fmt.Fprintf(x, "event: %s\ndata: %s\n\n", name, data)
	x.flush()
}

// tellEnd sends the last event of a stream: in the order that the pages came,
// that they may reload, or why the workload does not come. When the gateway
// goes down the stream just ends: the page asks its successor.
func (x *exchange) tellEnd(ctx context.Context, v *visit, news bulletin) {
	switch {
	case news.err == nil:
		if waitTurn(ctx, v.turn(news)) {
			x.outcome = outcomeHeld
			x.event("ready", []byte("{}"))
		}
	case !errors.Is(news.err, activator.ErrShutdown):
		a := x.answerTo(news.err)
		x.outcome = a.outcome
		x.event("failed", x.eventOf(a))
	}
}

// tellOnce answers a page when the wait is over, or after a while with how it
// goes.
func (x *exchange) tellOnce(ctx context.Context, v *visit) {
	timeout := time.NewTimer(pollHold)
	defer timeout.Stop()
	for {
		news, more := v.news()
		if news.over {
			x.sayEnd(ctx, v, news)
			return
		}
		select {
		case <-ctx.Done():
			x.refuse(errLeft)
			return
		case <-timeout.C:
			x.sayWaiting(x.notYet(), v.progress(news))
			return
		case <-more:
		}
	}
}

func (x *exchange) sayEnd(ctx context.Context, v *visit, news bulletin) {
	if news.err != nil {
		x.sayWaiting(x.answerTo(news.err), v.progress(news))
		return
	}
	if waitTurn(ctx, v.turn(news)) {
		x.sayReady()
		return
	}
	x.refuse(errLeft)
}

// waitTurn waits; false means that ctx has ended.
func waitTurn(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
