//go:build linux

package trial

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// Limits are what a trial may not go over. Zero values are the defaults.
type Limits struct {
	// OwnLag is how late the generator itself may be, at p99; 1 ms.
	OwnLag time.Duration `json:"own_lag_p99_ns"`
	// Generator is the share of its core that it may use; 0.85.
	Generator float64 `json:"generator_cores"`
	// Foreign is work of others, in cores; 0.15.
	Foreign float64 `json:"foreign_cores"`
	// Steal is in cores; 0.02.
	Steal float64 `json:"steal_cores"`
	// Drift is by what factor the direct p50 of a trial may be off the median
	// of all; 1.5.
	Drift float64 `json:"direct_drift"`
	// Queue is the most of the intended p95 at a rate that Search calls carried:
	// beyond it, requests wait in a queue that grows; 5 ms.
	Queue time.Duration `json:"queue_p95_ns"`
}

func (l Limits) filled() Limits {
	return Limits{
		OwnLag: cmp.Or(l.OwnLag, time.Millisecond), Generator: cmp.Or(l.Generator, 0.85),
		Foreign: cmp.Or(l.Foreign, 0.15), Steal: cmp.Or(l.Steal, 0.02), Drift: cmp.Or(l.Drift, 1.5),
		Queue: cmp.Or(l.Queue, 5*time.Millisecond),
	}
}

// judge gives the trial its reasons to be rejected.
func (t *Trial) judge(limits Limits) {
	t.Rejected = []string{}
	for _, lane := range t.Order {
		run := t.Direct
		if lane == Routed {
			run = t.Routed
		}
		for _, reason := range run.faults(limits) {
			t.Rejected = append(t.Rejected, lane+": "+reason)
		}
	}
}

// Faults are the reasons to reject a run that is no part of a trial: nothing
// is known of its machine and its server.
func Faults(report openloop.Report, protocol string, limits Limits) []string {
	r := &Run{Report: report, Served: -1, Machine: Reading{Foreign: -1}, fresh: protocol == openloop.Fresh.String()}
	return r.faults(limits.filled())
}

// faults are the reasons to reject a run.
func (r *Run) faults(limits Limits) []string {
	var reasons []string
	no := func(bad bool, format string, args ...any) {
		if bad {
			reasons = append(reasons, fmt.Sprintf(format, args...))
		}
	}
	report, all := r.Report, r.Report.Measured
	no(all.Scheduled == 0, "nothing was due")
	no(all.Failed() > 0, "%d of %d requests failed: %s", all.Failed(), all.Scheduled, failures(all))
	no(!report.Conserved, "not conserved: %d due, %d started, %d finished", all.Scheduled, all.Started, all.Finished)
	sent := report.WarmUp.Sent + all.Sent
	no(r.Served >= 0 && r.Served != sent, "the server has served %d requests of %d", r.Served, sent)
	no(report.OwnLag.P99 > latency.Milliseconds(limits.OwnLag), "own lag p99 %.3f ms", report.OwnLag.P99)
	no(report.CoreShare > limits.Generator, "generator used %.0f %% of its core", 100*report.CoreShare)
	no(r.Machine.Foreign > limits.Foreign, "others used %.2f cores", r.Machine.Foreign)
	no(r.Machine.Steal > limits.Steal, "%.3f cores were stolen", r.Machine.Steal)
	no(report.DialsMeasured > 0 && !r.fresh, "%d dials after the warm-up", report.DialsMeasured)
	no(report.Unsolicited > 0, "%d connections with bytes that nobody asked for", report.Unsolicited)
	no(report.Intended.Overflow > 0, "%d times over an hour", report.Intended.Overflow)
	return reasons
}

func failures(c openloop.Counts) string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(c.Outcomes)) {
		if name != openloop.OK.String() {
			text += fmt.Sprintf("%d %s, ", c.Outcomes[name], name)
		}
	}
	return text + fmt.Sprintf("%d unsent", c.Unsent)
}

// drift rejects trials whose direct lane met another machine than the rest.
func drift(trials []*Trial, limit float64) {
	var p50s []float64
	for _, t := range trials {
		if t.Accepted() {
			p50s = append(p50s, t.Direct.Report.Intended.P50)
		}
	}
	middle := medianOf(p50s)
	for _, t := range trials {
		p50 := t.Direct.Report.Intended.P50
		if t.Accepted() && (p50 > middle*limit || p50 < middle/limit) {
			t.Rejected = append(t.Rejected, fmt.Sprintf("direct p50 %.3f ms is off the median of all, %.3f ms", p50, middle))
		}
	}
}
