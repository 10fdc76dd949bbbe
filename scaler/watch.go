package scaler

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/rouse-dev/rouse/workload"
)

const (
	listTimeout = 30 * time.Second
	// listPause keeps bursts of events from listing over and over.
	listPause = 50 * time.Millisecond
	logsGrace = time.Second
	// lastLines is how much of its log a failed start shows.
	lastLines = 20
)

// A watch is what the scaler hears and lists of one runtime, and the way in
// which it calls it.
type watch struct {
	s       *Scaler
	name    string
	runtime Runtime
	log     *slog.Logger
	wanted  chan struct{} // a list is wanted; buffered 1
	back    chan struct{} // events arrive again, so that a list can be had; buffered 1
	afresh  atomic.Bool   // with the next list the states are to be read again
}

func newWatch(s *Scaler, name string, rt Runtime) *watch {
	return &watch{s: s, name: name, runtime: rt, log: s.log.With("runtime", name), wanted: make(chan struct{}, 1), back: make(chan struct{}, 1)}
}

// ask asks for a list soon. It never blocks.
func (w *watch) ask() { signal(w.wanted) }

// askAfresh asks for a list after which every life reads its state again.
func (w *watch) askAfresh() {
	w.afresh.Store(true)
	w.ask()
}

func (w *watch) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { w.hearAll(ctx) })
	both.Go(func() { w.listAll(ctx) })
	both.Wait()
}

// hearAll keeps the runtime's events coming.
func (w *watch) hearAll(ctx context.Context) {
	pause := newPause()
	for ctx.Err() == nil {
		err := w.runtime.Watch(ctx, w.hear)
		if ctx.Err() != nil {
			return
		}
		w.log.Error("events of the runtime ended", "error", err)
		if wait(ctx, w.spread(pause.NextBackOff())) != nil {
			return
		}
	}
}

// hear passes one event on to the life that it is about.
func (w *watch) hear(e Event) {
	if e.Kind == Resynced {
		w.resynced()
		return
	}
	if l := w.s.life(e.Workload); l != nil && l.watch == w {
		l.seq.Add(1)
		l.post(func() { l.heard(e) })
	}
}

// resynced takes in that events may have been missed: nothing is the truth
// about what runs until it is listed, and that can be done now.
func (w *watch) resynced() {
	w.s.eachLife(func(l *life) {
		if l.watch == w {
			l.seq.Add(1)
			l.post(func() { l.listed = false })
		}
	})
	w.askAfresh()
	signal(w.back)
}

// listAll lists at once, when asked, and from time to time.
func (w *watch) listAll(ctx context.Context) {
	tick := time.NewTicker(w.s.cfg.Reconcile)
	defer tick.Stop()
	pause := newPause()
	w.askAfresh()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-w.wanted:
			if heard(tick.C) { // one list is enough for both
				w.afresh.Store(true)
			}
		case <-tick.C:
			w.afresh.Store(true)
			heard(w.wanted)
		}
		heard(w.back)
		if err := w.list(ctx); err != nil && ctx.Err() == nil {
			w.log.Error("runtime not listed", "error", err)
			w.ask()
			w.rest(ctx, w.spread(pause.NextBackOff()))
		} else {
			pause.Reset()
			_ = wait(ctx, listPause)
		}
	}
}

// rest waits for d, or until the runtime can be listed again.
func (w *watch) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.back:
	case <-ctx.Done():
	}
}

// list tells each life what runs of it. A life in which something happened
// meanwhile does not believe it and asks again.
func (w *watch) list(ctx context.Context) error {
	seqs := map[*life]uint64{}
	w.s.eachLife(func(l *life) {
		if l.watch == w {
			seqs[l] = l.seq.Load()
		}
	})
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	afresh, begun := w.afresh.Swap(false), time.Now()
	insts, err := w.runtime.List(ctx)
	w.s.metrics.call(w.name, "list", begun, err)
	if err != nil {
		w.afresh.Store(true)
		return err
	}
	byWorkload := map[string][]Instance{}
	for _, in := range insts {
		byWorkload[in.Workload] = append(byWorkload[in.Workload], in)
	}
	for l, seq := range seqs {
		mine := byWorkload[l.name]
		l.post(func() {
			l.stale = l.stale || afresh
			l.list(mine, seq)
		})
	}
	return nil
}

func (w *watch) start(ctx context.Context, spec workload.Workload) ([]Instance, error) {
	begun := time.Now()
	insts, err := w.runtime.Start(ctx, spec)
	w.s.metrics.call(w.name, "start", begun, err)
	return insts, err
}

func (w *watch) stop(ctx context.Context, spec workload.Workload) error {
	begun := time.Now()
	err := w.runtime.Stop(ctx, spec)
	w.s.metrics.call(w.name, "stop", begun, err)
	return err
}

// weighWithin bounds what a stop waits to know what it frees.
const weighWithin = 250 * time.Millisecond

// weigh is the memory that a stop of what runs would free, in bytes; 0 where
// nobody can tell.
func (w *watch) weigh(ctx context.Context, spec workload.Workload) int64 {
	scales, ok := w.runtime.(Weigher)
	if !ok || spec.Stop.Lives() {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, weighWithin)
	defer cancel()
	bytes, err := scales.Weigh(ctx, spec)
	if err != nil {
		w.s.cfg.Logger.Debug("memory not known", "workload", spec.Name, "error", err)
		return 0
	}
	return bytes
}

func (w *watch) logs(ctx context.Context, spec workload.Workload, n int) ([]string, error) {
	begun := time.Now()
	lines, err := w.runtime.Logs(ctx, spec, n)
	w.s.metrics.call(w.name, "logs", begun, err)
	return lines, err
}

// lastLines is what a failed start shows, if it can be had without making the
// news of the failure late.
func (w *watch) lastLines(ctx context.Context, spec workload.Workload) []string {
	ctx, cancel := context.WithTimeout(ctx, logsGrace)
	defer cancel()
	lines, err := w.logs(ctx, spec, lastLines)
	if err != nil {
		w.log.Warn("last lines not read", "workload", spec.Name, "error", err)
	}
	return lines
}

// spread is d give or take a half: many scalers must not come back in step.
func (w *watch) spread(d time.Duration) time.Duration { return d/2 + w.s.chance(w.name, d) }

func newPause() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(250*time.Millisecond), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0),
		backoff.WithRandomizationFactor(0),
	)
}
