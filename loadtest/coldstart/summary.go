package coldstart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// Schema of a summary.
const Schema = "loadtest/coldstart/1"

// Summary is what the trials come to. Its JSON is the file summary.json.
type Summary struct {
	Schema   string    `json:"schema"`
	At       time.Time `json:"at"`
	Version  string    `json:"version"`
	Command  []string  `json:"command"`
	Machine  Machine   `json:"machine"`
	Workload string    `json:"workload"`
	URL      string    `json:"url"`
	// Failed counts the trials that gave no number.
	Failed int `json:"failed"`

	Total       Stat `json:"total_ms"`
	App         Stat `json:"app_ms"`
	Added       Stat `json:"added_ms"`
	AfterListen Stat `json:"after_listen_ms"`
	// Phases and Timing are in the order of a cold start.
	Phases []SpanStat `json:"phases"`
	Timing []SpanStat `json:"server_timing"`
	// Bare is what the starts without Rouse come to; nil without any.
	Bare *BareStat `json:"bare,omitempty"`

	Trials []Trial `json:"trials"`
}

// SpanStat is a named part over all trials.
type SpanStat struct {
	Name string `json:"name"`
	Stat
}

// BareStat is the other side of the pairs.
type BareStat struct {
	Total       Stat `json:"total_ms"`
	App         Stat `json:"app_ms"`
	Call        Stat `json:"call_ms"`
	AfterListen Stat `json:"after_listen_ms"`
	// Difference is, pair by pair, the total through Rouse less the bare one.
	Difference Stat `json:"difference_ms"`
}

// summarize leaves Version, Command and Machine to the caller.
func summarize(cfg Config, trials []Trial) *Summary {
	s := &Summary{Schema: Schema, At: time.Now(), Workload: cfg.Workload, URL: cfg.URL, Trials: trials}
	s.conclude(cfg.Bare != nil)
	return s
}

// Recomputed is the summary as its own trials have it: what a true summary is
// equal to.
func (s *Summary) Recomputed() *Summary {
	again := &Summary{
		Schema: s.Schema, At: s.At, Version: s.Version, Command: s.Command, Machine: s.Machine,
		Workload: s.Workload, URL: s.URL, Trials: slices.Clone(s.Trials),
	}
	for i := range again.Trials {
		t := &again.Trials[i]
		t.Added = t.Total - t.App
	}
	again.conclude(s.Bare != nil)
	return again
}

func (s *Summary) conclude(paired bool) {
	good := make([]Trial, 0, len(s.Trials))
	for _, trial := range s.Trials {
		if trial.Error == "" {
			good = append(good, trial)
		}
	}
	s.Failed = len(s.Trials) - len(good)
	s.Total = over(good, func(t Trial) float64 { return t.Total })
	s.App = over(good, func(t Trial) float64 { return t.App })
	s.Added = over(good, func(t Trial) float64 { return t.Added })
	s.AfterListen = over(good, func(t Trial) float64 { return t.AfterListen })
	s.Phases = overSpans(good, func(t Trial) []Span { return t.Phases })
	s.Timing = overSpans(good, func(t Trial) []Span { return t.Timing })
	if paired {
		s.Bare = &BareStat{
			Total:       over(good, func(t Trial) float64 { return t.Bare.Total }),
			App:         over(good, func(t Trial) float64 { return t.Bare.App }),
			Call:        over(good, func(t Trial) float64 { return t.Bare.Call }),
			AfterListen: over(good, func(t Trial) float64 { return t.Bare.AfterListen }),
			Difference:  over(good, func(t Trial) float64 { return t.Total - t.Bare.Total }),
		}
	}
}

func over(trials []Trial, value func(Trial) float64) Stat {
	values := make([]float64, len(trials))
	for i, trial := range trials {
		values[i] = value(trial)
	}
	return statOf(values)
}

// overSpans keeps the order in which the names first came.
func overSpans(trials []Trial, spans func(Trial) []Span) []SpanStat {
	var names []string
	values := make(map[string][]float64) // name -> one value a trial
	for _, trial := range trials {
		for _, span := range spans(trial) {
			if _, known := values[span.Name]; !known {
				names = append(names, span.Name)
			}
			values[span.Name] = append(values[span.Name], span.MS)
		}
	}
	stats := make([]SpanStat, len(names))
	for i, name := range names {
		stats[i] = SpanStat{name, statOf(values[name])}
	}
	return stats
}

// Text writes the summary for a person.
func (s *Summary) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	p("cold starts of %s through %s: %d measured, %d failed\n", s.Workload, s.URL, s.Added.N, s.Failed)
	p("%s, %d cores, Linux %s, %s, engine %s, loadtest %s, %s\n\n", s.Machine.CPU, s.Machine.Cores, s.Machine.Kernel,
		s.Machine.Go, orNone(s.Machine.Engine), s.Version, s.At.UTC().Format(time.RFC3339))
	p("ms\tmin\tmedian\tp95\tmax\t\n")
	line := func(name string, stat Stat) {
		if stat.N > 0 {
			p("%s\t%.2f\t%.2f\t%.2f\t%.2f\t\n", name, stat.Min, stat.Median, stat.P95, stat.Max)
		}
	}
	line("added by Rouse", s.Added)
	line("listen to first byte", s.AfterListen)
	line("start call to listen", s.App)
	line("total", s.Total)
	for _, phase := range s.Phases {
		line("phase "+phase.Name, phase.Stat)
	}
	for _, timing := range s.Timing {
		line("Server-Timing "+timing.Name, timing.Stat)
	}
	if s.Bare != nil {
		line("bare: start call", s.Bare.Call)
		line("bare: start call to listen", s.Bare.App)
		line("bare: listen to answer", s.Bare.AfterListen)
		line("bare: total", s.Bare.Total)
		line("total less bare, by pair", s.Bare.Difference)
	}
	return table.Flush()
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// Read reads the summary.json of a directory.
func Read(dir string) (*Summary, error) {
	var s Summary
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	for _, t := range s.Trials {
		if err == nil && s.Bare != nil && t.Bare == nil && t.Error == "" {
			err = fmt.Errorf("trial %d: its bare start is missing", t.N)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the summary in %s: %w", dir, err)
	}
	return &s, nil
}

// Save writes summary.json, summary.txt, and table.md for a document, into the
// directory, which it makes if need be.
func (s *Summary) Save(dir string) error {
	encoded, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	var text, table bytes.Buffer
	if err := errors.Join(s.Text(&text), s.document(&table)); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.txt"), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "table.md"), table.Bytes(), 0o644); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	return nil
}

// document is the table and the waterfall in Markdown.
func (s *Summary) document(w io.Writer) error {
	err := s.WriteTable(w)
	if len(s.Phases) == 0 {
		return err
	}
	_, begin := io.WriteString(w, "\n```\n")
	drawn := s.WriteWaterfall(w)
	_, end := io.WriteString(w, "```\n")
	return errors.Join(err, begin, drawn, end)
}
