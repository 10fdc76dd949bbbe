package workload

import "time"

// Trigger says who asked for a wake.
type Trigger string

const (
	TriggerRequest    Trigger = "request"
	TriggerAPI        Trigger = "api"
	TriggerKeepWarm   Trigger = "keep-warm"
	TriggerDependency Trigger = "dependency"
	TriggerAdopted    Trigger = "adopted" // it ran already; nobody asked
)

// A Wake is the ask to bring a workload up and, as its times fill in, the
// record of that cold start. A time that is zero has not come yet.
type Wake struct {
	// ID is unique over all gateways.
	ID       string  `json:"id"`
	Workload string  `json:"workload"`
	Trigger  Trigger `json:"trigger"`
	// Gateway is who asked.
	Gateway string `json:"gateway,omitempty"`
	// Generation is, in an ask, the generation the asker last saw; in a
	// record, the generation that was brought up.
	Generation uint64 `json:"generation"`
	// Unreachable says, in an ask, that the asker was refused by every
	// replica of Generation: what claims to be ready has to be proved again.
	Unreachable bool `json:"unreachable,omitempty"`
	// Traceparent is the W3C trace context of the first request.
	Traceparent string `json:"traceparent,omitempty"`

	RequestedAt time.Time `json:"requested_at,omitzero"` // first request held, or the API called
	PublishedAt time.Time `json:"published_at,omitzero"` // ask handed to the events
	ReceivedAt  time.Time `json:"received_at,omitzero"`  // a scaler has it
	StartAt     time.Time `json:"start_at,omitzero"`     // place among the parallel starts got, start called
	StartedAt   time.Time `json:"started_at,omitzero"`   // start returned
	ReadyAt     time.Time `json:"ready_at,omitzero"`     // readiness proved
	OpenedAt    time.Time `json:"opened_at,omitzero"`    // the asking gateway's gate opened
	ReleasedAt  time.Time `json:"released_at,omitzero"`  // its last held request was let go
}

// WakePhase is one step of a cold start; the constants are in order.
type WakePhase string

const (
	PhaseWake    WakePhase = "wake"    // request held to received by a scaler
	PhaseQueue   WakePhase = "queue"   // received to start called: waiting for a place
	PhaseStart   WakePhase = "start"   // the platform's start call
	PhaseProbe   WakePhase = "probe"   // start returned to readiness proved
	PhaseReady   WakePhase = "ready"   // proved to gate open: the news on its way
	PhaseRelease WakePhase = "release" // gate open to the last held request let go
)

// A Step is a phase of a cold start and how long it took.
type Step struct {
	Phase    WakePhase
	Start    time.Time
	Duration time.Duration
}

// Steps gives the phases that have both ends, in order. A duration is never
// negative: the ends may come from the clocks of two machines.
func (w *Wake) Steps() []Step {
	asked := w.RequestedAt
	if asked.IsZero() {
		asked = w.PublishedAt
	}
	bounds := []struct {
		phase    WakePhase
		from, to time.Time
	}{
		{PhaseWake, asked, w.ReceivedAt},
		{PhaseQueue, w.ReceivedAt, w.StartAt},
		{PhaseStart, w.StartAt, w.StartedAt},
		{PhaseProbe, w.StartedAt, w.ReadyAt},
		{PhaseReady, w.ReadyAt, w.OpenedAt},
		{PhaseRelease, w.OpenedAt, w.ReleasedAt},
	}
	steps := make([]Step, 0, len(bounds))
	for _, b := range bounds {
		if !b.from.IsZero() && !b.to.IsZero() {
			steps = append(steps, Step{b.phase, b.from, max(0, b.to.Sub(b.from))})
		}
	}
	return steps
}
