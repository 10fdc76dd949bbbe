//go:build linux

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// Phases of a cold start: what they are, and their colour.
var phases = map[string]struct{ class, text string }{
	"arrive": {"ink", "until the request is held"},
	"wake":   {"c1", "until a scaler has received the wake"},
	"queue":  {"c6", "until the start call"},
	"start":  {"c4", "its call, once the app listens"},
	"probe":  {"c3", "until readiness is proved"},
	"ready":  {"c5", "until the gate is open"},
	"bare":   {"app", "the start without Rouse"},
	"answer": {"c2", "until the first byte of the answer"},
}

func phaseClass(name string) string {
	if p, known := phases[name]; known {
		return p.class
	}
	return "ink"
}

// waterfall draws one cold start, each phase below the one before it.
func (c *coldStarts) waterfall(t coldstart.Trial) figure {
	f := figure{Title: fmt.Sprintf("Trial %d: %s ms from the request to the first byte", t.N, ms(t.Total))}
	over := table{Caption: fmt.Sprintf("Phases over %d cold starts, ms", c.Added.N), Head: []string{"Phase", "Median", "p95", "Max"}}
	for _, phase := range c.Phases {
		over.Rows = append(over.Rows, statRow(phase.Name, phase.Stat))
	}
	over.Rows = append(over.Rows, statRow("total", c.Total))
	if c.Bare != nil {
		over.Rows = append(over.Rows, statRow("bare total", c.Bare.Total))
	}
	f.Tables = []table{over}
	f.draw(func(width float64) *plot {
		const line = 26
		rows := len(t.Phases)
		if t.Bare != nil {
			rows++
		}
		p := newPlot(width, 58+float64(rows)*line)
		p.left, p.right = 64, width-14
		longest := t.Total
		if t.Bare != nil {
			longest = max(longest, t.Bare.Total)
		}
		p.Title, p.Desc = f.Title, describeSpans(t.Phases)
		x := linear(0, longest, p.left, p.right-4, 5)
		p.top = 20
		p.gridX(x, "ms from the request")
		from := 0.0
		for i, phase := range t.Phases {
			p.bar(x, t, phase, p.top+float64(i)*line, from)
			from += phase.MS
		}
		if t.Bare != nil {
			p.bar(x, coldstart.Trial{}, coldstart.Span{Name: "bare", MS: t.Bare.Total}, p.top+float64(rows-1)*line, 0)
		}
		listen := x.at(listens(t))
		p.vline("moment", listen)
		p.text("unit", anchorAt(listen, width), listen, p.top-8, "the app listens")
		return p
	})
	from := 0.0
	for _, phase := range t.Phases {
		known, ok := phases[phase.Name]
		if ok && slices.ContainsFunc(pieces(t, phase, from), func(one piece) bool { return one.class == known.class }) {
			f.Legend = append(f.Legend, key{known.class + " bar", phase.Name + ": " + known.text})
		}
		from += phase.MS
	}
	f.Legend = append(f.Legend, key{"app bar", "the app's own start"})
	return f
}

// listens is when the app did, from the request on.
func listens(t coldstart.Trial) float64 { return starts(t) + t.App }

// starts is when the start was called, from the request on.
func starts(t coldstart.Trial) (sum float64) {
	for _, phase := range t.Phases {
		if phase.Name == "start" {
			return sum
		}
		sum += phase.MS
	}
	return 0
}

// A piece of a phase has one colour.
type piece struct {
	class        string
	from, length float64
}

// pieces cut a phase that begins at a time: what is between the start call
// and the app's listen() is the app's own.
func pieces(t coldstart.Trial, phase coldstart.Span, from float64) []piece {
	end := from + phase.MS
	begin, finish := min(max(starts(t), from), end), max(min(listens(t), end), from)
	if finish <= begin {
		return []piece{{phaseClass(phase.Name), from, phase.MS}}
	}
	var cut []piece
	for _, one := range []piece{{phaseClass(phase.Name), from, begin - from}, {"app", begin, finish - begin}, {phaseClass(phase.Name), finish, end - finish}} {
		if one.length > 0 {
			cut = append(cut, one)
		}
	}
	return cut
}

func anchorAt(x, width float64) string {
	switch {
	case x > width-60:
		return "end"
	case x < 60:
		return "start"
	}
	return "middle"
}

// bar is a line of a waterfall, its figure beside it on the side where there
// is room.
func (p *plot) bar(x scale, t coldstart.Trial, phase coldstart.Span, y, from float64) {
	p.text("name", "end", p.left-8, y+16, phase.Name)
	note := fmt.Sprintf("%s: %s ms, from %s on", phase.Name, ms(phase.MS), ms(from))
	for _, one := range pieces(t, phase, from) {
		begin, end := x.at(one.from), x.at(one.from+one.length)
		p.box("bar "+one.class, begin, y+4, max(2, end-begin), 16, note)
	}
	begin, end, label := x.at(from), x.at(from+phase.MS), ms(phase.MS)
	switch room := float64(len(label))*7 + 8; {
	case end+room < p.right:
		p.text("value", "start", max(end, begin+2)+6, y+16, label)
	case begin-room > p.left:
		p.text("value", "end", begin-6, y+16, label)
	default:
		p.text("value", "end", end-6, y+16, label)
	}
}

