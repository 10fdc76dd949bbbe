package waitpage

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Progress is how far a wake has come, as a waiting page shows it. The zero
// value is a wait that has just begun, with no step to show.
type Progress struct {
	// Steps are those of a cold start, in order.
	Steps []Step
	// Elapsed is how long the wake has taken so far, and Expected how long
	// past ones took; 0: nobody knows.
	Elapsed, Expected time.Duration
	// Note is one line on what holds the wait up; empty: nothing does.
	Note string
	// Position is this page's place among those that Waiting counts, from 1.
	Position, Waiting int
}

// A State is where a step is.
type State string

// The states of a step, which are also class names of the built-in page.
const (
	Done State = "done"
	Now  State = "now"
	Next State = "next"
)

// A Step is one part of a cold start.
type Step struct {
	// Name is fixed: "wake", "start" or "probe".
	Name workload.WakePhase
	// Label says it to a person.
	Label string
	State State
	// Took is its duration once it is Done.
	Took time.Duration
}

// The steps as a person sees them. The time that a start waits for a place
// among the others counts as part of it.
var stepLabels = []struct {
	name  workload.WakePhase
	label string
}{
	{workload.PhaseWake, "Asking for it"},
	{workload.PhaseStart, "Starting"},
	{workload.PhaseProbe, "Waiting for its first answer"},
}

// Steps gives the steps of a cold start of which w is what is known; the zero
// value of w is one that was just asked for.
func Steps(w workload.Wake) []Step {
	marks := []time.Time{w.RequestedAt, w.ReceivedAt, w.StartedAt, w.ReadyAt}
	steps := make([]Step, len(stepLabels))
	current := Now
	for i, s := range stepLabels {
		steps[i] = Step{Name: s.name, Label: s.label, State: current}
		if from, to := marks[i], marks[i+1]; !to.IsZero() {
			steps[i].State = Done
			if !from.IsZero() {
				steps[i].Took = max(0, to.Sub(from))
			}
		} else if current == Now {
			current = Next
		}
	}
	return steps
}

// MarshalJSON is the form that the page's script reads; durations are in whole
// milliseconds.
func (p Progress) MarshalJSON() ([]byte, error) {
	type step struct {
		Name  workload.WakePhase `json:"name"`
		Label string             `json:"label"`
		State State              `json:"state"`
		MS    int64              `json:"ms"`
	}
	steps := make([]step, len(p.Steps))
	for i, s := range p.Steps {
		steps[i] = step{s.Name, s.Label, s.State, s.Took.Milliseconds()}
	}
	return json.Marshal(struct {
		Steps    []step `json:"steps"`
		Elapsed  int64  `json:"elapsed_ms"`
		Expected int64  `json:"expected_ms,omitempty"`
		Note     string `json:"note,omitempty"`
		Position int    `json:"position,omitempty"`
		Waiting  int    `json:"waiting,omitempty"`
	}{steps, p.Elapsed.Milliseconds(), p.Expected.Milliseconds(), p.Note, p.Position, p.Waiting})
}

// seconds says a duration to a person.
func seconds(d time.Duration) string {
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
