package api

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// What a Backend answers when it cannot do as asked. Each has its own status
// and problem type; the client gives the same errors back. Any other error is
// an internal one.
var (
	ErrNoWorkload  = errors.New("no such workload")
	ErrNoWake      = errors.New("no such wake")
	ErrInUse       = errors.New("the workload is in use")
	ErrNotReady    = errors.New("the workload was not ready in time")
	ErrFailed      = errors.New("the workload failed to start")
	ErrUnavailable = errors.New("the part of Rouse that could answer cannot be reached")
)

// A Backend answers for the whole of Rouse. Its methods are called from many
// goroutines at once and return when ctx ends. History is a ready-made
// Records.
type Backend interface {
	Catalog
	Controls
	Records
	Status
}

// Catalog tells which workloads there are and what they do now.
type Catalog interface {
	// Workloads lists every workload, sorted by name.
	Workloads(ctx context.Context) ([]Workload, error)
	// Workload gives one; ErrNoWorkload if there is none of that name.
	Workload(ctx context.Context, name string) (Workload, error)
	// Problems tells what is wrong with descriptions of workloads, those
	// that are missing from the list because of it included, and what else an
	// operator should know of.
	Problems(ctx context.Context) []workload.Problem
	// Findings tells what else is wrong, or could be better, as far as this
	// process can see it.
	Findings(ctx context.Context) ([]Finding, error)
}

// Controls acts on one workload; ErrNoWorkload if there is none of that name,
// ErrUnavailable if its scaler cannot be reached.
type Controls interface {
	// Wake asks for the workload to be brought up. With no wait it returns as
	// soon as the ask is on its way; otherwise it returns when the workload is
	// ready, at the latest after wait with ErrNotReady, and at once with
	// ErrFailed when the start fails. The workload is returned as it is then,
	// with these two errors as well. The wake outlives ctx.
	Wake(ctx context.Context, name string, wait time.Duration) (Workload, error)
	// Sleep puts the workload to sleep and returns when it sleeps; ErrInUse
	// when it was left running because of its traffic. A workload that
	// sleeps already is no error.
	Sleep(ctx context.Context, name string) error
	// Keep has the workload awake for span from now on, and returns until when;
	// 0 ends that. A workload that sleeps is woken.
	Keep(ctx context.Context, name string, span time.Duration) (until time.Time, err error)
	// Logs gives the last lines it wrote, oldest first.
	Logs(ctx context.Context, name string, lines int) ([]string, error)
}

// Records answers for the past.
type Records interface {
	// Wakes lists the recent cold starts, newest first.
	Wakes(ctx context.Context) ([]Wake, error)
	// WakeByID gives one; ErrNoWake if it is not or no longer known.
	WakeByID(ctx context.Context, id string) (Wake, error)
	// Day draws the 24 hours before now of each workload that is given, with
	// whether it is awake now.
	Day(now time.Time, awake map[string]bool) map[string]Strip
	// Events hands over the events that q asks for, one after the other, and
	// blocks until there are no more, ctx ends or handle returns an error,
	// which it returns.
	Events(ctx context.Context, q EventQuery, handle func(Event) error) error
}

// An EventQuery says which events are wanted.
type EventQuery struct {
	// Workload wants those of one workload; empty wants all.
	Workload string
	// Last is how many past events come first.
	Last int
	// After resumes behind the event of that ID, in place of Last. An ID that
	// is no longer known counts as none.
	After string
	// Follow goes on with new events; otherwise the past is the end.
	Follow bool
}

// Status answers for Rouse itself.
type Status interface {
	// Ready tells what this process needs in order to do its work, and
	// whether it has it. No checks at all means ready.
	Ready(ctx context.Context) []Check
	// Config is the configuration in force, without its secrets, in any form
	// that encoding/json takes.
	Config(ctx context.Context) (any, error)
}
