package main

import "errors"

// The exit codes of every command. They are part of the documented contract:
// scripts and process supervisors branch on them.
const (
	exitOK          = 0 // the command did what it was asked
	exitFailure     = 1 // anything that has no code of its own
	exitUsage       = 2 // unknown command or flag, or a wrong number of arguments
	exitConfig      = 3 // the configuration does not validate
	exitUnreachable = 4 // the server, or NATS, cannot be reached
	exitNotReady    = 5 // the workload was not ready in time
	exitNoWorkload  = 6 // there is no workload of that name
	exitRefused     = 7 // the workload is in use and was not put to sleep
)

// exitError is an error that knows the exit code of the process it ends.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }

func (e *exitError) Unwrap() error { return e.err }

// fail gives err an exit code. A nil err stays nil, and so ends with exitOK.
func fail(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: code, err: err}
}

// exitCode is the exit code that err asks for: that of the outermost exitError
// in its chain, exitFailure for any other error, exitOK for nil.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFailure
}
