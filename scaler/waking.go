package scaler

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

// defaultWakeTimeout is for a description that came without one.
const defaultWakeTimeout = 3 * time.Minute

const (
	// absence is how long a start waits for a platform that does not answer:
	// an engine that is being restarted is back by then.
	absence   = 10 * time.Second
	awayPause = 250 * time.Millisecond
)

// A waking is one start that this life carries out, for the generation whose
// lease it holds.
type waking struct {
	generation uint64
	record     workload.Wake
	deadline   time.Time
	begun      bool            // the start task was launched
	called     bool            // Runtime.Start was called: there may be something to stop
	started    bool            // Start returned
	before     map[string]bool // IDs of what ran when the start task was launched
	found      bool            // what it returned ran before: its end may be that of the start before
	away       bool            // the platform did not answer: no failure of the workload
	awaySince  time.Time       // when it first did not
	pause      time.Duration   // before the next call of the platform
	reason     workload.Reason // why it failed; zero: it has not
	giveUp     bool            // what was started has to be stopped
	logged     bool            // reason has the last log lines, if there are any
	done       bool            // it is a job, and ended well before its start returned
	rivals     protocol.Rivals // what the last look has shown of those that it conflicts with
	inTheWay   []string        // which of them it waits for
	lookAgain  time.Time       // when that look is too old
}

func (w *waking) failed() bool { return !w.reason.IsZero() }

// giving reports whether a start is being given up.
func (l *life) giving() bool { return l.waking != nil && l.waking.failed() }

func (l *life) wakeTimeout() time.Duration {
	if l.spec.WakeTimeout > 0 {
		return l.spec.WakeTimeout
	}
	return defaultWakeTimeout
}

// beginWake moves to Waking and the next generation.
func (l *life) beginWake(ctx context.Context, w workload.Wake) {
	w.Generation, w.Unreachable = l.st.Generation+1, false
	w.StartAt, w.StartedAt, w.ReadyAt = time.Time{}, time.Time{}, time.Time{}
	w.OpenedAt, w.ReleasedAt = time.Time{}, time.Time{}
	failures := l.st.Failures
	fill := func(st *workload.State) {
		st.Wake, st.Failures = &w, failures
		l.await(st)
	}
	if l.write(ctx, protocol.BeginWake, fill) {
		l.waking = l.resume()
		var waits workload.Reason
		if !l.st.Claimed {
			waits = l.st.Reason
		}
		l.record(workload.EventWoken, waits, l.st.Wake)
	}
}

// newWake is an ask that comes from this scaler.
func newWake(name string, t workload.Trigger) workload.Wake {
	now := time.Now()
	return workload.Wake{ID: rand.Text(), Workload: name, Trigger: t, RequestedAt: now, ReceivedAt: now}
}

// beginStart calls the runtime, once more where what was found was dying.
func (l *life) beginStart(ctx context.Context, w *waking) {
	w.begun, w.started, w.found = true, false, false
	w.before, l.end = l.running(), Event{}
	spec, pause := l.spec, w.pause
	l.do(ctx, protocol.TaskStart, func(ctx context.Context) func() {
		if pause > 0 {
			_ = wait(ctx, pause) // cut short, the start is too
		}
		return l.start(ctx, w, spec)
	})
}

// resume goes on with a wake whose record is in the state.
func (l *life) resume() *waking {
	w := &waking{generation: l.st.Generation, deadline: time.Now().Add(l.wakeTimeout())}
	if l.st.Wake != nil {
		w.record = *l.st.Wake
	} else {
		w.record = newWake(l.name, workload.TriggerAdopted)
	}
	return w
}

