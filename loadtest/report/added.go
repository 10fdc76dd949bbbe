//go:build linux

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// added draws the estimates of what the proxy adds, by quantile.
func (c *comparison) added() figure {
	f := figure{Title: "Added latency", Legend: []key{{"c2 dot", "difference of the two runs of a trial"}}}
	s := c.summary
	f.Tables = []table{tableOfAdded(s)}
	if len(s.ServerTiming) > 0 {
		f.Legend = append(f.Legend, key{"c3 dot", "by Server-Timing, per request"})
	}
	f.draw(func(width float64) *plot {
		p := newPlot(width, plotHeight)
		p.Title, p.Desc = "Added latency by quantile, with intervals", describeQuantiles(s.Quantiles)
		drawAdded(p, s)
		return p
	})
	return f
}

func drawAdded(p *plot, s *trial.Summary) {
	lo, hi := math.Inf(1), 0.0
	all := append(append([]trial.Quantile{}, s.Quantiles...), s.ServerTiming...)
	for _, q := range all {
		lo, hi = min(lo, q.Added.Low), max(hi, q.Added.High)
	}
	x, _ := nines(1000, p.left+10, p.right-10)
	y := upward(lo, hi, p.bottom, p.top, 5)
	p.gridY(y, "ms added")
	p.gridX(x, "quantile; each step ten times rarer")
	if lo < 0 {
		p.hline("zero", y.at(0))
	}
	whisker := func(class, what string, shift float64, q trial.Quantile) {
		at := x.at(q.Q) + shift
		p.path("span "+class, fmt.Sprintf("M%.1f %.1fV%.1fM%.1f %.1fH%.1fM%.1f %.1fH%.1f", at, y.at(q.Added.Low), y.at(q.Added.High),
			at-4, y.at(q.Added.Low), at+4, at-4, y.at(q.Added.High), at+4))
		p.dot("dot "+class, at, y.at(q.Added.Median), 4.5, fmt.Sprintf("%s at %s: %s ms, %s", what, q.Name, signed(q.Added.Median), between(q.Added)))
	}
	for _, q := range s.Quantiles {
		whisker("c2", "added", 0, q)
	}
	for _, q := range s.ServerTiming {
		whisker("c3", "added by Server-Timing", 9, q)
	}
}

func describeQuantiles(quantiles []trial.Quantile) string {
	var said []string
	for _, q := range quantiles {
		if q.Q >= 0.9 || q.Q == 0.5 {
			said = append(said, fmt.Sprintf("%s: %s ms, interval %s", q.Name, signed(q.Added.Median), between(q.Added)))
		}
	}
	return strings.Join(said, "; ") + "."
}

func tableOfAdded(s *trial.Summary) table {
	t := table{
		Caption: fmt.Sprintf("Medians over %s, ms; the intervals hold them with %.1f %%", count(s.Accepted, "trial"), 100*s.Quantiles[0].Added.Coverage),
		Head:    []string{"Quantile", "Direct", "Routed", "Added", "Interval"},
	}
	for _, q := range s.Quantiles {
		t.Rows = append(t.Rows, row{Cells: []string{q.Name, ms(q.Direct.Median), ms(q.Routed.Median), signed(q.Added.Median), between(q.Added)}})
	}
	for _, q := range s.ServerTiming {
		t.Rows = append(t.Rows, row{Cells: []string{"Server-Timing " + q.Name, "", "", signed(q.Added.Median), between(q.Added)}})
	}
	return t
}
