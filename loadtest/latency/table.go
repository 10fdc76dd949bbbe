package latency

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// A Table is what a .hgrm file tells of a histogram: less than all of it, but
// at each quantile between which two values it was. Times are in
// milliseconds, to a thousandth.
type Table struct {
	Rows      []Row
	Mean, Max float64
	Total     int64
}

// A Row tells that Count of all times did not exceed Value.
type Row struct {
	Value float64
	Count int64
}

// ReadTable reads a .hgrm file.
func ReadTable(r io.Reader) (Table, error) {
	var t Table
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if err := t.read(strings.TrimSpace(lines.Text())); err != nil {
			return Table{}, fmt.Errorf("read histogram table: %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil {
		return Table{}, fmt.Errorf("read histogram table: %w", err)
	}
	if n := len(t.Rows); n == 0 || t.Rows[n-1].Count != t.Total {
		return Table{}, fmt.Errorf("read histogram table: it does not end with all %d times", t.Total)
	}
	return t, nil
}

func (t *Table) read(line string) (err error) {
	var row Row
	var quantile, deviation float64
	switch {
	case line == "" || strings.HasPrefix(line, "Value") || strings.HasPrefix(line, "#[Buckets"):
	case strings.HasPrefix(line, "#[Mean"):
		_, err = fmt.Sscanf(line, "#[Mean = %f, StdDeviation = %f]", &t.Mean, &deviation)
	case strings.HasPrefix(line, "#[Max"):
		_, err = fmt.Sscanf(line, "#[Max = %f, Total count = %d]", &t.Max, &t.Total)
	default:
		_, err = fmt.Sscan(line, &row.Value, &quantile, &row.Count)
		t.Rows = append(t.Rows, row)
	}
	return err
}

// rounding is that of the values in a table.
const rounding = 0.0005

// Between gives the bounds of the time that the share q of all did not
// exceed; 0 and 0 of an empty table.
func (t Table) Between(q float64) (low, high float64) {
	rank := min(max(int64(q*float64(t.Total)+0.5), 1), t.Total)
	for _, row := range t.Rows {
		if row.Count >= rank {
			return max(0, low-rounding), row.Value + rounding
		}
		low = row.Value
	}
	return 0, 0
}

// Quantile is the time that the share q of all surely did not exceed, and
// some more may not have: the upper bound.
func (t Table) Quantile(q float64) float64 {
	_, high := t.Between(q)
	return max(0, high-rounding)
}
