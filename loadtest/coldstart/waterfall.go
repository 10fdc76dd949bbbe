package coldstart

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// waterfallWidth is how many columns a whole cold start takes.
const waterfallWidth = 60

// WriteWaterfall draws the median of each phase, one after the other, as a
// block of text.
func (s *Summary) WriteWaterfall(w io.Writer) error {
	whole := 0.0
	for _, phase := range s.Phases {
		whole += phase.Median
	}
	if whole == 0 {
		return nil
	}
	var err error
	begun := 0.0
	column := func(at float64) int { return int(at/whole*waterfallWidth + 0.5) }
	for _, phase := range s.Phases {
		from, to := column(begun), column(begun+phase.Median)
		from = min(from, waterfallWidth-1)
		_, lineErr := fmt.Fprintf(w, "%10s %8.2f ms  %s%s\n", phase.Name, phase.Median,
			strings.Repeat(" ", from), strings.Repeat("#", max(1, to-from)))
		err = errors.Join(err, lineErr)
		begun += phase.Median
	}
	return err
}

// WriteTable writes the figures that matter in Markdown.
func (s *Summary) WriteTable(w io.Writer) error {
	lines := []SpanStat{{"added by Rouse", s.Added}, {"listen() to the first byte", s.AfterListen}, {"whole cold start", s.Total}}
	if s.Bare != nil {
		lines = append(lines, SpanStat{"bare: whole start, without Rouse", s.Bare.Total},
			SpanStat{"bare: listen() to the first answer", s.Bare.AfterListen}, SpanStat{"whole less bare, by pair", s.Bare.Difference})
	}
	return writeTable(w, fmt.Sprintf("ms, %d cold starts, %d failed", s.Added.N, s.Failed), lines)
}
