package protocol

import "github.com/rouse-dev/rouse/workload"

// A Move is one thing that a scaler does. Those that write are one
// compare-and-set each on the state that was decided on; where that fails the
// state is read again and everything decided anew.
type Move uint8

const (
	// Wait: there is nothing to do before the facts change.
	Wait Move = iota
	// LeaveAlone: another is at work. Its state is read again from time to
	// time, to see each renewal.
	LeaveAlone

	// BeginWake writes Waking of the next generation, for who asks.
	BeginWake
	// KeepWarm is the same for a window.
	KeepWarm
	// TakeOver writes this scaler into a lease that has run out.
	TakeOver
	// Renew writes the lease anew.
	Renew
	// LetGo gives the lease back before its time.
	LetGo
	// Resume goes on with the wake of the state as this scaler's own.
	Resume
	// LookRound reads the states of those that the wake conflicts with.
	LookRound
	// Claim writes that it means to start, Withdraw that it waits on.
	Claim
	Withdraw
	// TakeTurn writes that it starts.
	TakeTurn
	// Start calls the runtime, beside.
	Start
	// Doom takes the wake for failed.
	Doom
	// FetchLogs asks for the last lines, beside.
	FetchLogs
	// Fail writes Failed.
	Fail
	// GiveUp writes Failed, keeps the lease, and then stops what was started,
	// beside.
	GiveUp
	// Release ends the lease of a Failed once what was given up has ended.
	Release
	// Announce writes Ready with what runs and is proved.
	Announce

	// Complete writes Asleep, since what was woken has done its work.
	Complete

	// Adopt writes Ready of the next generation with what runs and is proved.
	Adopt
	// TrueUp makes Ready say what runs and is proved.
	TrueUp
	// Restore writes Ready of the same generation in place of a drain that
	// nobody carries out any more.
	Restore
	// FallAsleep writes Asleep.
	FallAsleep
	// TryAll tries every replica of the state, beside.
	TryAll
	// AnnounceTried writes Ready anew with those that answered.
	AnnounceTried
	// AnnounceAgain writes Ready anew as it is: only a newer revision opens a
	// gate.
	AnnounceAgain

	// BeginSleep writes Draining, which closes the gates.
	BeginSleep
	// AskGateways closes the gates and asks what is under way, beside.
	AskGateways
	// AskLater has the gateways asked again after a pause.
	AskLater
	// RecordStop writes that the stop begins: no replica is to be served, and
	// the lease is still held.
	RecordStop
	// Stop calls the runtime, beside.
	Stop
	// ResumeStop carries out, beside, a stop that another had written down.
	ResumeStop
	// Reopen writes the state from before the drain.
	Reopen
)

var moveNames = [...]string{
	"wait", "leave alone", "begin wake", "keep warm", "take over", "renew", "let go", "resume",
	"look round", "claim", "withdraw", "take turn", "start", "doom",
	"fetch logs", "fail", "give up", "release", "announce", "complete", "adopt", "true up", "restore", "fall asleep", "try all",
	"announce tried", "announce again", "begin sleep", "ask gateways", "ask later", "record stop", "stop", "resume stop", "reopen",
}

func (m Move) String() string { return moveNames[m] }

// An Answer is what those hear who ask for a workload.
type Answer uint8

const (
	AnswerNone      Answer = iota // they go on waiting
	AnswerDone                    // nothing is left to do for them
	AnswerLater                   // they have to come again
	AnswerPermanent               // it came to nothing
)

// A SleepAnswer is what those hear who ask for a workload's sleep.
type SleepAnswer uint8

const (
	SleepNone   SleepAnswer = iota // they go on waiting
	SleepDone                      // it sleeps
	SleepBarred                    // it may not sleep, whatever its use
	SleepBusy                      // it is in use, or a gateway did not say
)

// A Step is a move and what is answered with it.
type Step struct {
	Move Move
	// Asks and Sleeps are answered at once, before the move.
	Asks   Answer
	Sleeps SleepAnswer
	// Explicit says that the sleep to begin was asked for.
	Explicit bool
}

// Replicas says which replicas a state is written with.
type Replicas uint8

const (
	ReplicasNone   Replicas = iota
	ReplicasKept            // those of the state before
	ReplicasProved          // those that run and are proved
	ReplicasTried           // those of the state before that answered when all were tried
	ReplicasBefore          // those of the state before the drain
)

// A Draft is what the write of a move says, and what is answered once it is
// certain to be written.
type Draft struct {
	Phase      workload.Phase
	Generation uint64
	Lease      Lease // LeaseMine is that of who writes; LeaseLapsed keeps the owner, who has let go
	Replicas   Replicas
	Anew       bool // the phase begins with it, and Since with the phase
	Asks       Answer
	Sleeps     SleepAnswer
}

// Draft gives what the move writes on a state of that phase and generation,
// where before is the phase that a drain goes back to. False: it writes
// nothing.
func (m Move) Draft(phase workload.Phase, generation uint64, before workload.Phase) (Draft, bool) {
	next, same := generation+1, generation
	switch m {
	case BeginWake, KeepWarm:
		return Draft{Phase: workload.Waking, Generation: next, Lease: LeaseMine, Anew: true}, true
	case TakeOver, Renew, Claim, Withdraw, TakeTurn:
		return Draft{Phase: phase, Generation: same, Lease: LeaseMine, Replicas: ReplicasKept}, true
	case LetGo:
		return Draft{Phase: phase, Generation: same, Lease: LeaseLapsed, Replicas: ReplicasKept}, true
	case Announce:
		return Draft{Phase: workload.Ready, Generation: same, Replicas: ReplicasProved, Anew: true, Asks: AnswerDone}, true
	case Complete:
		return Draft{Phase: workload.Asleep, Generation: same, Anew: true, Asks: AnswerDone}, true
	case Fail:
		return Draft{Phase: workload.Failed, Generation: same, Anew: true, Asks: AnswerPermanent}, true
	case GiveUp:
		return Draft{Phase: workload.Failed, Generation: same, Lease: LeaseMine, Anew: true, Asks: AnswerPermanent}, true
	case Release:
		return Draft{Phase: phase, Generation: same}, true
	case Adopt:
		return Draft{Phase: workload.Ready, Generation: next, Replicas: ReplicasProved, Anew: true}, true
	case Restore:
		return Draft{Phase: workload.Ready, Generation: same, Replicas: ReplicasProved, Anew: true}, true
	case TrueUp:
		return Draft{Phase: workload.Ready, Generation: same, Replicas: ReplicasProved}, true
	case AnnounceTried:
		return Draft{Phase: workload.Ready, Generation: same, Replicas: ReplicasTried, Asks: AnswerDone}, true
	case AnnounceAgain:
		return Draft{Phase: workload.Ready, Generation: same, Replicas: ReplicasKept, Asks: AnswerDone}, true
	case BeginSleep:
		return Draft{Phase: workload.Draining, Generation: same, Lease: LeaseMine, Replicas: ReplicasKept, Anew: true}, true
	case RecordStop:
		return Draft{Phase: workload.Draining, Generation: same, Lease: LeaseMine}, true
	case Reopen:
		return Draft{Phase: before, Generation: same, Replicas: ReplicasBefore, Anew: true}, true
	case FallAsleep:
		d := Draft{Phase: workload.Asleep, Generation: same, Anew: true}
		if phase == workload.Draining {
			d.Sleeps = SleepDone
		}
		return d, true
	}
	return Draft{}, false
}
