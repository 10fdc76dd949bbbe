package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
)

func newWakeCommand(g *globals) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wake NAME",
		Short: "Wake a workload",
		Long: `Wake asks for a workload to be brought up, as a request to it would. With
--wait it returns when the workload is ready, and tells on stderr meanwhile how
far it is: exit code 5 means that it was not in time, and 1 that the start
failed. The wake goes on whatever becomes of this command.`,
		Example:           "  rouse wake wiki --wait --timeout 30s",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return fail(exitUsage, fmt.Errorf("--timeout %s is not a time to wait", timeout))
			}
			if !wait {
				return g.wake(cmd, args[0], 0)
			}
			return g.wake(cmd, args[0], timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "return when it is ready")
	cmd.Flags().DurationVar(&timeout, "timeout", 3*time.Minute, "how long to wait, with --wait")
	return cmd
}

func (g *globals) wake(cmd *cobra.Command, name string, wait time.Duration) error {
	w, err := ask(cmd.Context(), g, wait+askWithin, func(ctx context.Context, c *client.Client) (api.Workload, error) {
		if wait > 0 && g.output == formatTable {
			defer startProgress(ctx, cmd.ErrOrStderr(), c, name)()
		}
		return c.Wake(ctx, name, wait)
	})
	var p *api.ProblemDetails
	if errors.As(err, &p) {
		for _, line := range p.Reason.Log {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "log:", printable(line))
		}
	}
	if err != nil {
		return err
	}
	return g.printPhase(cmd.OutOrStdout(), w)
}

func newSleepCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "sleep NAME",
		Short: "Put a workload to sleep",
		Long: `Sleep puts a workload to sleep now, and returns when it sleeps. Requests that
come meanwhile are held and wake it again. What is in flight gets five seconds
to end; exit code 7 means that it was still in use and was left running.`,
		Example:           "  rouse sleep wiki",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := ask(cmd.Context(), g, 0, func(ctx context.Context, c *client.Client) (api.Workload, error) {
				return c.Sleep(ctx, args[0])
			})
			if err != nil {
				return err
			}
			return g.printPhase(cmd.OutOrStdout(), w)
		},
	}
}

// printPhase tells in one line where a workload is now.
func (g *globals) printPhase(out io.Writer, w api.Workload) error {
	return g.print(out, w, func(out io.Writer) error {
		phase := w.Phase.String()
		if g.colored(out) {
			phase = color(phaseColor(w.Phase), phase)
		}
		if reason := w.Reason.String(); reason != "" {
			phase += " (" + printable(reason) + ")"
		}
		_, err := fmt.Fprintf(out, "%s is %s\n", printable(w.Name), phase)
		return err
	})
}
