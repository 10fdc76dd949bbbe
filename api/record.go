package api

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Result is how a cold start ended.
type Result string

const (
	ResultWaking Result = "waking" // it is under way, or its end was never told
	ResultReady  Result = "ready"
	ResultFailed Result = "failed"
)

// A Wake is the record of one cold start. A time that is absent has not come.
type Wake struct {
	ID       string           `json:"id"`
	Workload string           `json:"workload"`
	Trigger  workload.Trigger `json:"trigger"`
	// Gateway is who asked.
	Gateway     string `json:"gateway,omitempty"`
	Generation  uint64 `json:"generation"`
	Traceparent string `json:"traceparent,omitempty"`

	RequestedAt time.Time `json:"requested_at,omitzero"`
	PublishedAt time.Time `json:"published_at,omitzero"`
	ReceivedAt  time.Time `json:"received_at,omitzero"`
	StartAt     time.Time `json:"start_at,omitzero"`
	StartedAt   time.Time `json:"started_at,omitzero"`
	ReadyAt     time.Time `json:"ready_at,omitzero"`
	OpenedAt    time.Time `json:"opened_at,omitzero"`
	ReleasedAt  time.Time `json:"released_at,omitzero"`
	FailedAt    time.Time `json:"failed_at,omitzero"`

	// Phases are the steps in order. The last of a failed wake is the one
	// that it failed in, and ends with the failure.
	Phases []WakePhase     `json:"phases"`
	Result Result          `json:"result"`
	Reason workload.Reason `json:"reason,omitzero"`
}

// A WakePhase is one step of a cold start.
type WakePhase struct {
	Phase           workload.WakePhase `json:"phase"`
	Start           time.Time          `json:"start"`
	DurationSeconds float64            `json:"duration_seconds"`
}

// Duration is DurationSeconds as a time.Duration.
func (p WakePhase) Duration() time.Duration {
	return time.Duration(p.DurationSeconds * float64(time.Second))
}

// An outcome is the news that ended a wake. The zero value is none.
type outcome struct {
	kind   workload.EventKind
	at     time.Time
	actor  string
	reason workload.Reason
}

// A record is what is known of one wake. Its add is commutative, associative
// and idempotent: events may come in any order, and more than once.
type record struct {
	wake    workload.Wake
	began   time.Time // the earliest moment known
	outcome outcome
}

// newRecord is what one event alone tells of its wake.
func newRecord(e workload.Event) record {
	began := e.At
	for _, t := range []time.Time{e.Wake.RequestedAt, e.Wake.PublishedAt, e.Wake.ReceivedAt} {
		began = earliest(began, t)
	}
	r := record{wake: mergeWakes(*e.Wake, *e.Wake), began: began}
	r.wake.Generation = max(e.Wake.Generation, e.Generation)
	r.wake.Workload = max(e.Wake.Workload, e.Workload)
	if e.Kind == workload.EventReady || e.Kind == workload.EventFailed {
		r.outcome = outcome{e.Kind, e.At.UTC().Round(0), e.Actor, e.Reason}
	}
	return r
}

func (r record) add(o record) record {
	return record{mergeWakes(r.wake, o.wake), earliest(r.began, o.began), later(r.outcome, o.outcome)}
}

// mergeWakes keeps the earliest of the times of the asking side, and of the
// starting side the latest: a scaler that took a start over tells the end of
// it. Several gateways may have let requests go: the release lasts from the
// first gate open to the last request.
func mergeWakes(a, b workload.Wake) workload.Wake {
	return workload.Wake{
		ID:          a.ID,
		Workload:    max(a.Workload, b.Workload),
		Trigger:     max(a.Trigger, b.Trigger),
		Gateway:     max(a.Gateway, b.Gateway),
		Generation:  max(a.Generation, b.Generation),
		Unreachable: a.Unreachable || b.Unreachable,
		Traceparent: max(a.Traceparent, b.Traceparent),
		RequestedAt: earliest(a.RequestedAt, b.RequestedAt),
		PublishedAt: earliest(a.PublishedAt, b.PublishedAt),
		ReceivedAt:  earliest(a.ReceivedAt, b.ReceivedAt),
		StartAt:     latest(a.StartAt, b.StartAt),
		StartedAt:   latest(a.StartedAt, b.StartedAt),
		ReadyAt:     latest(a.ReadyAt, b.ReadyAt),
		OpenedAt:    earliest(a.OpenedAt, b.OpenedAt),
		ReleasedAt:  latest(a.ReleasedAt, b.ReleasedAt),
	}
}

// later is the outcome that came last; its other fields only make the choice
// the same whatever the order.
func later(a, b outcome) outcome {
	if c := a.at.Compare(b.at); c != 0 {
		return pick(c > 0, a, b)
	}
	if a.kind != b.kind {
		return pick(a.kind > b.kind, a, b)
	}
	if a.actor != b.actor {
		return pick(a.actor > b.actor, a, b)
	}
	return pick(a.reason.String() >= b.reason.String(), a, b)
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// earliest and latest take a zero time for unknown. They answer in UTC without
// a monotonic reading, so that equal moments are equal values.
func earliest(a, b time.Time) time.Time {
	if b.IsZero() || (!a.IsZero() && a.Before(b)) {
		return a.UTC().Round(0)
	}
	return b.UTC().Round(0)
}

func latest(a, b time.Time) time.Time {
	return pick(a.After(b), a, b).UTC().Round(0)
}

// result is failed or ready as the last outcome says. A gateway's news of a
// release tells of readiness too.
func (r record) result() Result {
	switch {
	case r.outcome.kind == workload.EventFailed:
		return ResultFailed
	case r.outcome.kind == workload.EventReady, !r.wake.ReadyAt.IsZero():
		return ResultReady
	}
	return ResultWaking
}

// view is the record in the form of the API.
func (r record) view() Wake {
	w := r.wake
	v := Wake{
		ID: w.ID, Workload: w.Workload, Trigger: w.Trigger, Gateway: w.Gateway,
		Generation: w.Generation, Traceparent: w.Traceparent,
		RequestedAt: w.RequestedAt, PublishedAt: w.PublishedAt, ReceivedAt: w.ReceivedAt,
		StartAt: w.StartAt, StartedAt: w.StartedAt, ReadyAt: w.ReadyAt,
		OpenedAt: w.OpenedAt, ReleasedAt: w.ReleasedAt,
		Result: r.result(),
	}
	if v.Result == ResultFailed {
		v.FailedAt, v.Reason = r.outcome.at, r.outcome.reason
		w = cutShort(w, v.FailedAt)
	}
	v.Phases = phases(w.Steps())
	return v
}

// cutShort ends the step that a failed wake was in at the moment it failed.
func cutShort(w workload.Wake, failed time.Time) workload.Wake {
	for _, end := range []*time.Time{&w.ReceivedAt, &w.StartAt, &w.StartedAt, &w.ReadyAt} {
		if end.IsZero() {
			*end = failed
			break
		}
	}
	return w
}

func phases(steps []workload.Step) []WakePhase {
	out := make([]WakePhase, len(steps))
	for i, s := range steps {
		out[i] = WakePhase{s.Phase, s.Start, s.Duration.Seconds()}
	}
	return out
}
