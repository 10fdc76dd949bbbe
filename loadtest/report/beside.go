//go:build linux

package report

import (
	"fmt"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// sideBySide puts what several proxies, or several rates, add below each
// other. It is false of fewer than two comparisons.
func sideBySide(sources []named) (section, bool) {
	var names []string
	var found []*trial.Summary
	for _, s := range sources {
		if c, ok := s.source.(*comparison); ok && c.summary.Accepted > 0 {
			names, found = append(names, s.name), append(found, c.summary)
		}
	}
	if len(found) < 2 {
		return section{}, false
	}
	s := section{
		Title: "Side by side",
		Note:  "What each adds to the latency of its own direct lane, from paired trials, with the interval of the median. Compare only what was measured at the same rate.",
	}
	for _, q := range []string{"p50", "p95", "p99"} {
		s.Figures = append(s.Figures, forest(q, names, found))
	}
	return s, true
}

// forest has a line for each comparison.
func forest(quantile string, names []string, found []*trial.Summary) figure {
	f := figure{Title: "Added at " + quantile}
	t := table{Caption: "Added at " + quantile + ", ms", Head: []string{"Result", "Per second", "Direct", "Routed", "Added", "Interval"}}
	for i, s := range found {
		q := added(s, quantile)
		t.Rows = append(t.Rows, row{Cells: []string{
			names[i], fmt.Sprintf("%g", s.Config.Rate), ms(q.Direct.Median), ms(q.Routed.Median), signed(q.Added.Median), between(q.Added),
		}})
	}
	f.Tables = []table{t}
	f.draw(func(width float64) *plot {
		const line = 38
		p := newPlot(width, 64+float64(len(found))*line)
		p.left, p.top = 14, 12
		p.Title = f.Title
		lo, hi := 0.0, 0.0
		for _, s := range found {
			e := added(s, quantile).Added
			lo, hi = min(lo, e.Low), max(hi, e.High)
		}
		x := linear(lo, hi, p.left, p.right-4, 5)
		p.gridX(x, "ms added")
		p.vline("zero", x.at(0))
		for i, s := range found {
			q := added(s, quantile)
			y := p.top + float64(i)*line + 26
			class := fmt.Sprintf("c%d", i%6+1)
			said := fmt.Sprintf("%s at %g per second: %s ms, %s", names[i], s.Config.Rate, signed(q.Added.Median), between(q.Added))
			p.Desc += said + ". "
			p.text("name", "start", p.left+4, y-9, names[i])
			p.path("span "+class, fmt.Sprintf("M%.1f %.1fH%.1f", x.at(q.Added.Low), y, x.at(q.Added.High)))
			p.dot("dot "+class, x.at(q.Added.Median), y, 5, said)
		}
		return p
	})
	return f
}

func added(s *trial.Summary, quantile string) trial.Quantile {
	for _, q := range s.Quantiles {
		if q.Name == quantile && q.Direct != nil && q.Routed != nil {
			return q
		}
	}
	return trial.Quantile{Direct: &trial.Estimate{}, Routed: &trial.Estimate{}}
}
