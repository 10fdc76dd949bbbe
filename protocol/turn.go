package protocol

import (
	"cmp"

	"github.com/rouse-dev/rouse/workload"
)

// A Turn says how far a wake has come that must not run beside others.
type Turn uint8

const (
	// TurnTaken: it may start, as may at once what conflicts with nothing.
	TurnTaken Turn = iota
	// TurnWaits: it waits for others, and its state says so.
	TurnWaits
	// TurnClaimed: its state says that it means to start. It may once a look
	// that began after that has shown that nobody else does, nor runs.
	TurnClaimed
)

// TurnOf is how far the wake has come that s tells of.
func TurnOf(s workload.State) Turn {
	switch {
	case s.Phase != workload.Waking || s.Reason.Code != workload.ReasonConflict:
		return TurnTaken
	case s.Claimed:
		return TurnClaimed
	}
	return TurnWaits
}

// Rivals is what a look at those has shown that a wake conflicts with, all
// together.
type Rivals struct {
	Known  bool // there was a look since the state was last written, and not long ago
	Up     bool // one runs, or may
	Before bool // one has waited for longer
	First  bool // one that has waited for longer means to start
	Claims bool // one that has not waited for as long means to start: it will see that it may not, or has started
}

// Meet adds what the state of one rival says to whoever has the state mine.
// runs says that it runs, whatever its state says.
func (r Rivals) Meet(mine, rival workload.State, runs bool) Rivals {
	turn := TurnOf(rival)
	switch {
	case turn == TurnClaimed && before(rival, mine):
		r.First = true
	case turn == TurnClaimed:
		r.Claims = true
	case turn == TurnWaits && !runs:
		r.Before = r.Before || before(rival, mine)
	case runs, rival.Owner != "", rival.Phase == workload.Waking, rival.Phase == workload.Ready, rival.Phase == workload.Draining:
		r.Up = true
	}
	return r
}

// before reports whether the wake of a began before that of b. Everybody
// reads the same times, so that all agree although their clocks may not.
func before(a, b workload.State) bool {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Workload, b.Workload)) < 0
}

// Free reports whether the wake may claim its turn, and keep its claim. What
// somebody else has started keeps those away who have waited for longer, and
// need not wait for them.
func (r Rivals) Free(runs bool) bool { return !r.Up && !r.First && (!r.Before || runs) }

// turn is the step of a wake of this scaler's own that has not had its turn.
func (f Facts) turn() Step {
	r := f.Wake.Rivals
	free := r.Free(f.Listed && f.Runs)
	switch {
	case !r.Known:
		return Step{Move: LookRound}
	case f.Wake.Turn == TurnWaits && free:
		return Step{Move: Claim}
	case f.Wake.Turn == TurnClaimed && !free:
		return Step{Move: Withdraw}
	case f.Wake.Turn == TurnClaimed && !r.Claims:
		return Step{Move: TakeTurn}
	}
	return Step{}
}
