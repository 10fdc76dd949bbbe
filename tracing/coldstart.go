package tracing

import (
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// ColdStart is the span of a cold start: its trace is that of the request
// which asked first, or one of its own where no request did. The scaler and
// every gateway come to the same name, from the record alone, so that each may
// tell of its phases. The tracer must not be nil.
func ColdStart(t Tracer, w *workload.Wake) Context {
	own, _ := coldStart(t, w)
	return own
}

// coldStart gives the parent too, zero where there is none.
func coldStart(t Tracer, w *workload.Wake) (own Context, parent SpanID) {
	seed := w.ID + "\x00" + w.Workload + "\x00" + strconv.FormatUint(w.Generation, 10) + "\x00" + strconv.FormatInt(w.ReceivedAt.UnixNano(), 10)
	sum := sha256.Sum256([]byte(seed))
	copy(own.Trace[:], sum[:])
	copy(own.Span[:], sum[len(own.Trace):])
	if asked, ok := Parse(w.Traceparent); ok {
		own.Trace, own.Sampled = asked.Trace, asked.Sampled
		return own, asked.Span
	}
	own.Sampled = t.Samples(own.Trace)
	return own, SpanID{}
}

// RecordColdStart tells of a cold start that is over for its scaler, and of
// its phases as far as they came. An empty failure is one that became ready.
// A nil tracer and a trace that is not kept take nothing.
func RecordColdStart(t Tracer, w *workload.Wake, ended time.Time, failure string) {
	if t == nil {
		return
	}
	own, parent := coldStart(t, w)
	if !own.Sampled {
		return
	}
	s := &Span{
		Trace: own.Trace, ID: own.Span, Parent: parent, Name: "cold start", Start: began(w, ended), End: ended,
		Failed: failure != "", Reason: failure,
		Attributes: []Attribute{
			Flag("faas.coldstart", true), Text("rouse.workload", w.Workload), Text("rouse.trigger", string(w.Trigger)),
			Text("rouse.wake", w.ID), Number("rouse.generation", int64(w.Generation)),
		},
	}
	s.End = latest(s.Start, s.End)
	t.Record(s)
	steps := w.Steps()
	if failure != "" {
		steps = withUnfinished(steps, w, ended)
	}
	for i, step := range steps {
		last := failure != "" && i == len(steps)-1
		recordStep(t, own, w, step, last, failure)
	}
}

// RecordOpening tells of the phases that a gateway adds to a cold start, from
// its record as the gateway completed it. A nil tracer and a trace that is not
// kept take nothing.
func RecordOpening(t Tracer, w *workload.Wake) {
	if t == nil || w.ReadyAt.IsZero() {
		return
	}
	own := ColdStart(t, w)
	if !own.Sampled {
		return
	}
	for _, step := range w.Steps() {
		if step.Phase == workload.PhaseReady || step.Phase == workload.PhaseRelease {
			recordStep(t, own, w, step, false, "")
		}
	}
}

func recordStep(t Tracer, in Context, w *workload.Wake, step workload.Step, failed bool, failure string) {
	s := &Span{
		Trace: in.Trace, ID: NewSpanID(), Parent: in.Span, Name: string(step.Phase), Start: step.Start, End: step.Start.Add(step.Duration),
		Failed: failed, Attributes: []Attribute{Text("rouse.workload", w.Workload)},
	}
	if failed {
		s.Reason = failure
	}
	t.Record(s)
}

// withUnfinished adds the phase in which a cold start failed.
func withUnfinished(steps []workload.Step, w *workload.Wake, ended time.Time) []workload.Step {
	phase, from := workload.PhaseProbe, w.StartedAt
	switch {
	case !w.ReadyAt.IsZero():
		return steps
	case w.StartAt.IsZero():
		phase, from = workload.PhaseQueue, w.ReceivedAt
	case w.StartedAt.IsZero():
		phase, from = workload.PhaseStart, w.StartAt
	}
	if from.IsZero() {
		return steps
	}
	return append(steps, workload.Step{Phase: phase, Start: from, Duration: max(0, ended.Sub(from))})
}

// began is when a cold start was asked for, as far as that is known.
func began(w *workload.Wake, ended time.Time) time.Time {
	for _, at := range []time.Time{w.RequestedAt, w.PublishedAt, w.ReceivedAt, w.StartAt} {
		if !at.IsZero() {
			return at
		}
	}
	return ended
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
