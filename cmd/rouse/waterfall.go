package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

// barWidth is the width of the time axis in characters.
const barWidth = 50

// writeWake draws one cold start.
func writeWake(out io.Writer, w api.Wake) error {
	var b strings.Builder
	from, to := extent(w)
	fmt.Fprintf(&b, "%s %s\n", printable(w.Workload), headline(w, from))
	fmt.Fprintf(&b, "wake %s, generation %d, by %s%s", printable(w.ID), w.Generation, printable(string(w.Trigger)), at(w.Gateway))
	if !from.IsZero() {
		fmt.Fprintf(&b, ", %s", clock(from))
	}
	b.WriteString("\n\n")
	for i, p := range w.Phases {
		mark := "█"
		if w.Result == api.ResultFailed && i == len(w.Phases)-1 {
			mark = "▒" // the one that did not come to its end
		}
		fmt.Fprintf(&b, "%-8s %12s  %s\n", p.Phase, ms(p.Duration()), bar(p, from, to.Sub(from), mark))
	}
	if len(w.Phases) > 0 {
		fmt.Fprintf(&b, "%-8s %12s\n", "total", ms(to.Sub(from)))
	}
	writeLongest(&b, w, to.Sub(from))
	writeFailure(&b, w)
	_, err := io.WriteString(out, b.String())
	return err
}

// phaseCauses say what the time of a phase went to, and what there is to do
// about it.
var phaseCauses = map[workload.WakePhase]string{
	workload.PhaseWake:    "no scaler took the wake earlier; rouse doctor says whether one is there",
	workload.PhaseQueue:   "others were being started (limits.starts_in_parallel lets more start at once), it waited for what it depends on, or what conflicts with it had to sleep",
	workload.PhaseStart:   "the platform's own start; stop: pause keeps the memory and skips it",
	workload.PhaseProbe:   "the workload's own start-up, until it answered; keep_warm has it done before anybody waits",
	workload.PhaseReady:   "the news on its way to the gateway; rouse doctor says how far NATS is",
	workload.PhaseRelease: "letting go what was held, a few at first; limits.release_concurrency lets go more at once",
}

// writeLongest says where most of the time of a wake went that came to its end.
func writeLongest(b *strings.Builder, w api.Wake, total time.Duration) {
	if w.Result != api.ResultReady || total <= 0 {
		return
	}
	longest := slices.MaxFunc(w.Phases, func(x, y api.WakePhase) int { return cmp.Compare(x.DurationSeconds, y.DurationSeconds) })
	fmt.Fprintf(b, "\nlongest: %s, %d %% of it: %s\n", longest.Phase, 100*longest.Duration()/total, phaseCauses[longest.Phase])
}

func at(gateway string) string {
	if gateway == "" {
		return ""
	}
	return " at " + printable(gateway)
}

// headline is how it ended, and after how long.
func headline(w api.Wake, from time.Time) string {
	switch {
	case w.Result == api.ResultFailed:
		return "failed" + elapsed(from, w.FailedAt)
	case w.Result == api.ResultReady:
		return "ready" + elapsed(from, w.ReadyAt)
	}
	return "is waking, or the end of it was never told"
}

func elapsed(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return ""
	}
	return " after " + ms(max(0, to.Sub(from)))
}

// extent is the time axis: from the first phase's start to the last end.
func extent(w api.Wake) (from, to time.Time) {
	for i, p := range w.Phases {
		end := p.Start.Add(p.Duration())
		if i == 0 || p.Start.Before(from) {
			from = p.Start
		}
		if i == 0 || end.After(to) {
			to = end
		}
	}
	return from, to
}

// bar is one phase on the axis: at least one mark, and never past its end.
func bar(p api.WakePhase, from time.Time, total time.Duration, mark string) string {
	if total <= 0 {
		return mark
	}
	column := func(t time.Time) int { return int(int64(t.Sub(from)) * barWidth / int64(total)) }
	start := min(column(p.Start), barWidth-1)
	end := max(column(p.Start.Add(p.Duration())), start+1)
	return strings.Repeat(" ", start) + strings.Repeat(mark, end-start)
}

func writeFailure(b *strings.Builder, w api.Wake) {
	if w.Reason.IsZero() {
		return
	}
	fmt.Fprintf(b, "\nreason: %s\n", printable(w.Reason.String()))
	for _, line := range w.Reason.Log {
		fmt.Fprintf(b, "  | %s\n", printable(line))
	}
}
