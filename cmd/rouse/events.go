package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

// askAgain is the pause before a lost event stream is asked for again.
const askAgain = time.Second

func newEventsCommand(g *globals) *cobra.Command {
	q, f := api.EventQuery{}, eventFilter{}
	cmd := &cobra.Command{
		Use:   "events [NAME]",
		Short: "Show the history, and follow it",
		Long: `Events prints what happened last to all workloads or to one, oldest first.
With -f it goes on with what happens from now on until it is interrupted, and
when it loses the server it looks for it again. --kind, --since and --wake leave
out all others, before --lines are counted. With -o json each event is one line.`,
		Example:           "  rouse events -f\n  rouse events wiki -n 5 -o json\n  rouse events --kind failed --since 24h",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: g.completeName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.Workload = args[0]
			}
			if q.Last < 0 {
				return fail(exitUsage, fmt.Errorf("--lines %d is less than none", q.Last))
			}
			if err := f.check(); err != nil {
				return fail(exitUsage, err)
			}
			return g.events(cmd, q, f)
		},
	}
	cmd.Flags().BoolVarP(&q.Follow, "follow", "f", false, "go on with new events")
	cmd.Flags().IntVarP(&q.Last, "lines", "n", 50, "how many past events to show first")
	f.define(cmd)
	return cmd
}

func (g *globals) events(cmd *cobra.Command, q api.EventQuery, f eventFilter) error {
	c, err := g.client()
	if err != nil {
		return err
	}
	ctx, begun, shown := cmd.Context(), false, &recent{limit: q.Last}
	show := func(e api.Event) error {
		q.After = e.ID
		if !f.takes(e) || !shown.add(e) {
			return nil
		}
		return g.printLine(cmd.OutOrStdout(), e, func(out io.Writer) error { return writeEvent(out, e) })
	}
	if f.narrow() {
		if err := pastEvents(ctx, c, q, f, show); err != nil || !q.Follow {
			return apiError(err)
		}
	}
	for {
		err = c.Events(ctx, q, show)
		begun = begun || errors.Is(err, client.ErrEnded)
		switch {
		case ctx.Err() != nil && q.Follow:
			return nil // the person has seen enough
		case !q.Follow || !begun || !errors.Is(err, client.ErrUnreachable):
			return apiError(err)
		}
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "rouse:", err, "(trying again)")
		pause(ctx, askAgain)
	}
}

// recent remembers the last events shown: a server that was restarted does not
// know where we were, and begins with the last ones again.
type recent struct {
	limit int
	keys  []string
}

// add reports whether e is new.
func (r *recent) add(e api.Event) bool {
	key := fmt.Sprint(e.Workload, " ", e.Kind, " ", e.Generation, " ", e.At.UnixNano(), " ", e.Actor)
	if slices.Contains(r.keys, key) {
		return false
	}
	r.keys = append(r.keys, key)
	r.keys = r.keys[max(0, len(r.keys)-r.limit):]
	return true
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func writeEvent(out io.Writer, e api.Event) error {
	_, err := fmt.Fprintf(out, "%s  %-20s  %-8s  %s\n", clock(e.At), printable(e.Workload), printable(string(e.Kind)), printable(eventDetail(e)))
	return err
}

// eventDetail says what the kind does not.
func eventDetail(e api.Event) string {
	detail := fmt.Sprintf("generation %d", e.Generation)
	if reason := e.Reason.String(); reason != "" {
		detail += ", " + reason
	}
	if e.Wake == nil {
		return detail
	}
	if e.Kind == workload.EventWoken {
		detail += fmt.Sprintf(", by %s", e.Wake.Trigger)
	} else if !e.Wake.RequestedAt.IsZero() {
		detail += ", " + ms(max(0, e.At.Sub(e.Wake.RequestedAt))) + " after it was asked for"
	}
	return detail + ", wake " + e.Wake.ID
}
