package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

func newExplainCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "explain NAME|WAKE-ID",
		Short: "Show where the time of a cold start went",
		Long: `Explain draws a cold start, the last one of a workload or the one of an ID, as
one bar for each phase on a common time axis:

  wake     the first request held, until a scaler has the wake
  queue    until the start is called: waiting for a place among the parallel ones,
           for what it depends on, or for what it conflicts with to sleep
  start    the platform's start
  probe    until the workload proved ready
  ready    until the gateway knew and opened its gate
  release  until its last held request was let go

A wake that waits says what for. One that failed ends with the phase that it failed in, the reason and the
last lines of the workload's log.`,
		Example:           "  rouse explain wiki",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := ask(cmd.Context(), g, askWithin, func(ctx context.Context, c *client.Client) (api.Wake, error) {
				w, err := findWake(ctx, c, args[0])
				if err == nil && w.Result == api.ResultWaking {
					w.Reason = waitsFor(ctx, c, w)
				}
				return w, err
			})
			if err != nil {
				return err
			}
			return g.print(cmd.OutOrStdout(), w, func(out io.Writer) error { return writeWake(out, w) })
		},
	}
}

// waitsFor is what a wake that is under way waits for; zero if it does not wait
// or that cannot be had.
func waitsFor(ctx context.Context, c *client.Client, wake api.Wake) workload.Reason {
	w, err := c.Workload(ctx, wake.Workload)
	if err != nil || w.Phase != workload.Waking || w.Generation != wake.Generation {
		return workload.Reason{}
	}
	return w.Reason
}

// findWake takes the word for an ID first, then for a workload's name.
func findWake(ctx context.Context, c *client.Client, word string) (api.Wake, error) {
	w, err := c.WakeByID(ctx, word)
	if !errors.Is(err, api.ErrNoWake) {
		return w, err
	}
	wakes, err := c.Wakes(ctx, word)
	if err != nil {
		return api.Wake{}, err
	}
	if len(wakes) > 0 {
		return wakes[0], nil
	}
	if _, err := c.Workload(ctx, word); err != nil {
		return api.Wake{}, err
	}
	return api.Wake{}, fmt.Errorf("no cold start of %s is known yet", word)
}
