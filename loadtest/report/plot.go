//go:build linux

package report

import (
	"fmt"
	"math"
	"strings"
)

// Sizes of the drawings of a figure, in pixels at their natural size.
const (
	broadWidth, wideWidth, narrowWidth = 1060, 680, 300
	plotHeight                         = 300
)

// A plot is a drawing: marks on a plane.
type plot struct {
	// Title and Desc are for who does not see it.
	Title, Desc   string
	Width, Height float64
	Marks         []mark

	left, right, top, bottom float64 // of the area of the data
}

// A mark is a path, a dot, a box or a text, by its shape.
type mark struct {
	Shape, Class string
	X, Y, W, H   float64
	D            string // of a path
	Text, Anchor string // of a text
	Note         string // what a pointer that rests on it is told
}

// newPlot has room for labels at the left and below.
func newPlot(width, height float64) *plot {
	return &plot{Width: width, Height: height, left: 48, right: width - 14, top: 26, bottom: height - 38}
}

func (p *plot) path(class, d string) {
	p.Marks = append(p.Marks, mark{Shape: "path", Class: class, D: d})
}
func (p *plot) add(m mark) { p.Marks = append(p.Marks, m) }
func (p *plot) hline(class string, y float64) {
	p.path(class, fmt.Sprintf("M%.1f %.1fH%.1f", p.left, y, p.right))
}
func (p *plot) vline(class string, x float64) {
	p.path(class, fmt.Sprintf("M%.1f %.1fV%.1f", x, p.top, p.bottom))
}

func (p *plot) text(class, anchor string, x, y float64, text string) {
	p.add(mark{Shape: "text", Class: class, Anchor: anchor, X: x, Y: y, Text: text})
}

func (p *plot) dot(class string, x, y, radius float64, note string) {
	p.add(mark{Shape: "dot", Class: class, X: x, Y: y, W: radius, Note: note})
}

func (p *plot) box(class string, x, y, w, h float64, note string) {
	p.add(mark{Shape: "box", Class: class, X: x, Y: y, W: max(0, w), H: h, Note: note})
}

// cross marks what does not count.
func (p *plot) cross(class string, x, y float64, note string) {
	const r = 3.5
	p.add(mark{Shape: "path", Class: "cross " + class, Note: note, D: fmt.Sprintf("M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f", x-r, y-r, x+r, y+r, x-r, y+r, x+r, y-r)})
}

// gridY draws the lines and labels of a vertical scale.
func (p *plot) gridY(s scale, unit string) {
	for _, t := range s.ticks {
		p.hline(gridClass(t), t.at)
		if t.label != "" {
			p.text("tick", "end", p.left-6, t.at+4, t.label)
		}
	}
	if unit != "" {
		p.text("unit", "start", 0, p.top-13, unit)
	}
}

// gridX leaves out labels for which there is no room.
func (p *plot) gridX(s scale, unit string) {
	free := math.Inf(-1)
	for _, t := range s.ticks {
		p.vline(gridClass(t), t.at)
		half := float64(len(t.label))*3.4 + 2
		if t.label != "" && t.at-half > free && t.at+half < p.Width+6 {
			p.text("tick", "middle", t.at, p.bottom+16, t.label)
			free = t.at + half
		}
	}
	if unit != "" {
		p.text("unit", "end", p.right, p.bottom+32, unit)
	}
}

func gridClass(t tick) string {
	if t.label == "" {
		return "grid faint"
	}
	return "grid"
}

// A stroke joins places by a line, which NaN interrupts.
type stroke struct {
	d  strings.Builder
	on bool
}

func (s *stroke) to(x, y float64) {
	if math.IsNaN(x) || math.IsNaN(y) {
		s.on = false
		return
	}
	command := "M"
	if s.on {
		command = "L"
	}
	fmt.Fprintf(&s.d, "%s%.1f %.1f", command, x, y)
	s.on = true
}

func (s *stroke) String() string { return s.d.String() }

// draw draws a figure for each width that it may have: without a table
// beside it, it may be broad.
func (f *figure) draw(draw func(width float64) *plot) {
	f.Drawings = []drawing{{"narrow", draw(narrowWidth)}, {"wide", draw(wideWidth)}}
	if len(f.Tables) == 0 {
		f.Drawings = append(f.Drawings, drawing{"broad", draw(broadWidth)})
	}
}
