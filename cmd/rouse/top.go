package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

func newTopCommand(g *globals) *cobra.Command {
	every, times := time.Second, 0
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what the workloads do",
		Long: `Top shows what status shows, again and again in the same place, those first
that need a look: failed, waking, going to sleep, awake, asleep. Ctrl-C ends it.
Where the output is no terminal, it is one line for each workload, and then one
for each that changed; with -o json one list on a line each time. When it loses
the server it looks for it again.`,
		Example: "  rouse top\n  rouse top --every 5s | tee top.log",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < minEvery {
				return fail(exitUsage, fmt.Errorf("--every %s is less than %s", every, minEvery))
			}
			if times < 0 {
				return fail(exitUsage, fmt.Errorf("--times %d is less than none", times))
			}
			return g.top(cmd, every, times)
		},
	}
	cmd.Flags().DurationVar(&every, "every", every, "how often to look")
	cmd.Flags().IntVarP(&times, "times", "n", 0, "how often to look before it ends; 0 for ever")
	return cmd
}

// minEvery bounds what one watcher costs the server.
const minEvery = 100 * time.Millisecond

func (g *globals) top(cmd *cobra.Command, every time.Duration, times int) (err error) {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	view, err := g.topView(cmd, c.Base())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, view.end()) }()
	for i := 0; times == 0 || i < times; i++ {
		if i > 0 {
			pause(ctx, every)
		}
		list, err := workloadsWithin(ctx, c, askWithin)
		switch {
		case ctx.Err() != nil:
			return nil // the person has seen enough
		case err != nil && (i == 0 || !errors.Is(err, client.ErrUnreachable)):
			return apiError(err)
		}
		byUrgency(list.Workloads)
		if err := view.show(list, err); err != nil {
			return err
		}
	}
	return nil
}

func workloadsWithin(ctx context.Context, c *client.Client, within time.Duration) (api.WorkloadList, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.Workloads(ctx)
}

// byUrgency orders by what a person has to see first, and then by name, so
// that a row stays where it is while nothing but its numbers change.
func byUrgency(workloads []api.Workload) {
	order := []workload.Phase{workload.Failed, workload.Waking, workload.Draining, workload.Ready, workload.Asleep}
	slices.SortFunc(workloads, func(a, b api.Workload) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Phase), slices.Index(order, b.Phase)), cmp.Compare(a.Name, b.Name))
	})
}

// A topView shows one list after the other; lost says that there is none, and
// why.
type topView interface {
	show(list api.WorkloadList, lost error) error
	end() error
}

// topView takes the view that suits the output.
func (g *globals) topView(cmd *cobra.Command, base string) (topView, error) {
	out := cmd.OutOrStdout()
	if g.output == formatTable {
		if s, ok := screenOf(out); ok {
			return &topScreen{g: g, screen: s, base: base}, s.open()
		}
	}
	return &topLines{g: g, out: out, talk: cmd.ErrOrStderr(), before: map[string]string{}}, nil
}

// A topScreen redraws. While the server is away the last list stays.
type topScreen struct {
	g      *globals
	screen *screen
	base   string
	last   api.WorkloadList
}

func (v *topScreen) end() error { return v.screen.close() }

func (v *topScreen) show(list api.WorkloadList, lost error) error {
	if lost == nil {
		v.last = list
	}
	p := &picture{of: v.screen.out}
	head := fmt.Sprintf("rouse at %s  %s  %s", v.base, time.Now().Format(time.TimeOnly), summary(v.last.Workloads))
	if lost != nil {
		head = fmt.Sprintf("trying again: %s", lost)
		if v.g.colored(p) {
			head = color(phaseColor(workload.Failed), head)
		}
	}
	_, _ = fmt.Fprintf(p, "%s\n\n", head)
	if err := v.g.writeList(p, v.last); err != nil {
		return err
	}
	return v.screen.draw(p.String())
}

// summary counts.
func summary(workloads []api.Workload) string {
	inFlight, queued, phases := 0, 0, map[workload.Phase]int{}
	for _, w := range workloads {
		inFlight, queued = inFlight+w.InFlight, queued+w.Queued
		phases[w.Phase]++
	}
	var parts []string
	for _, p := range workload.Phases() {
		if phases[p] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", phases[p], p))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("%d in flight", inFlight), fmt.Sprintf("%d queued", queued)), ", ")
}

// A topLines writes what changed.
type topLines struct {
	g      *globals
	out    io.Writer
	talk   io.Writer
	before map[string]string // workload -> what was said of it last
	lost   bool
}

func (v *topLines) end() error { return nil }

func (v *topLines) show(list api.WorkloadList, lost error) error {
	if lost != nil {
		if !v.lost {
			_, _ = fmt.Fprintln(v.talk, "rouse:", lost, "(trying again)")
		}
		v.lost = true
		return nil
	}
	v.lost = false
	if v.g.output != formatTable {
		return v.g.printLine(v.out, list, nil)
	}
	return v.changes(list.Workloads)
}

func (v *topLines) changes(workloads []api.Workload) error {
	now := time.Now().Format(time.TimeOnly)
	said := make(map[string]string, len(workloads))
	for _, w := range workloads {
		line := fmt.Sprintf("%-20s  %-8s  %d in flight, %d queued", printable(w.Name), w.Phase, w.InFlight, w.Queued)
		if reason := w.Reason.String(); reason != "" {
			line += "  " + printable(reason)
		}
		said[w.Name] = line
		if v.before[w.Name] == line {
			continue
		}
		if _, err := fmt.Fprintf(v.out, "%s  %s\n", now, line); err != nil {
			return err
		}
	}
	for _, name := range goneFrom(v.before, said) {
		if _, err := fmt.Fprintf(v.out, "%s  %-20s  gone\n", now, printable(name)); err != nil {
			return err
		}
	}
	v.before = said
	return nil
}

// goneFrom lists the names that were and are not, in order.
func goneFrom(before, now map[string]string) []string {
	var gone []string
	for name := range before {
		if _, still := now[name]; !still {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}