// start runs beside the life: what it depends on, a place among the parallel
// starts, the start itself.
func (l *life) start(ctx context.Context, w *waking, spec workload.Workload) func() {
	ctx, cancel := context.WithDeadlineCause(ctx, w.deadline, errNotInTime)
	defer cancel()
	if err := l.s.wakeAll(ctx, spec, w.record); err != nil {
		return func() { l.failWith(w, workload.Reason{Code: workload.ReasonDependency, Detail: err.Error()}, false) }
	}
	if err := l.s.places.take(ctx); err != nil {
		return func() { l.failWith(w, l.timeoutReason("no place among the parallel starts"), false) }
	}
	called := time.Now()
	insts, err := l.watch.start(ctx, spec)
	returned := time.Now()
	l.s.places.give()
	return func() { l.startReturned(w, called, returned, insts, err) }
}

func (l *life) startReturned(w *waking, called, returned time.Time, insts []Instance, err error) {
	w.called = true
	w.record.StartAt, w.record.StartedAt = called, returned
	w.found, w.away = w.knowsAll(insts, l.runs), errors.Is(err, ErrAway)
	if err == nil {
		l.keepOnly(insts)
	}
	l.began(insts)
	switch {
	case err == nil && len(insts) == 0:
		err = &StartError{Reason: workload.Reason{Code: workload.ReasonNotFound, Detail: "there is nothing to start"}}
	case err != nil && len(insts) > 0:
		l.log.Warn("not every replica was started", "error", err)
		err = nil
	}
	if l.spec.Job && err != nil && startReason(err).Code == workload.ReasonExited && startReason(err).ExitCode == 0 {
		err, w.done = nil, true
	}
	if err != nil && w.comesBack(returned) {
		w.begun, w.pause = false, awayPause
		return
	}
	if err != nil {
		reason := startReason(err)
		if reason.Code == workload.ReasonTimeout {
			reason = l.timeoutReason("the start did not return")
		}
		l.failWith(w, reason, reason.Code == workload.ReasonTimeout)
		l.listed = false
		l.wantList()
		return
	}
	w.started = true
	if l.waking == w {
		record := w.record
		l.record(workload.EventStarted, workload.Reason{}, &record)
	}
}

// comesBack reports whether it is the platform that is away, and not for long
// yet.
func (w *waking) comesBack(now time.Time) bool {
	if !w.away {
		return false
	}
	if w.awaySince.IsZero() {
		w.awaySince = now
	}
	return now.Sub(w.awaySince) < absence && now.Before(w.deadline)
}

// running is the IDs of what runs.
func (l *life) running() map[string]bool {
	ids := map[string]bool{}
	for id := range l.runs {
		ids[id] = true
	}
	return ids
}

// knowsAll reports whether every one of them ran before it was started, also
// if it has ended since.
func (w *waking) knowsAll(insts []Instance, runs map[string]*replica) bool {
	for _, in := range insts {
		if !w.before[in.ID] && runs[in.ID] == nil {
			return false
		}
	}
	return len(insts) > 0
}

// doom says why the wake came to nothing.
func (l *life) doom(w *waking, now time.Time) {
	l.moved = true
	switch {
	case protocol.TurnOf(l.st) != protocol.TurnTaken:
		l.failWith(w, l.waitedInVain(w), false)
	case !now.Before(w.deadline):
		l.failWith(w, l.timeoutReason(l.lastTrouble()), true)
	case len(l.runs) == 0:
		l.failWith(w, endReason(l.end, "it ended before it was ready"), false)
	default:
		l.failWith(w, l.hopeless(), true)
	}
}

// hopeless tells why nothing of what runs can be proved any more; zero if some
// can.
func (l *life) hopeless() (reason workload.Reason) {
	for _, r := range l.runs {
		if reason = unprovable(r, l.spec.Ready); reason.IsZero() {
			return reason
		}
	}
	if len(l.runs) > 1 {
		return workload.Reason{Code: workload.ReasonUnhealthy, Detail: "every replica is unhealthy"}
	}
	return reason
}

// failWith sets why the wake failed; the first reason stays.
func (l *life) failWith(w *waking, reason workload.Reason, giveUp bool) {
	if w.failed() {
		return
	}
	w.reason, w.giveUp = reason, giveUp
	if l.waking != w {
		return
	}
	for _, r := range l.runs {
		r.unproving()
	}
}