func describeSpans(spans []coldstart.Span) string {
	var said []string
	for _, s := range spans {
		said = append(said, fmt.Sprintf("%s %s ms", s.Name, ms(s.MS)))
	}
	return strings.Join(said, ", ") + "."
}

func statRow(name string, s coldstart.Stat) row {
	return row{Cells: []string{name, ms(s.Median), ms(s.P95), ms(s.Max)}}
}

// bars has a bar for each trial, of its phases, and below it the start
// without Rouse.
func (c *coldStarts) bars() figure {
	f := figure{Title: "Time to the first byte, by trial", Tables: []table{c.tableOfTrials()}}
	for _, phase := range c.Phases {
		if phase.Name != "start" {
			f.Legend = append(f.Legend, key{phaseClass(phase.Name) + " bar", phase.Name})
		}
	}
	f.Legend = append(f.Legend, key{"app bar", "the app's own start"})
	if c.Bare != nil {
		f.Legend = append(f.Legend, key{"line ink", "start without Rouse"})
	}
	f.draw(func(width float64) *plot {
		good := c.good()
		line := min(22, max(5, 900/float64(len(good))))
		p := newPlot(width, 58+float64(len(good))*line)
		p.left, p.top = 40, 18
		p.Title = f.Title
		p.Desc = fmt.Sprintf("%d cold starts: median %s ms, p95 %s ms, worst %s ms.", c.Total.N, ms(c.Total.Median), ms(c.Total.P95), ms(c.Total.Max))
		longest := c.Total.Max
		if c.Bare != nil {
			longest = max(longest, c.Bare.Total.Max)
		}
		x := linear(0, longest, p.left, p.right, 5)
		p.gridX(x, "ms from the request")
		for i, t := range good {
			y := p.top + float64(i)*line
			if line >= 12 || i%5 == 4 {
				p.text("tick", "end", p.left-6, y+line/2+4, fmt.Sprint(t.N))
			}
			p.spans(x, t, y+line*0.12, line*0.6)
			if t.Bare != nil {
				p.path("line ink thin", fmt.Sprintf("M%.1f %.1fH%.1f", x.at(0), y+line*0.86, x.at(t.Bare.Total)))
			}
		}
		return p
	})
	return f
}

func (p *plot) spans(x scale, t coldstart.Trial, y, height float64) {
	from := 0.0
	if len(t.Phases) == 0 {
		p.box("bar ink", x.at(0), y, x.at(t.Total)-x.at(0), height, fmt.Sprintf("trial %d: %s ms", t.N, ms(t.Total)))
	}
	for _, phase := range t.Phases {
		for _, one := range pieces(t, phase, from) {
			p.box("bar "+one.class, x.at(one.from), y, x.at(one.from+one.length)-x.at(one.from), height,
				fmt.Sprintf("trial %d, %s: %s ms", t.N, phase.Name, ms(phase.MS)))
		}
		from += phase.MS
	}
}

// addedDots has a dot for what Rouse added to each start.
func (c *coldStarts) addedDots() figure {
	f := figure{
		Title:  "Added by Rouse, by trial",
		Legend: []key{{"c2 dot", "added in all"}, {"c1 dot", "from listen() to the first byte"}, {"moment", "median added"}},
	}
	added := table{Caption: "Over all cold starts, ms", Head: []string{"", "Min", "Median", "p95", "Max"}}
	for _, one := range []struct {
		name string
		s    coldstart.Stat
	}{{"added by Rouse", c.Added}, {"listen to first byte", c.AfterListen}, {"start call to listen", c.App}, {"whole request", c.Total}} {
		added.Rows = append(added.Rows, row{Cells: []string{one.name, ms(one.s.Min), ms(one.s.Median), ms(one.s.P95), ms(one.s.Max)}})
	}
	if c.Bare != nil {
		d := c.Bare.Difference
		added.Rows = append(added.Rows, row{Cells: []string{"request less bare start", signed(d.Min), signed(d.Median), signed(d.P95), signed(d.Max)}})
	}
	f.Tables = []table{added}
	f.draw(func(width float64) *plot {
		p := newPlot(width, 240)
		p.Title = f.Title
		p.Desc = fmt.Sprintf("Added: median %s ms, p95 %s ms, worst %s ms.", ms(c.Added.Median), ms(c.Added.P95), ms(c.Added.Max))
		good := c.good()
		lo, hi := min(c.Added.Min, c.AfterListen.Min), max(c.Added.Max, c.AfterListen.Max)
		y := upward(lo, hi, p.bottom, p.top, 4)
		p.gridY(y, "ms")
		p.text("unit", "end", p.right, p.bottom+32, "trial")
		step := (p.right - p.left) / float64(len(good))
		for i, t := range good {
			at := p.left + (float64(i)+0.5)*step
			p.dot("dot c1", at, y.at(t.AfterListen), 3.5, fmt.Sprintf("trial %d, listen to first byte: %s ms", t.N, ms(t.AfterListen)))
			p.dot("dot c2", at, y.at(t.Added), 4.5, fmt.Sprintf("trial %d, added: %s ms", t.N, ms(t.Added)))
			if step > 16 || i%5 == 4 || i == 0 {
				p.text("tick", "middle", at, p.bottom+16, fmt.Sprint(t.N))
			}
		}
		p.hline("moment", y.at(c.Added.Median))
		return p
	})
	return f
}
