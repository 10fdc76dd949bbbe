package workload

import (
	"fmt"
	"strings"
	"time"
)

// State is the truth about one workload at one moment, written by compare
// and set only. The zero value, with a name, is a workload that never ran:
// asleep, generation 0.
type State struct {
	Workload string `json:"workload"`
	Phase    Phase  `json:"phase"`
	// Generation counts the starts; news of an earlier one is dropped. It
	// grows by one with each move to Waking, and with each adoption of
	// something that Rouse did not start.
	Generation uint64 `json:"generation"`
	// Owner is the scaler at work on it (Waking, Draining, and Failed while
	// what was given up is being stopped), and LeaseUntil when it will have let
	// another take over, by its own clock: nobody else compares it with
	// theirs. Zero says that it has let go. Both are empty in the other phases.
	Owner      string    `json:"owner,omitempty"`
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	// Replicas are the running copies proven ready; only in Ready, and in
	// Draining until the stop has begun.
	Replicas []Replica `json:"replicas,omitempty"`
	// Reason says why it failed or fell asleep, or what a wake waits for before
	// it starts (ReasonConflict); zero where there is no more to say than the
	// phase does.
	Reason Reason `json:"reason,omitzero"`
	// RetryAt is, in Failed, when the next wake may start it again.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Failures counts the failed starts in a row.
	Failures int `json:"failures,omitempty"`
	// KeptUntil is until when somebody has it kept awake; zero: nobody has.
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// Claimed says, in Waking with ReasonConflict, that it means to start next:
	// whoever conflicts with it waits until it has, or has given way.
	Claimed bool `json:"claimed,omitempty"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Wake is the cold start that is under way or led here; nil before the
	// first, and for what was adopted.
	Wake *Wake `json:"wake,omitempty"`
	// Revision orders the writes of one workload; 0 means never written. It
	// is the store's, and not part of the record.
	Revision uint64 `json:"-"`
}

// MaxKeep is the longest that a workload can be kept awake by one call.
const MaxKeep = 24 * time.Hour

// SeenAt is the state as whoever sees it at now has to take it, by a clock
// that need not agree with the writer's and may be set meanwhile: RetryAt is
// no further off than the writer meant it to be, KeptUntil no further than
// anybody can mean it to be, and both keep to the monotonic clock from now on.
func (s State) SeenAt(now time.Time) State {
	if !s.RetryAt.IsZero() {
		wait := s.RetryAt.Sub(now)
		if !s.Since.IsZero() {
			wait = min(wait, s.RetryAt.Sub(s.Since))
		}
		s.RetryAt = now.Add(wait)
	}
	if !s.KeptUntil.IsZero() {
		s.KeptUntil = now.Add(min(s.KeptUntil.Sub(now), MaxKeep))
	}
	return s
}

// A Replica is one running copy of a workload.
type Replica struct {
	// ID names one start of one copy: two starts of one container differ.
	ID string `json:"id"`
	// Address is host:port as the gateway dials it. It belongs to this ID
	// alone and is worthless once the replica has ended.
	Address   string    `json:"address"`
	StartedAt time.Time `json:"started_at,omitzero"`
	// Forwarded says that a forwarder (a published port) stands in front and
	// accepts connections before the replica does.
	Forwarded bool `json:"forwarded,omitempty"`
}

// ReasonCode is one of a fixed set, fit for a metric label.
type ReasonCode string

const (
	ReasonNone       ReasonCode = ""
	ReasonIdle       ReasonCode = "idle"        // slept: nothing used it
	ReasonAsked      ReasonCode = "asked"       // slept: somebody asked for it
	ReasonExited     ReasonCode = "exited"      // ended on its own
	ReasonOOM        ReasonCode = "oom"         // killed for its memory
	ReasonUnhealthy  ReasonCode = "unhealthy"   // its health check failed
	ReasonNotFound   ReasonCode = "not_found"   // no such container or program
	ReasonRemoved    ReasonCode = "removed"     // removed while starting
	ReasonStartError ReasonCode = "start_error" // the platform refused to start it
	ReasonTimeout    ReasonCode = "timeout"     // not ready within WakeTimeout
	ReasonDependency ReasonCode = "dependency"  // something it depends on failed
	ReasonCompleted  ReasonCode = "completed"   // a job has ended with code 0
	ReasonConflict   ReasonCode = "conflict"    // waits, or waited in vain, for what it conflicts with; slept: made way for it
)

// Reason says why a workload is where it is.
type Reason struct {
	Code ReasonCode `json:"code,omitempty"`
	// Detail is one line for a person.
	Detail string `json:"detail,omitempty"`
	// ExitCode is meaningful for ReasonExited and ReasonOOM.
	ExitCode int `json:"exit_code,omitempty"`
	// Log is the last lines it wrote, oldest first.
	Log []string `json:"log,omitempty"`
}

// IsZero reports that there is nothing to say; encoding/json asks it.
func (r Reason) IsZero() bool {
	return r.Code == "" && r.Detail == "" && r.ExitCode == 0 && len(r.Log) == 0
}

// String is the code and the detail in one line, without the log.
func (r Reason) String() string {
	var b strings.Builder
	b.WriteString(string(r.Code))
	if r.Code == ReasonExited || r.Code == ReasonOOM {
		fmt.Fprintf(&b, " with code %d", r.ExitCode)
	}
	if r.Detail != "" {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(r.Detail)
	}
	return b.String()
}