// spared reports whether the workload itself has not failed: the platform was
// away, something that it needs was, or something in its way was not. It is tried again soon, however long
// that lasts: once it is over nobody is to wait for the rest of a minute.
func (w *waking) spared() bool {
	return w.away || w.reason.Code == workload.ReasonDependency || w.reason.Code == workload.ReasonConflict
}

func (l *life) backoff(w *waking, failures int) time.Duration {
	if w.spared() {
		failures = 1
	}
	return backoffAfter(failures, l.s.cfg.Rand(l.name))
}

// announce writes Ready. Until it is written, or somebody else owns the
// state, every step comes back here.
func (l *life) announce(ctx context.Context, w *waking) {
	record := w.record
	_, at := l.proved()
	record.Generation = w.generation
	record.ReadyAt = latest(at, record.StartedAt)
	if !l.write(ctx, protocol.Announce, func(st *workload.State) { st.Wake = &record }) {
		return
	}
	l.waking = nil
	l.record(workload.EventReady, workload.Reason{}, &record)
	l.s.metrics.ready(&record)
	tracing.RecordColdStart(l.s.cfg.Tracer, &record, record.ReadyAt, "")
}

// jobDone reports whether the wake of a job has come to its good end.
func (l *life) jobDone(w *waking) bool {
	ended := l.end.Kind == Died && l.end.ExitCode == 0 && !l.end.OOM
	return l.spec.Job && w.started && len(l.runs) == 0 && (w.done || ended)
}

// complete writes that a job has done its work.
func (l *life) complete(ctx context.Context) {
	reason := workload.Reason{Code: workload.ReasonCompleted}
	if l.write(ctx, protocol.Complete, func(st *workload.State) { st.Reason = reason }) {
		l.waking = nil
		l.record(workload.EventSlept, reason, nil)
	}
}

// fetchLogs gets the last log lines.
func (l *life) fetchLogs(ctx context.Context, w *waking) {
	spec := l.spec
	l.do(ctx, protocol.TaskLogs, func(ctx context.Context) func() {
		lines := l.watch.lastLines(ctx, spec)
		return func() { w.reason.Log, w.logged = lines, true }
	})
}

// fail writes Failed and answers. It reports whether that is certain to have
// happened.
func (l *life) fail(ctx context.Context, w *waking, m protocol.Move) bool {
	record, failures := w.record, l.st.Failures
	if !w.spared() {
		failures++
	}
	fill := func(st *workload.State) {
		st.Wake, st.Reason, st.Failures = &record, w.reason, failures
		st.RetryAt = st.Since.Add(l.backoff(w, failures))
	}
	if !l.write(ctx, m, fill) {
		return false
	}
	l.waking = nil
	l.record(workload.EventFailed, w.reason, &record)
	l.s.metrics.failed(&record, w.reason.Code)
	l.traceFailed(w, record)
	return true
}

// traceFailed tells of a cold start that came to nothing. A start that
// returned with an error is the phase in which it failed.
func (l *life) traceFailed(w *waking, record workload.Wake) {
	if !w.started {
		record.StartedAt = time.Time{}
	}
	tracing.RecordColdStart(l.s.cfg.Tracer, &record, time.Now(), w.reason.String())
}

// giveUp fails and stops what was started. Those who wait hear of it before
// the stop begins; the lease is kept until it has ended.
func (l *life) giveUp(ctx context.Context, w *waking) {
	if l.fail(ctx, w, protocol.GiveUp) {
		l.stopGivenUp(ctx)
	}
}

func (l *life) stopGivenUp(ctx context.Context) {
	spec := l.spec
	spec.Stop = workload.StopStop // resuming what never got ready would not help
	l.stop(ctx, spec, func(error) {})
}

var errNotInTime = errors.New("not in time")
