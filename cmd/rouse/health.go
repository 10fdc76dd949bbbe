package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
)

func newHealthCommand(g *globals) *cobra.Command {
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running Rouse whether it can do its work",
		Long: `Health asks /readyz, or with --live only whether the process answers: the
health check of an image without a shell. Exit code 1 means that it is not
ready, 4 that nobody answers.`,
		Example: "  rouse health\n  rouse health --live --admin http://10.0.0.5:8081",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			got, err := ask(cmd.Context(), g, timeout, func(ctx context.Context, c *client.Client) (api.Readiness, error) {
				if live {
					return api.Readiness{Ready: true, Checks: []api.Check{}}, c.Health(ctx)
				}
				return c.Ready(ctx)
			})
			if err != nil {
				return err
			}
			if err := g.print(cmd.OutOrStdout(), got, func(out io.Writer) error { return writeReadiness(out, got) }); err != nil {
				return err
			}
			return notReady(got)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask only whether the process answers")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

func writeReadiness(out io.Writer, r api.Readiness) error {
	if len(r.Checks) == 0 {
		_, err := fmt.Fprintln(out, "ok")
		return err
	}
	rows := [][]string{{"CHECK", "OK", "DETAIL"}}
	for _, c := range r.Checks {
		ok := "no"
		if c.OK {
			ok = "yes"
		}
		rows = append(rows, []string{printable(c.Name), ok, printable(c.Detail)})
	}
	return writeTable(out, rows, nil)
}

// notReady names what is missing.
func notReady(r api.Readiness) error {
	if r.Ready {
		return nil
	}
	var missing []string
	for _, c := range r.Checks {
		if !c.OK {
			missing = append(missing, c.Name)
		}
	}
	return fmt.Errorf("not ready: %s", strings.Join(missing, ", "))
}
