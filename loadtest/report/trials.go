//go:build linux

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// shown are the quantiles of which each trial is a dot.
var shown = []struct {
	name string
	of   func(latency.Summary) float64
}{
	{"p50", func(s latency.Summary) float64 { return s.P50 }},
	{"p95", func(s latency.Summary) float64 { return s.P95 }},
	{"p99", func(s latency.Summary) float64 { return s.P99 }},
}

// dots has a dot for each run, and a line that joins the two of a trial.
func (c *comparison) dots() figure {
	f := figure{
		Title:  "Intended latency of each run",
		Legend: []key{{"c1 dot", "direct"}, {"c2 dot", "routed"}, {"cross", "rejected"}},
	}
	if reasons := c.reasons(); len(reasons.Rows) > 0 {
		f.Tables = []table{reasons}
	}
	f.draw(func(width float64) *plot {
		const height = 110
		p := newPlot(width, 24+float64(len(shown))*(height+34)+10)
		p.Title = "Intended latency of each run, by trial"
		p.Desc = fmt.Sprintf("%d of %d trials accepted. The figures of each are in the table of trials.", c.summary.Accepted, c.summary.Made)
		for i, q := range shown {
			p.top = 24 + float64(i)*(height+34)
			p.bottom = p.top + height
			c.drawDots(p, q.name, q.of, i == len(shown)-1)
		}
		return p
	})
	return f
}

func (c *comparison) drawDots(p *plot, name string, of func(latency.Summary) float64, last bool) {
	lo, hi := math.Inf(1), 0.0
	for _, t := range c.pairs {
		for _, r := range []*trial.Run{t.Direct, t.Routed} {
			if v := of(r.Report.Intended); v > 0 {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	y := upward(lo, hi, p.bottom, p.top, 3)
	p.gridY(y, name+", ms")
	step := (p.right - p.left) / float64(max(1, len(c.pairs)))
	radius := min(4.5, max(2, step/3))
	for i, t := range c.pairs {
		x := p.left + (float64(i)+0.5)*step
		direct, routed := of(t.Direct.Report.Intended), of(t.Routed.Report.Intended)
		p.path("span thin ink", fmt.Sprintf("M%.1f %.1fV%.1f", x, y.at(direct), y.at(routed)))
		p.run(t.Trial, "direct", "c1", name, x, y.at(direct), radius, direct)
		p.run(t.Trial, "routed", "c2", name, x, y.at(routed), radius, routed)
		if last && (step > 16 || i%5 == 4 || i == 0) {
			p.text("tick", "middle", x, p.bottom+16, fmt.Sprint(t.Number))
		}
	}
	if last {
		p.text("unit", "end", p.right, p.bottom+32, "trial")
	}
}

// run is a dot, or a cross in the run's colour where its trial does not count.
func (p *plot) run(t *trial.Trial, side, class, quantile string, x, y, radius, value float64) {
	note := fmt.Sprintf("trial %d, %s %s: %s ms", t.Number, side, quantile, ms(value))
	if t.Accepted() {
		p.dot("dot "+class, x, y, radius, note)
		return
	}
	p.dot("dot open "+class, x, y, radius, "")
	p.cross("", x, y, note+"; rejected: "+strings.Join(t.Rejected, "; "))
}

// tableOfTrials has each run with what it was judged by.
func (c *comparison) tableOfTrials() figure {
	t := table{
		Caption: "Every run, in the order in which they were made; times in ms, work in cores",
		Head:    []string{"Trial", "Lane", "p50", "p95", "p99", "Max", "OK", "Failed", "Own lag p99", "Generator", "Others", "Stolen", "Verdict"},
	}
	for _, one := range c.pairs {
		for _, lane := range one.Order {
			run := one.Direct
			if lane == trial.Routed {
				run = one.Routed
			}
			t.Rows = append(t.Rows, rowOfRun(one.Trial, lane, run))
		}
	}
	return figure{Tables: []table{t}}
}

func (c *comparison) reasons() table {
	t := table{Class: "words", Caption: "Why trials were rejected", Head: []string{"Trial", "Reason"}}
	for _, one := range c.pairs {
		if !one.Accepted() {
			t.Rows = append(t.Rows, row{Cells: []string{fmt.Sprint(one.Number), strings.Join(one.Rejected, "; ")}})
		}
	}
	return t
}

func rowOfRun(t *trial.Trial, lane string, run *trial.Run) row {
	r := run.Report
	verdict, class := "accepted", ""
	if !t.Accepted() {
		verdict, class = "rejected", "rejected"
	}
	others := fmt.Sprintf("%.3f", run.Machine.Foreign)
	if run.Machine.Foreign < 0 {
		others = "not known"
	}
	return row{Class: class, Cells: []string{
		fmt.Sprint(t.Number), lane, ms(r.Intended.P50), ms(r.Intended.P95), ms(r.Intended.P99), ms(r.Intended.Max),
		whole(r.Measured.Outcomes[openloop.OK.String()]), whole(r.Measured.Failed()), ms(r.OwnLag.P99),
		fmt.Sprintf("%.2f", r.CoreShare), others, fmt.Sprintf("%.3f", run.Machine.Steal), verdict,
	}}
}

// seconds puts all runs on one line of time: what changes with the hour
// shows, and whom it meets.
func (c *comparison) seconds() figure {
	f := figure{
		Title:  "All runs, second by second",
		Legend: []key{{"c1 line", "direct p50"}, {"c1 line thin dashed", "direct p99"}, {"c2 line", "routed p50"}, {"c2 line thin dashed", "routed p99"}},
	}
	classes := []string{"c1 line", "c1 line thin dashed", "c2 line", "c2 line thin dashed"}
	times := panel{title: "intended, ms", height: 170, lines: make([]series, 4)}
	rate := panel{title: "right answers per second", height: 80, lines: []series{{class: "c1 line"}, {class: "c2 line"}}}
	failed := panel{title: "failed per second", height: 50, lines: []series{{class: "line failed"}}}
	for i := range times.lines {
		times.lines[i].class = classes[i]
	}
	var shades []shade
	failures := int64(0)
	for _, p := range c.pairs {
		for side, l := range []*lane{p.direct, p.routed} {
			from := l.began.Sub(c.summary.Began).Seconds()
			end := from
			for _, s := range l.seconds {
				x, length := from+(s.Start+s.End)/2, s.End-s.Start
				end = from + s.End
				if length < 0.2 {
					length = math.NaN()
				}
				times.lines[2*side].to(x, s.p50)
				times.lines[2*side+1].to(x, s.p99)
				rate.lines[side].to(x, float64(s.OK)/length)
				failed.lines[0].to(x, float64(s.Failed)/length)
				failures += s.Failed
			}
			for _, line := range []*series{&times.lines[2*side], &times.lines[2*side+1], &rate.lines[side], &failed.lines[0]} {
				line.to(math.NaN(), math.NaN())
			}
			if !p.Accepted() {
				shades = append(shades, shade{from, end})
			}
		}
	}
	f.Note = fmt.Sprintf("Rejected trials are shaded. %s requests failed, with those of the warm-ups.", whole(failures))
	panels := []panel{times, rate}
	if failures > 0 {
		panels = append(panels, failed)
	}
	overTime(&f, fmt.Sprintf("%d runs in the order in which they were made.", 2*len(c.pairs)), panels, shades)
	return f
}
