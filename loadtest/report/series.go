//go:build linux

package report

import (
	"fmt"
	"math"
)

// A panel is one of several plots over the same time, one below the other.
type panel struct {
	title  string
	lines  []series
	height float64
}

// A series is a line of a panel; NaN interrupts it.
type series struct {
	class  string
	xs, ys []float64
}

func (s *series) to(x, y float64) {
	s.xs, s.ys = append(s.xs, x), append(s.ys, y)
}

// A shade marks a stretch of the time.
type shade struct{ from, to float64 }

// overTime draws panels over time in seconds.
func overTime(f *figure, desc string, panels []panel, shades []shade) {
	f.draw(func(width float64) *plot {
		height := 34.0
		for _, one := range panels {
			height += one.height + 34
		}
		p := newPlot(width, height)
		p.Title, p.Desc = f.Title, desc
		end := 0.0
		for _, one := range panels {
			for _, s := range one.lines {
				for _, x := range s.xs {
					if !math.IsNaN(x) {
						end = max(end, x)
					}
				}
			}
		}
		x := linear(0, end, p.left, p.right, 6)
		top := 24.0
		for i, one := range panels {
			p.top, p.bottom = top, top+one.height
			one.draw(p, x, shades, i == len(panels)-1)
			top += one.height + 34
		}
		return p
	})
}

func (n panel) draw(p *plot, x scale, shades []shade, last bool) {
	lo, hi := math.Inf(1), 0.0
	for _, s := range n.lines {
		for _, y := range s.ys {
			if y > 0 { // and not NaN
				lo, hi = min(lo, y), max(hi, y)
			}
		}
	}
	for _, s := range shades {
		p.box("shade", x.at(s.from), p.top, x.at(s.to)-x.at(s.from), p.bottom-p.top, "")
	}
	y := upward(lo, max(hi, 1e-3), p.bottom, p.top, 3)
	if n.zeroes() {
		y = linear(0, max(hi, 1), p.bottom, p.top, 3)
	}
	p.gridY(y, n.title)
	if last {
		p.gridX(x, "seconds from the start")
	} else {
		p.gridX(scale{at: x.at, ticks: unlabelled(x.ticks)}, "")
	}
	for _, s := range n.lines {
		var line stroke
		for i := range s.xs {
			line.to(x.at(s.xs[i]), y.at(s.ys[i]))
		}
		p.path(s.class, line.String())
	}
}

// zeroes tells that there is a value which no logarithm has.
func (n panel) zeroes() bool {
	for _, s := range n.lines {
		for _, y := range s.ys {
			if y == 0 {
				return true
			}
		}
	}
	return false
}

func unlabelled(ticks []tick) []tick {
	bare := make([]tick, len(ticks))
	for i, t := range ticks {
		bare[i] = tick{at: t.at}
	}
	return bare
}

// secondsOfRun is the time of one run.
func secondsOfRun(l *lane) figure {
	f := figure{
		Title: "Second by second",
		Legend: []key{
			{"line c3", "right answers"}, {"line c1 thin dashed", "sent"},
			{"line c2", "intended p99"}, {"line c1", "intended p50"}, {"line c4 thin dashed", "service p99"},
		},
	}
	rate := panel{title: "per second", height: 90, lines: make([]series, 2)}
	times := panel{title: "ms", height: 130, lines: make([]series, 3)}
	failed := panel{title: "failed per second", height: 50, lines: make([]series, 1)}
	waiting := panel{title: "backlog, and in flight (dashed)", height: 60, lines: make([]series, 2)}
	for i, class := range []string{"line c3", "line c1 thin dashed"} {
		rate.lines[i].class = class
	}
	for i, class := range []string{"line c2", "line c1", "line c4 thin dashed"} {
		times.lines[i].class = class
	}
	failed.lines[0].class = "line failed"
	waiting.lines[0].class, waiting.lines[1].class = "line c5", "line c6 thin dashed"
	warm, failures, counted := shade{}, int64(0), false
	for _, s := range l.seconds {
		length := s.End - s.Start
		if length < 0.2 { // too short to be a rate
			length = math.NaN()
		}
		middle := (s.Start + s.End) / 2
		rate.lines[0].to(middle, float64(s.OK)/length)
		times.lines[0].to(middle, s.p99)
		times.lines[1].to(middle, s.p50)
		times.lines[2].to(middle, s.service99)
		if s.WarmUp {
			warm.to = s.End
		}
		if s.Started < 0 {
			continue
		}
		counted = true
		rate.lines[1].to(middle, float64(s.Started)/length)
		failed.lines[0].to(middle, float64(s.Failed)/length)
		waiting.lines[0].to(middle, float64(s.Backlog))
		waiting.lines[1].to(middle, float64(s.InFlight))
		failures += s.Failed
	}
	panels := []panel{rate, times}
	if failures > 0 {
		panels = append(panels, failed)
		f.Legend = append(f.Legend, key{"line failed", "failed"})
	}
	if counted {
		panels = append(panels, waiting)
		f.Legend = append(f.Legend, key{"line c5", "backlog"}, key{"line c6 thin dashed", "in flight"})
		f.Note = fmt.Sprintf("Answers are counted in the second in which they came. %s failed.", whole(failures))
	} else {
		f.Note = "This result is without a count of failures for each second."
	}
	var shades []shade
	if warm.to > 0 {
		shades = append(shades, warm)
		f.Note += " The warm-up is shaded: it is checked, but its latencies are not recorded."
	}
	f.Tables = []table{tableOfSeconds(l)}
	overTime(&f, describeSeconds(l), panels, shades)
	return f
}

func describeSeconds(l *lane) string {
	worst := second{p99: -1}
	for _, s := range l.seconds {
		if s.p99 > worst.p99 {
			worst = s
		}
	}
	if worst.p99 < 0 {
		return "No right answer came."
	}
	return fmt.Sprintf("%d intervals; the worst intended p99 is %s ms, in that from second %.0f.", len(l.seconds), ms(worst.p99), worst.Start)
}

// mostRows bounds a table of seconds: of a longer run, each row is the worst
// of several.
const mostRows = 20

func tableOfSeconds(l *lane) table {
	t := table{Caption: "Second by second", Head: []string{"From second", "OK per second", "p50", "p99", "Failed"}}
	each := (len(l.seconds) + mostRows - 1) / mostRows
	if each > 1 {
		t.Caption += fmt.Sprintf(": of %d at a time, the mean rate, the worst quantiles, and all that failed", each)
	}
	for from := 0; from < len(l.seconds); from += max(each, 1) {
		group := l.seconds[from:min(from+each, len(l.seconds))]
		ok, failed, p50, p99 := int64(0), int64(0), math.NaN(), math.NaN()
		for _, s := range group {
			ok, failed = ok+s.OK, failed+s.Failed
			p50, p99 = worse(p50, s.p50), worse(p99, s.p99)
		}
		length := max(group[len(group)-1].End-group[0].Start, 0.001)
		t.Rows = append(t.Rows, row{Cells: []string{
			fmt.Sprintf("%.1f", group[0].Start), thousands(fmt.Sprintf("%.0f", float64(ok)/length)), ms(p50), ms(p99), whole(failed),
		}})
	}
	return t
}

// worse is the larger, of those that are known.
func worse(a, b float64) float64 {
	if math.IsNaN(a) || b > a {
		return b
	}
	return a
}
