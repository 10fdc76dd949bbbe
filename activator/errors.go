package activator

import (
	"errors"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// The ends that a wait can have, apart from a lease. Test with errors.Is; a
// failed start is a *FailedError, for errors.As.
var (
	// ErrQueueFull: there is no place; a *FullError says which bound.
	ErrQueueFull = errors.New("queue full")
	// ErrHoldTimeout: it was held for as long as it may be (or not at all,
	// as asked). The wake goes on.
	ErrHoldTimeout = errors.New("not ready in the time a request may be held")
	// ErrCanceled: the caller's context ended, whose cause is wrapped as
	// well. The wake goes on.
	ErrCanceled = errors.New("caller gone")
	// ErrShutdown: this gateway holds no requests any more.
	ErrShutdown = errors.New("gateway is shutting down")
	// ErrAsleep: a request that must not wake came to a gate that is closed.
	ErrAsleep = errors.New("workload is not awake")
	// ErrRemoved: the workload is gone from the catalog.
	ErrRemoved = errors.New("workload was removed")
	// ErrWakeLimited: too many cold starts were asked for of late; a
	// *LimitedError says when the next may be.
	ErrWakeLimited = errors.New("too many cold starts")
)

// A Bound is one of the limits of what is held.
type Bound string

const (
	BoundRequests Bound = "requests" // requests held for the workload
	BoundBytes    Bound = "bytes"    // bytes held for the workload
	BoundTotal    Bound = "total"    // bytes held for all workloads
)

// A FullError is an ErrQueueFull with the bound that was reached.
type FullError struct{ Bound Bound }

func (e *FullError) Error() string {
	return fmt.Sprintf("%v: bound on %s reached", ErrQueueFull, e.Bound)
}

// Is makes it an ErrQueueFull.
func (e *FullError) Is(target error) bool { return target == ErrQueueFull }

// A LimitedError is an ErrWakeLimited with the time until the next cold start
// may be asked for.
type LimitedError struct{ RetryAfter time.Duration }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("%v: next in %v", ErrWakeLimited, e.RetryAfter)
}

// Is makes it an ErrWakeLimited.
func (e *LimitedError) Is(target error) bool { return target == ErrWakeLimited }

// A FailedError ends a wait whose start failed, and refuses a request that
// comes while the next start is not due yet. State has the reason, and in
// RetryAt when the next start is due; it must not be changed.
type FailedError struct{ State workload.State }

func (e *FailedError) Error() string {
	return fmt.Sprintf("start of %s failed: %v", e.State.Workload, e.State.Reason)
}
