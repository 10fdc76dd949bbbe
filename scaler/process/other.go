//go:build !linux

// Package process runs workloads as plain processes; it needs Linux.
package process

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rouse-dev/rouse/scaler"
)

// ErrUnsupported is what New returns on every system but Linux.
var ErrUnsupported = errors.New("the process runtime needs Linux: describe the workload as a container instead")

// Config says where a Runtime keeps what has to outlive it.
type Config struct {
	Dir    string
	Logger *slog.Logger
}

// A Runtime is never made here; New says why.
type Runtime struct{ scaler.Runtime }

// New returns ErrUnsupported.
func New(Config) (*Runtime, error) { return nil, ErrUnsupported }

// Close is never called: there is no Runtime.
func (r *Runtime) Close(context.Context) error { return ErrUnsupported }

// Detach is never called: there is no Runtime.
func (r *Runtime) Detach() {}

var _ scaler.Runtime = (*Runtime)(nil)
