//go:build linux

package report

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// A lane is what one run has left in its directory.
type lane struct {
	// report is without a Result where the run was killed before its end.
	report  openloop.Report
	merged  map[string]*latency.Histogram // tag of the log -> all of it
	tables  map[string]latency.Table      // name of a .hgrm -> it
	began   time.Time
	seconds []second
}

// A second is what came in about that, from both files of intervals.
type second struct {
	openloop.Second
	// Milliseconds, intended and of service; NaN where no right answer came.
	p50, p99, service99 float64
}

// tableNames are the latencies of a run.
var tableNames = []string{"intended", "service", "send_lag", "own_lag", "added"}

func openLane(dir string) (*lane, error) {
	l := &lane{merged: map[string]*latency.Histogram{}, tables: map[string]latency.Table{}}
	report, err := openloop.ReadReport(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l.report = report
	if err := l.readLog(filepath.Join(dir, openloop.LogName)); err != nil {
		return nil, err
	}
	if err := l.readSeconds(filepath.Join(dir, openloop.SecondsName)); err != nil {
		return nil, err
	}
	for _, name := range tableNames {
		table, err := readTable(filepath.Join(dir, name+".hgrm"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // nothing of it was recorded
		}
		if err != nil {
			return nil, err
		}
		l.tables[name] = table
	}
	return l, nil
}

func readTable(path string) (latency.Table, error) {
	file, err := os.Open(path)
	if err != nil {
		return latency.Table{}, err
	}
	defer file.Close()
	table, err := latency.ReadTable(file)
	if err != nil {
		return table, fmt.Errorf("%s: %w", path, err)
	}
	return table, nil
}

// readLog merges the log, and keeps of each interval only its quantiles.
func (l *lane) readLog(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer file.Close()
	if l.report.Result != nil {
		l.began = l.report.Began
	}
	for interval, err := range latency.ReadLog(file) {
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if l.began.IsZero() { // a run that was killed: as near as can be
			l.began = interval.Start
		}
		l.take(interval)
	}
	return nil
}

func (l *lane) take(i latency.Interval) {
	if l.merged[i.Tag] == nil {
		l.merged[i.Tag] = latency.New()
	}
	l.merged[i.Tag].Merge(i.Histogram)
	start := i.Start.Sub(l.began).Seconds()
	at := func(q float64) float64 { return latency.Milliseconds(i.Quantile(q)) }
	last := len(l.seconds) - 1
	switch {
	case i.Tag == openloop.TagIntended:
		l.seconds = append(l.seconds, second{
			Second: openloop.Second{Start: max(0, start), End: i.End.Sub(l.began).Seconds(), OK: i.Count(), Started: -1},
			p50:    at(0.5), p99: at(0.99), service99: math.NaN(),
		})
	case i.Tag == openloop.TagService && last >= 0 && near(l.seconds[last].Start, start):
		l.seconds[last].service99 = at(0.99)
	}
}

// near tells that two readings of a moment, to the millisecond, are of the
// same.
func near(a, b float64) bool { return math.Abs(a-b) < 0.005 }

// readSeconds puts the counts and the latencies together. Older results have
// no counts but those of right answers.
func (l *lane) readSeconds(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer file.Close()
	counts, err := openloop.ReadSeconds(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	timed := l.seconds
	l.seconds = nil
	for _, c := range counts {
		one := second{Second: c, p50: math.NaN(), p99: math.NaN(), service99: math.NaN()}
		for len(timed) > 0 && timed[0].Start < c.Start-0.005 {
			timed = timed[1:]
		}
		if len(timed) > 0 && near(timed[0].Start, c.Start) {
			one.p50, one.p99, one.service99 = timed[0].p50, timed[0].p99, timed[0].service99
		}
		l.seconds = append(l.seconds, one)
	}
	return nil
}

// check compares the report with the log, and with the tables.
func (l *lane) check() Check {
	var c Check
	r := l.report
	if r.Result == nil {
		return c
	}
	c.same("result.json", r, r.Recomputed(l.merged))
	summaries := map[string]latency.Summary{
		"intended": r.Intended, "service": r.Service, "send_lag": r.SendLag, "own_lag": r.OwnLag,
	}
	if r.Added != nil {
		summaries["added"] = *r.Added
	}
	for _, name := range tableNames {
		c.table(name+".hgrm", l.tables[name], summaries[name])
	}
	c.within("result.json", "send_lag_ms.count", float64(r.SendLag.Count), float64(r.Measured.Started), float64(r.Measured.Started))
	return c
}

// table compares a summary with what a table says of it.
func (c *Check) table(file string, t latency.Table, s latency.Summary) {
	exactly := func(figure string, said, found float64) { c.within(file, figure, said, found-0.00051, found+0.00051) }
	exactly("count", float64(s.Count), float64(t.Total))
	exactly("mean", s.Mean, t.Mean)
	exactly("max", s.Max, t.Max)
	for _, q := range []struct {
		name string
		q    float64
		said float64
	}{{"p50", 0.5, s.P50}, {"p90", 0.9, s.P90}, {"p95", 0.95, s.P95}, {"p99", 0.99, s.P99}, {"p99_9", 0.999, s.P999}} {
		low, high := t.Between(q.q)
		c.within(file, q.name, q.said, low, high)
	}
}
