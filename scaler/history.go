package scaler

import (
	"context"
	"log/slog"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	historyBacklog = 1024
	historyTimeout = 2 * time.Second
)

// history hands events to the Recorder beside the work that they tell of: no
// phase waits for its record. Order is kept. What does not fit into the
// backlog is dropped and counted in the log, for history only informs.
type history struct {
	recorder Recorder
	queue    chan workload.Event
	log      *slog.Logger
}

func newHistory(r Recorder, log *slog.Logger) *history {
	return &history{recorder: r, queue: make(chan workload.Event, historyBacklog), log: log}
}

// add never blocks.
func (h *history) add(e workload.Event) {
	if h.recorder == nil {
		return
	}
	select {
	case h.queue <- e:
	default:
		h.log.Warn("history entry dropped", "workload", e.Workload, "kind", e.Kind)
	}
}

// run records until ctx ends, and then what is left, in bounded time.
func (h *history) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case e := <-h.queue:
			h.record(context.WithoutCancel(ctx), e)
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), historyTimeout)
	defer cancel()
	for last.Err() == nil {
		select {
		case e := <-h.queue:
			h.record(last, e)
		default:
			return
		}
	}
}

func (h *history) record(ctx context.Context, e workload.Event) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	if err := h.recorder.RecordEvent(ctx, e); err != nil {
		h.log.Warn("history entry lost", "workload", e.Workload, "kind", e.Kind, "error", err)
	}
}
