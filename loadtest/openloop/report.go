//go:build linux

package openloop

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// A Report is a result as it is written down: its JSON.
type Report struct {
	*Result
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	WindowSeconds  float64 `json:"window_seconds"`
	// Rate is in right answers per second.
	Rate       float64 `json:"rate"`
	CPUSeconds float64 `json:"cpu_seconds"`
	CoreShare  float64 `json:"core_share"`
	// Conserved tells that each request that was due was sent and ended.
	Conserved bool `json:"conserved"`

	Intended latency.Summary  `json:"intended_ms"`
	Service  latency.Summary  `json:"service_ms"`
	SendLag  latency.Summary  `json:"send_lag_ms"`
	OwnLag   latency.Summary  `json:"own_lag_ms"`
	Added    *latency.Summary `json:"server_timing_added_ms,omitempty"`
}

// Report writes the result down.
func (r *Result) Report() Report {
	report := Report{
		Result: r, ElapsedSeconds: r.Elapsed.Seconds(), WindowSeconds: r.Window.Seconds(), Rate: r.Rate(),
		CPUSeconds: r.CPU.Seconds(), CoreShare: r.CoreShare(),
		Conserved: r.WarmUp.Conserved() && r.Measured.Conserved(),
		Intended:  r.Times.Intended.Summary(), Service: r.Times.Service.Summary(),
		SendLag: r.Times.SendLag.Summary(), OwnLag: r.Times.OwnLag.Summary(),
	}
	if r.Times.Added.Count() > 0 {
		added := r.Times.Added.Summary()
		report.Added = &added
	}
	return report
}

// Text writes the report for a person.
func (r Report) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	m := r.Measured
	p("%d requests due in %.1f s: %d right answers, %.1f per second\n", m.Scheduled, r.WindowSeconds, m.Outcomes[OK.String()], r.Rate)
	if r.Aborted {
		p("ended early: %d unsent, %d unfinished\n", m.Unsent, m.Outcomes[Unfinished.String()])
	}
	for _, name := range slices.Sorted(maps.Keys(m.Outcomes)) {
		if name != OK.String() {
			p("%d %s\n", m.Outcomes[name], name)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Errors)) {
		p("%d times, with the warm-up: %s\n", r.Errors[reason], reason)
	}
	if failed := m.Failed(); failed > 0 {
		p("the times below leave out %d requests that failed\n", failed)
	}
	p("\nms\tp50\tp90\tp95\tp99\tp99.9\tmax\t\n")
	line := func(name string, s latency.Summary) {
		p("%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", name, s.P50, s.P90, s.P95, s.P99, s.P999, s.Max)
	}
	line("intended", r.Intended)
	line("service", r.Service)
	line("send lag", r.SendLag)
	line("own lag", r.OwnLag)
	if r.Added != nil {
		line("added, by Server-Timing", *r.Added)
	}
	p("\npeak in flight %d, peak backlog %d, dials %d before, %d in warm-up, %d after; generator %.0f %% of a core\n",
		r.PeakInFlight, r.PeakBacklog, r.DialsBefore, r.DialsWarmUp, r.DialsMeasured, 100*r.CoreShare)
	return table.Flush()
}

// A Progress is an interval as it is written down, a JSON object a line.
type Progress struct {
	AtSeconds float64 `json:"at_seconds"`
	WarmUp    bool    `json:"warm_up"`
	// Rates are per second.
	SendRate  float64 `json:"send_rate"`
	OKRate    float64 `json:"ok_rate"`
	Failed    int64   `json:"failed"`
	Backlog   int64   `json:"backlog"`
	InFlight  int64   `json:"in_flight"`
	IntendedP float64 `json:"intended_p95_ms"`
	ServiceP  float64 `json:"service_p95_ms"`
}

// Progress writes the interval down.
func (i Interval) Progress() Progress {
	length := max(i.End-i.Start, time.Microsecond).Seconds()
	return Progress{
		AtSeconds: i.End.Seconds(), WarmUp: i.WarmUp,
		SendRate: float64(i.Started) / length, OKRate: float64(i.OK) / length,
		Failed: i.Failed, Backlog: i.Backlog, InFlight: i.InFlight,
		IntendedP: latency.Milliseconds(i.Intended.Quantile(0.95)), ServiceP: latency.Milliseconds(i.Service.Quantile(0.95)),
	}
}
