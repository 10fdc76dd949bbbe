// Package protocol holds the rules by which gateways and scalers agree about
// one workload: what a scaler does next, from what it knows (Next), what its
// writes say (Move.Draft), how the answers to a drain add up (Answers), and
// what a gate makes of what it hears (Gate).
//
// Everything here is a function of small values that can be compared: no
// clock, no I/O, no lock, no goroutine. The scaler and the activator gather
// the facts and carry out what follows from them; the tests of this package
// do the same with a world of their own, and go through every state that it
// can come to. DESIGN.md has the invariants that they find to hold.
package protocol

import "github.com/rouse-dev/rouse/workload"

// A Lease says whose a phase is that has an owner.
type Lease uint8

const (
	// LeaseNone: the state has no owner.
	LeaseNone Lease = iota
	// LeaseMine: this scaler's.
	LeaseMine
	// LeaseLapsed: another's, who has let go, or was not heard of for as long
	// as a lease lasts.
	LeaseLapsed
	// LeaseHeld: another's, who may be at work.
	LeaseHeld
)

// A Task is something that takes long and excludes any other.
type Task uint8

const (
	TaskNone  Task = iota
	TaskStart      // the runtime's start, with all that has to come before
	TaskDrain      // the gateways are being asked
	TaskStop       // the runtime's stop
	TaskLogs       // the last lines of a start that failed
	TaskProof      // every replica of the state is being tried
)

// A Match says how far what runs and is proved is what the state says.
type Match uint8

const (
	MatchNone Match = iota // nothing that the state says runs
	MatchSome              // some of it does, or more than it says is proved
	MatchAll               // the state says it all
)

// A Trial is what a try of every replica has shown, of the generation that is
// ready.
type Trial uint8

const (
	TrialNone Trial = iota // there was none
	TrialGood              // at least one answers
	TrialBad               // none does
)

// Facts are what a scaler knows of one workload when it decides.
type Facts struct {
	Phase     workload.Phase // of the last state that it read or wrote
	Lease     Lease
	Task      Task // under way
	Renewal   bool // it is time to renew the lease
	BackOff   bool // the state's RetryAt is still to come
	Unwritten bool // there is no state: none was ever written, or the store was made anew
	Cleared   bool // the state has no replicas: where it drains, its stop may have begun

	Listed bool // what it knows to run is the truth
	Runs   bool // something runs
	Proved bool // some of that is proved ready
	Match  Match

	Asked   bool // somebody asks for the workload
	Refused bool // one of them was refused by every replica of this generation
	Shut    bool // one of them has a gate shut that this Ready should have opened
	Trial   Trial
	Warm    bool // a window keeps it awake

	Sleep  bool // somebody asks for its sleep
	Barred bool // it may not sleep whatever its use
	Idle   bool // nobody has used it for its timeout
	Broken bool // the last stop failed: what runs is served again

	Wake  Wake
	Drain Drain
}

// A Wake is how far the start has come that this scaler carries out.
type Wake struct {
	Own      bool // there is one, of this generation and under this lease
	Begun    bool // the start task was launched
	Called   bool // the runtime was: there may be something to stop, and a log
	Started  bool // the runtime's start returned
	Found    bool // what it returned ran before, and may be ending
	Late     bool // its time is over
	Hopeless bool // nothing of what runs can be proved any more
	Done     bool // it is a job that has ended well
	Failed   bool // it came to nothing
	GivenUp  bool // and what was started has to be stopped
	Logged   bool // the last lines have been asked for
	Turn     Turn // whether it may start beside what it conflicts with
	Rivals   Rivals
}

// A Drain is how far the sleep has come that this scaler carries out.
type Drain struct {
	Own      bool // there is one, of this generation and under this lease
	Explicit bool // somebody asked for it
	Resting  bool // it is not yet time to ask the gateways again
	Over     bool // the time to wait for the last requests is over
	Answered bool // the gateways were asked
	Said     Sum  // and this is what they said
	Recorded bool // the state says that the stop begins
	Stopped  bool // it has ended well
}
