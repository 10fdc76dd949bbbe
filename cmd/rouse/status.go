package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

func newStatusCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "status [NAME]",
		Aliases: []string{"ls"},
		Short:   "Show what the workloads do",
		Long: `Status lists every workload with its phase, its traffic and when it will
sleep, and below them what is wrong with descriptions of workloads. With a
name it shows that workload and its replicas; exit code 6 means that there is
none of that name.`,
		Example:           "  rouse status\n  rouse status wiki -o json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return g.statusOf(cmd, args[0])
			}
			list, err := ask(cmd.Context(), g, askWithin, func(ctx context.Context, c *client.Client) (api.WorkloadList, error) {
				return c.Workloads(ctx)
			})
			if err != nil {
				return err
			}
			return g.print(cmd.OutOrStdout(), list, func(out io.Writer) error { return g.writeList(out, list) })
		},
	}
}

func (g *globals) statusOf(cmd *cobra.Command, name string) error {
	w, err := ask(cmd.Context(), g, askWithin, func(ctx context.Context, c *client.Client) (api.Workload, error) {
		return c.Workload(ctx, name)
	})
	if err != nil {
		return err
	}
	return g.print(cmd.OutOrStdout(), w, func(out io.Writer) error { return g.writeOne(out, w) })
}

func (g *globals) writeList(out io.Writer, list api.WorkloadList) error {
	if err := g.writeWorkloads(out, list.Workloads); err != nil {
		return err
	}
	if err := writeReasons(out, "WAITING", workload.Waking, list.Workloads); err != nil {
		return err
	}
	if err := writeReasons(out, "FAILED", workload.Failed, list.Workloads); err != nil {
		return err
	}
	return writeProblems(out, list.Problems)
}

// writeReasons says why the last start of each that failed did, or what a wake
// waits for.
func writeReasons(out io.Writer, title string, phase workload.Phase, workloads []api.Workload) error {
	var b strings.Builder
	for _, w := range workloads {
		if w.Phase == phase && (phase == workload.Failed || !w.Reason.IsZero()) {
			b.WriteString("  " + printable(w.Name+": "+w.Reason.String()) + "\n")
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(out, "\n"+title+"\n"+b.String())
	return err
}

// writeWorkloads writes the table that both forms of the command begin with.
func (g *globals) writeWorkloads(out io.Writer, workloads []api.Workload) error {
	now := time.Now()
	rows := [][]string{{"NAME", "PHASE", "SINCE", "IN-FLIGHT", "QUEUED", "SLEEPS-IN", "COLD-STARTS", "HOSTS"}}
	for _, w := range workloads {
		rows = append(rows, []string{
			printable(w.Name), w.Phase.String(), ago(now, w.Since), strconv.Itoa(w.InFlight), strconv.Itoa(w.Queued),
			until(now, w.SleepsAt), strconv.Itoa(w.ColdStarts), printable(hosts(w.Hosts)),
		})
	}
	if !g.colored(out) {
		return writeTable(out, rows, nil)
	}
	return writeTable(out, rows, func(row, column int, cell string) string {
		if row == 0 || column != 1 {
			return cell
		}
		return color(phaseColor(workloads[row-1].Phase), cell)
	})
}

// writeOne adds to the table what it has no room for.
func (g *globals) writeOne(out io.Writer, w api.Workload) error {
	if err := g.writeWorkloads(out, []api.Workload{w}); err != nil {
		return err
	}
	rows := [][]string{}
	add := func(key, value string) {
		if value != "" {
			rows = append(rows, []string{key, printable(value)})
		}
	}
	add("reason", w.Reason.String())
	if w.Phase == workload.Failed && !w.RetryAt.IsZero() {
		add("next start", "not before "+clock(w.RetryAt))
	}
	if !w.KeptUntil.IsZero() {
		add("kept awake", "until "+clock(w.KeptUntil))
	}
	if !w.LastRequestAt.IsZero() {
		add("last request", clock(w.LastRequestAt))
	}
	add("described in", w.Origin)
	add("runs on", strings.TrimPrefix(w.Node+" ("+w.Runtime+")", " ()"))
	for _, r := range w.Replicas {
		add("replica", fmt.Sprintf("%s at %s, %d in flight", r.ID, r.Address, r.InFlight))
	}
	for _, line := range w.Reason.Log {
		add("log", line)
	}
	if len(rows) > 0 {
		if _, err := fmt.Fprintln(out); err != nil {
			return err
		}
	}
	if err := writeTable(out, rows, nil); err != nil {
		return err
	}
	return writeProblems(out, w.Problems)
}

func writeProblems(out io.Writer, problems []workload.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nPROBLEMS\n")
	for _, p := range problems {
		b.WriteString("  ")
		if p.Workload != "" {
			b.WriteString(printable(p.Workload) + ": ")
		}
		b.WriteString(printable(p.Error()) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// hosts are those of a workload; one without any is reached as a dependency.
func hosts(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ",")
}

// ago and until are "-" for a moment that is not known.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(now.Sub(t))
}

func until(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span(t.Sub(now))
}
