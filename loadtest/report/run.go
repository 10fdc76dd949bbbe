//go:build linux

package report

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// A run is the result of `loadtest run`.
type run struct {
	origin *Origin // nil of a lane, and of older results
	lane   *lane
}

func openRun(dir string, origin *Origin) (source, error) {
	l, err := openLane(dir)
	if err != nil {
		return nil, err
	}
	return &run{origin, l}, nil
}

func (r *run) check() Check { return r.lane.check() }

func (r *run) part() part {
	p := part{Title: "A load", Verdict: r.verdict(), Manifest: r.manifest()}
	if r.origin != nil {
		p.Title = "A load: " + r.origin.Scenario
		p.Subtitle = r.origin.URL
	}
	if report := r.lane.report; report.Result != nil {
		m := report.Measured
		p.Subtitle = fmt.Sprintf("%s requests due in %g s at %s, begun %s", whole(m.Scheduled), report.WindowSeconds, orDash(p.Subtitle), stamp(report.Began))
		p.Cards = r.cards()
		p.Sections = append(p.Sections, section{
			Title:   "Latency by quantile",
			Note:    "Intended counts from the moment at which a request was due, service from its send; the send lag is what is between. A stall shows in the first even where nothing was sent.",
			Figures: []figure{percentiles("Latency", r.curves())},
		})
	}
	p.Sections = append(p.Sections, section{Title: "Over time", Figures: []figure{secondsOfRun(r.lane)}})
	if report := r.lane.report; report.Result != nil && report.Measured.Failed() > 0 {
		p.Sections = append(p.Sections, section{Title: "What failed", Figures: []figure{{Tables: []table{tableOfFailures(report)}}}})
	}
	return p
}

func (r *run) verdict() (v Verdict) {
	report := r.lane.report
	v.against(r.origin != nil && r.origin.Problem != "", "the command failed: %s", problem(r.origin))
	if report.Result == nil {
		v.against(true, "the run was ended before it could write its result: these are the seconds it had")
		return v
	}
	v.against(report.Aborted, "it was ended early")
	var limits trial.Limits
	if r.origin != nil && r.origin.Scenario == "bursts" {
		// The last of many that are due at once is late by what it takes to send
		// the others.
		limits.OwnLag = time.Hour
		v.reserve(report.OwnLag.P99 > 1, "sending a burst took the generator up to %s ms (p99), which is in the intended latencies", ms(report.OwnLag.P99))
	}
	protocol := ""
	if r.origin != nil {
		protocol = r.origin.Protocol
	}
	for _, fault := range trial.Faults(report, protocol, limits) {
		v.against(true, "%s", fault)
	}
	if r.origin != nil {
		v.revision(r.origin.Manifest.Revision)
	} else {
		v.reserve(true, "there is no manifest: nobody knows where this comes from")
	}
	if v.Valid() {
		v.speakFor("Each of the %s requests that were due was answered as it should be.", whole(report.Measured.Scheduled))
	}
	return v
}

func problem(o *Origin) string {
	if o == nil {
		return ""
	}
	return o.Problem
}

// revision reserves judgement on what cannot be built again.
func (v *Verdict) revision(r string) {
	v.reserve(r == "", "the program's revision is not known")
	v.reserve(len(r) > 6 && r[len(r)-6:] == "+dirty", "the program was built from changed source, %s", r)
}

func (r *run) cards() []card {
	report := r.lane.report
	m := report.Measured
	return []card{
		{"Right answers", whole(m.Outcomes[openloop.OK.String()]), fmt.Sprintf("of %s due", whole(m.Scheduled))},
		{"Rate", thousands(fmt.Sprintf("%.0f", report.Rate)), "right answers per second"},
		{"Intended p50", ms(report.Intended.P50) + " ms", ""},
		{"Intended p99", ms(report.Intended.P99) + " ms", "service " + ms(report.Service.P99)},
		{"Generator", fmt.Sprintf("%.0f %%", 100*report.CoreShare), "of a core; own lag p99 " + ms(report.OwnLag.P99) + " ms"},
	}
}

func (r *run) curves() []curve {
	curves := []curve{
		ofHistogram("intended", "c2 line", r.lane.merged[openloop.TagIntended]),
		ofHistogram("service", "c1 line", r.lane.merged[openloop.TagService]),
	}
	for _, c := range []struct{ name, class, table string }{
		{"send lag", "c4 line dashed", "send_lag"}, {"own lag", "c6 line dotted", "own_lag"}, {"added, by Server-Timing", "c3 line dashed", "added"},
	} {
		if t := r.lane.tables[c.table]; t.Total > 0 {
			curves = append(curves, curve{name: c.name, class: c.class, count: t.Total, at: func(q float64) trial.Estimate { return exact(t.Quantile(q)) }})
		}
	}
	return slices.DeleteFunc(curves, func(c curve) bool { return c.count == 0 })
}

func ofHistogram(name, class string, h *latency.Histogram) curve {
	if h == nil {
		h = latency.New()
	}
	return curve{name: name, class: class, count: h.Count(), at: func(q float64) trial.Estimate {
		return exact(latency.Milliseconds(h.Quantile(q)))
	}}
}

func tableOfFailures(r openloop.Report) table {
	t := table{Class: "words", Caption: "Requests that had no right answer", Head: []string{"How it ended", "Requests"}}
	for _, name := range slices.Sorted(maps.Keys(r.Measured.Outcomes)) {
		if name != openloop.OK.String() {
			t.Rows = append(t.Rows, row{Cells: []string{name, whole(r.Measured.Outcomes[name])}})
		}
	}
	if r.Measured.Unsent > 0 {
		t.Rows = append(t.Rows, row{Cells: []string{"unsent", whole(r.Measured.Unsent)}})
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Errors)) {
		t.Rows = append(t.Rows, row{Cells: []string{"in words: " + reason, whole(r.Errors[reason])}})
	}
	return t
}

func (r *run) manifest() []fact {
	var facts []fact
	if report := r.lane.report; report.Result != nil {
		facts = append(facts, fact{"Begun", stamp(report.Began)}, fact{"Measured", fmt.Sprintf("%g s", report.WindowSeconds)},
			fact{"Peak in flight", whole(report.PeakInFlight)}, fact{"Peak backlog", whole(report.PeakBacklog)},
			fact{"Connections made", fmt.Sprintf("%d before, %d in the warm-up, %d after", report.DialsBefore, report.DialsWarmUp, report.DialsMeasured)})
	}
	if r.origin != nil {
		facts = append(facts, fact{"URL", r.origin.URL}, fact{"Protocol", r.origin.Protocol})
		facts = append(facts, manifestFacts(r.origin.Manifest)...)
	}
	return facts
}
