package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	defaultEvents = 20
	maxEvents     = 10_000
	// writeWithin is how long a reader may take for one event before it
	// counts as gone.
	writeWithin = 30 * time.Second
)

// events streams the history as server-sent events: the last ones first, then
// each as it comes, unless follow=false.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	q, err := queryOf(r)
	if err != nil {
		return err
	}
	out := beginStream(w)
	if r.Method == http.MethodHead {
		return nil
	}
	if err := out.write(": rouse events\n\n"); err != nil {
		return nil // the reader is gone
	}
	if err := s.stream(r.Context(), q, out); err != nil && r.Context().Err() == nil {
		s.cfg.Logger.ErrorContext(r.Context(), "event stream ended", attrs(r, w.Header().Get("X-Request-ID"), err)...)
	}
	return nil // the answer has begun: it can only end
}

func queryOf(r *http.Request) (EventQuery, error) {
	last, err := numberOf(r, "last", defaultEvents, maxEvents)
	if err != nil {
		return EventQuery{}, err
	}
	follow := true
	if text := r.URL.Query().Get("follow"); text != "" {
		if follow, err = strconv.ParseBool(text); err != nil {
			return EventQuery{}, badRequest("follow=%q is neither true nor false", text)
		}
	}
	if name := r.URL.Query().Get("workload"); name != "" {
		if err := workload.ValidName(name); err != nil {
			return EventQuery{}, badRequest("workload: %v", err)
		}
	}
	return EventQuery{
		Workload: r.URL.Query().Get("workload"),
		Last:     last,
		After:    r.Header.Get("Last-Event-ID"),
		Follow:   follow,
	}, nil
}

// stream writes what the backend hands over, and a comment whenever it has
// been silent for a heartbeat. It returns once the backend's part has ended.
func (s *server) stream(ctx context.Context, q EventQuery, out *stream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, ended := make(chan Event), make(chan error, 1)
	go func() { ended <- s.backend.Events(ctx, q, into(ctx, events)) }()

	beat := time.NewTimer(s.cfg.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case e := <-events:
			err = out.event(e)
		case <-beat.C:
			err = out.write(": still here\n\n")
		case err := <-ended:
			return err
		}
		if err != nil {
			cancel()
			<-ended
			return nil // the reader is gone
		}
		beat.Reset(s.cfg.Heartbeat)
	}
}

// into hands events over to a channel until ctx ends.
func into(ctx context.Context, events chan<- Event) func(Event) error {
	return func(e Event) error {
		select {
		case events <- e:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A stream writes server-sent events to one reader, each at once.
type stream struct {
	w   io.Writer
	ctl *http.ResponseController
}

// beginStream sends the head of an answer that is server-sent events.
func beginStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w, ctl: http.NewResponseController(w)}
}

// event writes one. JSON has no line breaks, and neither an ID nor a kind can
// have any.
func (o *stream) event(e Event) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	return o.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, data))
}

// write gives up on a reader that takes nothing. A writer without deadlines
// is written to without one.
func (o *stream) write(text string) error {
	_ = o.ctl.SetWriteDeadline(time.Now().Add(writeWithin))
	if _, err := io.WriteString(o.w, text); err != nil {
		return err
	}
	return o.ctl.Flush()
}
