package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// eventKinds are all that the history has.
var eventKinds = kindNames()

func kindNames() []string {
	var names []string
	for _, kind := range workload.EventKinds() {
		names = append(names, string(kind))
	}
	return names
}

// An eventFilter says which events of a history are shown. The zero value
// shows all.
type eventFilter struct {
	kinds []string
	since time.Duration // before now
	from  time.Time     // of since, at the call
	wake  string        // ID
}

func (f *eventFilter) define(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "only these `kinds`: "+strings.Join(eventKinds, ", "))
	cmd.Flags().DurationVar(&f.since, "since", 0, "only what is no older, as 90s or 24h")
	cmd.Flags().StringVar(&f.wake, "wake", "", "only the cold start of this `ID`")
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(eventKinds, cobra.ShellCompDirectiveNoFileComp))
}

func (f *eventFilter) check() error {
	for _, kind := range f.kinds {
		if !slices.Contains(eventKinds, kind) {
			return fmt.Errorf("--kind %q is no kind of event (%s)", kind, strict.DidYouMean(kind, eventKinds))
		}
	}
	if f.since < 0 {
		return fmt.Errorf("--since %s is in the future", f.since)
	}
	if f.since > 0 {
		f.from = time.Now().Add(-f.since)
	}
	return nil
}

func (f *eventFilter) narrow() bool { return len(f.kinds) > 0 || f.since > 0 || f.wake != "" }

func (f *eventFilter) takes(e api.Event) bool {
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, string(e.Kind))) &&
		!e.At.Before(f.from) &&
		(f.wake == "" || e.Wake != nil && e.Wake.ID == f.wake)
}

// allPast is more events than a server keeps.
const allPast = 10_000

// pastEvents shows the last q.Last of the events that f takes, and hands show
// the last event of all, so that it knows where to go on.
func pastEvents(ctx context.Context, c *client.Client, q api.EventQuery, f eventFilter, show func(api.Event) error) error {
	most := q.Last
	q.Last, q.Follow = allPast, false
	var past []api.Event
	var last api.Event
	err := c.Events(ctx, q, func(e api.Event) error {
		last = e
		if f.takes(e) {
			past = append(past, e)
			past = past[max(0, len(past)-most):]
		}
		return nil
	})
	if err != nil || last.ID == "" {
		return err
	}
	if len(past) == 0 || past[len(past)-1].ID != last.ID {
		past = append(past, last)
	}
	for _, e := range past {
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}
