package scaler

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// Deps are what a scaler acts through. All of them are safe for concurrent
// use.
type Deps struct {
	Runtimes map[string]Runtime // Workload.Runtime -> the platform
	Prober   Prober
	Store    Store
	Drainer  Drainer
	// Recorder gets the history; nil keeps none.
	Recorder Recorder
	// Board is where the gateways' activity is put together.
	Board *workload.Board
	// Connected tells whether gateways could be heard now; nil means always.
	Connected func() bool
}

// A Prober tries once whether a replica answers.
type Prober interface {
	// Probe returns nil if r is ready as w asks for it, and ends with ctx. It
	// is never called before the platform has said that r runs.
	Probe(ctx context.Context, w workload.Workload, r workload.Replica) error
}

// ErrConflict is wrapped by Store.PutState where the stored revision is not
// the given one. Nothing was written.
var ErrConflict = errors.New("the state has changed")

// A Store holds the truth about each workload.
type Store interface {
	// State returns the stored state with its revision; what was never
	// written is the zero state.
	State(ctx context.Context, name string) (workload.State, error)
	// Current is State as of now: nothing that was written before the call is
	// missing in its answer.
	Current(ctx context.Context, name string) (workload.State, error)
	// PutState writes s if the stored revision still is s.Revision (0: never
	// written) and returns s with its new revision. An error that does not
	// wrap ErrConflict leaves open whether it was written.
	PutState(ctx context.Context, s workload.State) (workload.State, error)
}

// A Drainer closes gates.
type Drainer interface {
	// Drain asks every gateway to close its gate, since the state that says so
	// was written as that revision, and returns what each carries. The error
	// says that one of the named gateways did not answer; the answers of the
	// others come with it.
	Drain(ctx context.Context, name string, revision uint64, gateways []string) ([]workload.Drained, error)
}

// A Recorder keeps the history.
type Recorder interface {
	RecordEvent(ctx context.Context, e workload.Event) error
}

// A VerdictKind says what becomes of an ask.
type VerdictKind uint8

const (
	// Done: nothing is left to do for it.
	Done VerdictKind = iota
	// Later: it has to be asked again after Verdict.After.
	Later
	// Permanent: it came to nothing and asking again would not help;
	// Verdict.Reason says why.
	Permanent
)

// A Verdict is the answer to a wake. The zero value is Done.
type Verdict struct {
	Kind   VerdictKind
	After  time.Duration
	Reason string
}
