//go:build linux

package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// A curve is a latency by quantile, in milliseconds. At a quantile for which
// it has not enough values it is not asked.
type curve struct {
	name, class string
	count       int64 // of values; of several histograms, of the smallest
	at          func(q float64) trial.Estimate
	band        bool // at gives an interval

	points []point // what it is drawn by
}

// A point of a curve.
type point struct {
	q float64
	trial.Estimate
}

// exact is the estimate of a figure that is no estimate.
func exact(v float64) trial.Estimate { return trial.Estimate{N: 1, Median: v, Low: v, High: v} }

// steps is how many points a curve is drawn by.
const steps = 90

// percentiles draws curves over the quantiles.
func percentiles(title string, curves []curve) figure {
	f := figure{Title: title, Tables: []table{tableOfCurves(title, curves)}}
	for i, c := range curves {
		f.Legend = append(f.Legend, key{c.class, c.name})
		curves[i].points = c.sample()
	}
	f.draw(func(width float64) *plot {
		p := newPlot(width, plotHeight)
		p.Title, p.Desc = title, describeCurves(curves)
		drawPercentiles(p, curves)
		return p
	})
	return f
}

func drawPercentiles(p *plot, curves []curve) {
	count, lo, hi := int64(1), math.Inf(1), 0.0
	for _, c := range curves {
		count = max(count, c.count)
	}
	x, _ := nines(count, p.left, p.right)
	for _, c := range curves {
		for _, e := range c.points {
			hi = max(hi, e.High)
			if e.Low > 0 {
				lo = min(lo, e.Low)
			}
		}
	}
	y := upward(lo, hi, p.bottom, p.top, 5)
	p.gridY(y, "ms")
	p.gridX(x, "quantile; each step ten times rarer")
	for _, c := range curves {
		if c.band {
			p.path("band "+firstWord(c.class), c.outline(x, y))
		}
	}
	for _, c := range curves {
		var line stroke
		for _, e := range c.points {
			line.to(x.at(e.q), y.at(e.Median))
		}
		p.path(c.class, line.String())
	}
}

// firstWord of a class is its colour.
func firstWord(class string) string {
	word, _, _ := strings.Cut(class, " ")
	return word
}

// sample asks for the quantiles of a drawing, to the last that the values
// tell of.
func (c curve) sample() []point {
	_, most := nines(c.count, 0, 1)
	points := make([]point, steps+1)
	for i := range points {
		q := 1 - math.Pow(10, -most*float64(i)/steps)
		points[i] = point{q, c.at(q)}
	}
	return points
}

// outline is the band of the intervals.
func (c curve) outline(x, y scale) string {
	var there stroke
	var back []string
	for _, e := range c.points {
		there.to(x.at(e.q), y.at(e.High))
		back = append(back, fmt.Sprintf("L%.1f %.1f", x.at(e.q), y.at(e.Low)))
	}
	for i := len(back) - 1; i >= 0; i-- {
		there.d.WriteString(back[i])
	}
	return there.String() + "Z"
}

// told are the quantiles of tables.
var told = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}}

// enough tells whether so many values say something of a quantile: at least
// one of them is beyond it.
func enough(count int64, q float64) bool { return float64(count)*(1-q) >= 1-1e-9 }

func tableOfCurves(title string, curves []curve) table {
	t := table{Caption: title + ", ms", Head: []string{"Quantile"}}
	for _, c := range curves {
		t.Head = append(t.Head, c.name)
	}
	for _, q := range told {
		r := row{Cells: []string{q.name}}
		some := false
		for _, c := range curves {
			cell := "-"
			if enough(c.count, q.q) {
				cell, some = ms(c.at(q.q).Median), true
			}
			r.Cells = append(r.Cells, cell)
		}
		if some {
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

func describeCurves(curves []curve) string {
	var said []string
	for _, c := range curves {
		text := c.name + ":"
		for _, q := range told {
			if enough(c.count, q.q) {
				text += fmt.Sprintf(" %s %s ms", q.name, ms(c.at(q.q).Median))
			}
		}
		said = append(said, text)
	}
	return strings.Join(said, "; ") + "."
}
