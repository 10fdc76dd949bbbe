// Command loadtest is the measuring side of Rouse: the sample workload that
// everything is measured with, and the measurements. It treats Rouse as a
// black box.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// version is stamped by the build.
var version = "dev"

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:])) }

// run gives the exit code of one command line.
func run(args []string) int {
	root := newRoot()
	root.SetArgs(args)
	err := root.Execute()
	var exit *mimic.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, new(failure)):
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		return exitFailure
	default: // cobra's own: unknown command, flag or argument
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		return exitUsage
	}
}

// A failure is an error of a command that was understood.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "loadtest",
		Short:         "Measure Rouse, and be measured by it",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newMimic(), newHealthcheck(), newColdstart(), newStorm(), newBurst(), newSablier())
	root.AddCommand(generators()...)
	return root
}
