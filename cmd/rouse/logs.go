package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
)

func newLogsCommand(g *globals) *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:               "logs NAME",
		Short:             "Show the last lines that a workload wrote",
		Example:           "  rouse logs wiki -n 20",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lines < 0 {
				return fail(exitUsage, fmt.Errorf("--lines %d is less than none", lines))
			}
			got, err := ask(cmd.Context(), g, askWithin, func(ctx context.Context, c *client.Client) ([]string, error) {
				return c.Logs(ctx, args[0], lines)
			})
			if err != nil {
				return err
			}
			return g.print(cmd.OutOrStdout(), api.LogLines{Workload: args[0], Lines: got}, func(out io.Writer) error {
				return writeLog(out, got)
			})
		},
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "how many lines, at most")
	return cmd
}

// writeLog writes the lines as they are, but on a terminal nothing that would
// act on it.
func writeLog(out io.Writer, lines []string) error {
	terminal := isTerminal(out)
	for _, line := range lines {
		if terminal {
			line = printableLog(line)
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	return nil
}
