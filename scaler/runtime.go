package scaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Runtime is one platform that runs workloads: an engine of containers, a
// set of processes. The scaler decides, a Runtime acts and tells.
//
// Every method is safe for concurrent use and ends soon after its ctx does.
// The scaler never has a Start and a Stop of one workload under way at the
// same time, and calls both of different workloads in parallel. Others (a
// person, a restart policy) may start and stop the same things meanwhile.
type Runtime interface {
	// Start brings up every replica of w and returns them once the platform
	// says that they run; whether they answer is for the scaler to prove.
	// What runs already is returned as it is, what is paused is resumed, and
	// what the platform is still ending is started again after its end: a
	// returned instance is one that nobody had asked to end when Start began.
	// Each has the address of this very start.
	//
	// An error says that not everything runs. It is or wraps a *StartError
	// where the platform told a reason. Instances beside an error do run, and
	// the scaler goes on with them. When ctx ends first the outcome is
	// unknown: the error wraps ctx's, and the start may still succeed.
	Start(ctx context.Context, w workload.Workload) ([]Instance, error)
	// Stop ends, or pauses where w.Stop says so, every replica of w, killing
	// what has not ended by itself within w.StopTimeout. It returns nil once
	// nothing of w serves any more, also when nothing did before. When ctx
	// ends first the outcome is unknown.
	Stop(ctx context.Context, w workload.Workload) error
	// List returns everything that runs, or is paused, and belongs to a
	// workload of the last Update, in no order. It is the truth about what
	// runs at some moment during the call. What the platform is about to
	// restart by itself, or is removing, does not run.
	List(ctx context.Context) ([]Instance, error)
	// Watch tells the sink what happens until ctx ends, then returns nil or
	// ctx's error. It returns any other error only for what no retry can
	// mend: a connection that was lost it makes again by itself. It sends
	// Resynced after each connect, the first one too, when events from then
	// on are certain to arrive; what happened before it may have been missed.
	// The sink is called by one goroutine at a time, in the order of what
	// happened, and returns at once.
	Watch(ctx context.Context, sink func(Event)) error
	// Logs returns up to the given number of the last lines that w wrote,
	// oldest first, of its last start, running or not.
	Logs(ctx context.Context, w workload.Workload, lines int) ([]string, error)
	// Update replaces the workloads that List and Watch are about: those of
	// this node and this runtime. It touches nothing that runs and does not
	// block on the platform.
	Update(ws []workload.Workload)
}

// A Confirmer is a Runtime whose addresses pass to something else soon after
// a replica has ended, and which may hear of that end late.
type Confirmer interface {
	// Confirm returns nil if the replica of that ID still ran when it was
	// called, as far as the platform knows; it ends with ctx.
	Confirm(ctx context.Context, replica string) error
}

// A Weigher is a Runtime that can tell what a workload takes.
type Weigher interface {
	// Weigh returns the memory in bytes that all replicas of w take now; 0 if
	// nothing of it runs. It ends with ctx.
	Weigh(ctx context.Context, w workload.Workload) (int64, error)
}

// An Instance is one replica as its Runtime sees it.
type Instance struct {
	// Workload is the name of the workload it is a replica of.
	Workload string
	workload.Replica
	// Health is what the platform's own health check says.
	Health Health
	// Paused says that it is frozen: it counts as asleep, since it accepts
	// connections but answers nothing.
	Paused bool
}

// Health is the verdict of a platform's own health check.
type Health uint8

const (
	// HealthNone: there is no health check.
	HealthNone Health = iota
	// HealthStarting: no verdict yet.
	HealthStarting
	// HealthHealthy: the check passed.
	HealthHealthy
	// HealthUnhealthy: the check failed as often as the platform allows.
	HealthUnhealthy
)

var healthNames = [...]string{"none", "starting", "healthy", "unhealthy"}

// String gives the word that logs use.
func (h Health) String() string {
	if int(h) < len(healthNames) {
		return healthNames[h]
	}
	return fmt.Sprintf("health(%d)", uint8(h))
}

// EventKind is one kind of news from a Runtime.
type EventKind uint8

const (
	// Started: it runs, whoever started or resumed it.
	Started EventKind = iota + 1
	// Died: it ended, whoever or whatever ended it, or was paused.
	Died
	// Healthy and Unhealthy: the platform's health check came to a verdict.
	Healthy
	Unhealthy
	// Removed: the platform has nothing left of it.
	Removed
	// Resynced: events arrive from now on, and some may have been missed. It
	// concerns the whole runtime; Workload and ID are empty.
	Resynced
)

var eventNames = [...]string{"", "started", "died", "healthy", "unhealthy", "removed", "resynced"}

// String gives the word that logs use.
func (k EventKind) String() string {
	if k > 0 && int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// An Event is one thing that happened to a replica.
type Event struct {
	Kind EventKind
	// Workload is the name of the workload it is about.
	Workload string
	// ID is the Replica.ID of the start it is about, the one that Start or
	// List gave. Empty where it is not known: the scaler then asks List.
	ID string
	// ExitCode is meaningful for Died.
	ExitCode int
	// OOM says, for Died, that it was killed for its memory.
	OOM bool
	// At is the platform's time of it, for logs; nothing is ordered by it.
	At time.Time
}

// ErrAway is what an error of a Runtime is, to errors.Is, where the platform
// did not answer: nothing is known of the workload then.
var ErrAway = errors.New("the platform does not answer")

// A StartError tells why a Runtime could not start something. Reason.Code is
// workload.ReasonNotFound or workload.ReasonStartError, or the code of an end
// that came before Start returned.
type StartError struct {
	Reason workload.Reason
	// Err is the cause, if there is one beyond the reason.
	Err error
}

// Error is the reason in one line, then the cause.
func (e *StartError) Error() string {
	if e.Err == nil {
		return e.Reason.String()
	}
	return e.Reason.String() + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *StartError) Unwrap() error { return e.Err }
