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
	"github.com/rouse-dev/rouse/workload"
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

func newKeepCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "keep NAME FOR",
		Short: "Keep a workload awake for a time",
		Long: `Keep has a workload awake from now on for the time given, at most 24h, whatever
its idle_timeout, and wakes it if it sleeps. It replaces what was asked for
before. 0 ends it: the idle_timeout decides again. So does rouse sleep, and a
request for a workload that it conflicts with, for which it makes way.`,
		Example:           "  rouse keep wiki 1h\n  rouse keep wiki 0",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			span, err := time.ParseDuration(args[1])
			if err != nil || span < 0 || span > workload.MaxKeep {
				return fail(exitUsage, fmt.Errorf("%q is not a time from 0 to %s: write 1h", args[1], workload.MaxKeep))
			}
			w, err := ask(cmd.Context(), g, askWithin, func(ctx context.Context, c *client.Client) (api.Workload, error) {
				return c.Keep(ctx, args[0], span)
			})
			if err != nil {
				return err
			}
			return g.print(cmd.OutOrStdout(), w, func(out io.Writer) error {
				until := "no longer kept awake"
				if !w.KeptUntil.IsZero() {
					until = "kept awake until " + clock(w.KeptUntil)
				}
				_, err := fmt.Fprintf(out, "%s is %s\n", printable(w.Name), until)
				return err
			})
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
