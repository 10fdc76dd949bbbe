package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

// progressEvery is how often a wake that is waited for is looked at.
const progressEvery = 100 * time.Millisecond

// A progress tells how a wake goes while somebody waits for it: on a terminal
// in one line that is rewritten, else in one for each step.
type progress struct {
	out     io.Writer
	client  *client.Client
	name    string
	rewrite bool
	begun   time.Time
	usual   time.Duration // the median of past ones; 0: there are none
	past    string        // ID of the last wake before this one
	told    workload.WakePhase
}

// startProgress begins to tell, and returns how to end it. That waits.
func startProgress(ctx context.Context, out io.Writer, c *client.Client, name string) (end func()) {
	_, rewrite := screenOf(out)
	p := &progress{out: out, client: c, name: name, rewrite: rewrite, begun: time.Now()}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx)
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (p *progress) run(ctx context.Context) {
	wakes, err := p.client.Wakes(ctx, p.name)
	if err != nil {
		return // whoever waits is told why
	}
	p.remember(wakes)
	for {
		if pause(ctx, progressEvery); ctx.Err() != nil {
			break
		}
		if wakes, err := p.client.Wakes(ctx, p.name); err == nil {
			p.tell(p.phase(wakes))
		}
	}
	if p.rewrite && p.told != "" {
		_, _ = fmt.Fprint(p.out, "\r"+clearLine)
	}
}

// remember learns from the wakes that were. One that is under way is joined.
func (p *progress) remember(wakes []api.Wake) {
	var took []time.Duration
	for i, w := range wakes {
		if i == 0 && w.Result != api.ResultWaking {
			p.past = w.ID
		}
		if w.Result == api.ResultReady && !w.RequestedAt.IsZero() {
			took = append(took, w.ReadyAt.Sub(w.RequestedAt))
		}
	}
	if len(took) > 0 {
		slices.Sort(took)
		p.usual = took[len(took)/2]
	}
}

// phase is the step that the newest wake is at.
func (p *progress) phase(wakes []api.Wake) workload.WakePhase {
	if len(wakes) == 0 || wakes[0].ID == p.past {
		return workload.PhaseWake
	}
	switch w := wakes[0]; {
	case !w.StartedAt.IsZero():
		return workload.PhaseProbe
	case !w.StartAt.IsZero():
		return workload.PhaseStart
	case !w.ReceivedAt.IsZero():
		return workload.PhaseQueue
	}
	return workload.PhaseWake
}

// progressWords say what is waited for in each step.
var progressWords = map[workload.WakePhase]string{
	workload.PhaseWake:  "asked for, no scaler has it yet",
	workload.PhaseQueue: "a scaler has it, waiting for a place among the parallel starts",
	workload.PhaseStart: "starting",
	workload.PhaseProbe: "started, waiting for it to answer",
}

func (p *progress) tell(phase workload.WakePhase) {
	if !p.rewrite && phase == p.told {
		return
	}
	p.told = phase
	line := fmt.Sprintf("%s: %s, %.1f s", printable(p.name), progressWords[phase], time.Since(p.begun).Seconds())
	if p.usual > 0 {
		line += fmt.Sprintf(" of about %.1f s", p.usual.Seconds())
	}
	if p.rewrite {
		_, _ = fmt.Fprint(p.out, "\r"+line+clearLine)
		return
	}
	_, _ = fmt.Fprintln(p.out, line)
}
