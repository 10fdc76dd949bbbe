// Command rouse puts web workloads to sleep while nobody uses them and wakes
// them with the first request.
//
// This package owns the command line, the configuration and the wiring: it is
// the one place where the parts of Rouse meet. Every command is a small file
// of its own; wire.go connects the parts that serve. Data goes to stdout and
// talk to stderr, and the exit codes of exit.go are part of the contract with
// scripts.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal kills
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is one invocation of the program; it gives the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(ctx)
	code := exitCode(err)
	switch code {
	case exitOK:
	case exitConfig: // each line begins with the place that is wrong
		_, _ = fmt.Fprintln(stderr, err)
	case exitUsage:
		_, _ = fmt.Fprintf(stderr, "rouse: %v\nSee %s --help.\n", err, called.CommandPath())
	default:
		_, _ = fmt.Fprintln(stderr, "rouse:", err)
	}
	return code
}
