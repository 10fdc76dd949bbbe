//go:build linux

package soak

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"
)

// A Report is what a soak came to. Its JSON is the file summary.json.
type Report struct {
	Schema string    `json:"schema"`
	Began  time.Time `json:"began"`
	// Loaded is when the load began; it lasted Seconds.
	Loaded  time.Time `json:"loaded"`
	Seconds float64   `json:"seconds"`
	// Manifest is whatever describes program and machine.
	Manifest any          `json:"manifest,omitempty"`
	Books    Books        `json:"books"`
	Lanes    []LaneReport `json:"lanes"`
	// Starts of workloads, in each tenth of the load.
	Starts [10]int `json:"starts_by_tenth"`
	// Before and After are read while all workloads sleep.
	Before map[string]float64 `json:"before"`
	After  map[string]float64 `json:"after"`
	Trends []SeriesTrend      `json:"trends"`
	// Faults are the reasons why it did not pass; empty: it did.
	Faults []string `json:"faults"`

	series map[string][]Point
}

// A SeriesTrend is the verdict on one series.
type SeriesTrend struct {
	Name string `json:"name"`
	Trend
	// Allowed is what it may gain in the stretch that was looked at; nil: it
	// is not judged.
	Allowed *float64 `json:"allowed,omitempty"`
	Leaks   bool     `json:"leaks"`
}

// Passed tells whether nothing was lost and nothing grows.
func (r *Report) Passed() bool { return len(r.Faults) == 0 }

// conclude draws the verdict.
func (r *Report) conclude(starts []time.Time) {
	r.Faults = append([]string{}, r.Books.faults()...)
	for _, l := range r.Lanes {
		for _, reason := range slices.Sorted(maps.Keys(l.Errors)) {
			r.Faults = append(r.Faults, fmt.Sprintf("%s: %d times: %s", l.Name, l.Errors[reason], reason))
		}
	}
	r.countStarts(starts)
	for _, name := range slices.Sorted(maps.Keys(r.series)) {
		r.judge(name)
	}
	for _, name := range slices.Sorted(maps.Keys(atRest)) {
		if gain := r.After[name] - r.Before[name]; gain > atRest[name] {
			r.Faults = append(r.Faults, fmt.Sprintf("%s: %.0f more at rest than before, %.0f allowed", name, gain, atRest[name]))
		}
	}
}

// countStarts sees to it that workloads woke all along.
func (r *Report) countStarts(starts []time.Time) {
	for _, at := range starts {
		tenth := int(10 * at.Sub(r.Loaded).Seconds() / r.Seconds)
		if at.After(r.Loaded) && tenth < len(r.Starts) {
			r.Starts[tenth]++
		}
	}
	if slices.Contains(r.Starts[:], 0) {
		r.Faults = append(r.Faults, fmt.Sprintf("workloads did not wake all along: %v starts by tenths", r.Starts))
	}
}

func (r *Report) judge(name string) {
	t := SeriesTrend{Name: name, Trend: trendOf(r.series[name])}
	if allowance, judged := allowances[name]; judged {
		allowed := allowance.of(t.Level)
		t.Allowed, t.Leaks = &allowed, t.leaks(allowance)
	}
	if t.Leaks {
		r.Faults = append(r.Faults, fmt.Sprintf("%s grows by %.4g a minute (99 %%: %.4g to %.4g), %.4g in all; %.4g allowed",
			name, t.Slope, t.Low, t.High, t.Slope*t.Minutes, *t.Allowed))
	}
	r.Trends = append(r.Trends, t)
}

// Text writes the report for a person.
func (r *Report) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	b := r.Books
	p("%.0f s: %d answered, %d lost; %d given up by clients, %d of them seen; %d seen in all, %d twice\n",
		r.Seconds, b.Answered, b.Lost, b.Aborted, b.AbortedSeen, b.Seen, b.Twice)
	p("starts of workloads, by tenths: %v\n\n", r.Starts)
	p("traffic\tbegun\tright\tgiven up\tmessages\tp50 ms\tp99 ms\tmax ms\t\n")
	for _, l := range r.Lanes {
		p("%s\t%d\t%d\t%d\t%d\t", l.Name, l.Begun, l.Right, l.Aborted, l.Messages)
		if l.Intended != nil {
			p("%.2f\t%.1f\t%.0f\t", l.Intended.P50, l.Intended.P99, l.Intended.Max)
		}
		p("\n")
	}
	p("\nseries\tlevel\ta minute\t99 %% low\thigh\tgained\tallowed\trest before\tafter\t\n")
	for _, t := range r.Trends {
		allowed := "not judged"
		if t.Allowed != nil {
			allowed = fmt.Sprintf("%.4g", *t.Allowed)
		}
		p("%s\t%.4g\t%+.3g\t%+.3g\t%+.3g\t%+.3g\t%s\t%.4g\t%.4g\t\n", t.Name, t.Level, t.Slope, t.Low, t.High,
			t.Slope*t.Minutes, allowed, r.Before[t.Name], r.After[t.Name])
	}
	for _, fault := range r.Faults {
		p("\nFAILED: %s", fault)
	}
	p("\n")
	return table.Flush()
}

// Save writes summary.json and series.csv into the directory, which it makes
// if need be.
func (r *Report) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save soak: %w", err)
	}
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644)
	}
	if err = errors.Join(err, r.saveSeries(filepath.Join(dir, "series.csv"))); err != nil {
		return fmt.Errorf("save soak: %w", err)
	}
	return nil
}

// saveSeries has a row for each reading.
func (r *Report) saveSeries(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(r.series))
	rows := [][]string{append([]string{"seconds"}, names...)}
	for i := range r.series[Memory] {
		row := []string{strconv.FormatFloat(r.series[Memory][i].At.Seconds(), 'f', 1, 64)}
		for _, name := range names {
			row = append(row, strconv.FormatFloat(r.series[name][i].Value, 'f', -1, 64))
		}
		rows = append(rows, row)
	}
	return errors.Join(csv.NewWriter(file).WriteAll(rows), file.Close())
}
