package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rouse-dev/rouse/workload"
)

// writeTable writes rows with their columns aligned. paint, if any, colours a
// cell that already has its width.
func writeTable(out io.Writer, rows [][]string, paint func(row, column int, cell string) string) error {
	widths := columnWidths(rows)
	var b strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			padding := strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)+2)
			if j == len(row)-1 {
				padding = ""
			}
			if paint != nil {
				cell = paint(i, j, cell)
			}
			b.WriteString(cell + padding)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// colored reports whether out is a terminal that should get colours.
func (g *globals) colored(out io.Writer) bool {
	if p, ok := out.(*picture); ok {
		out = p.of
	}
	return !g.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(out)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// phaseColors are the terminal's codes for the phases.
func phaseColor(p workload.Phase) string {
	switch p {
	case workload.Ready:
		return "32" // green
	case workload.Failed:
		return "31" // red
	case workload.Waking, workload.Draining:
		return "33" // yellow
	}
	return "2" // dim
}

func color(code, s string) string { return "\x1b[" + code + "m" + s + "\x1b[0m" }

// printable takes out what could act on a terminal: names, reasons and log
// lines are written by workloads.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' {
			return ' '
		}
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, s)
}

// colorCode is the one kind of control sequence that a log line may keep.
var colorCode = regexp.MustCompile("\x1b\\[[0-9;]*m")

// printableLog is printable for a line of a log on a terminal: its colours
// stay, and are ended with it.
func printableLog(s string) string {
	codes := colorCode.FindAllString(s, -1)
	var b strings.Builder
	for i, part := range colorCode.Split(s, -1) {
		b.WriteString(printable(part))
		if i < len(codes) {
			b.WriteString(codes[i])
		}
	}
	if len(codes) > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// span is a duration for a table: two units at most.
func span(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// ms is a duration in milliseconds, for what is compared with its like.
func ms(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// clock is a moment as a person here reads it, to the millisecond.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000 -0700") }
