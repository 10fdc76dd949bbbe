//go:build linux

package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// OverheadConfig is what a proxy adds at several rates: a Config, whose Rate,
// Duration, Warmup and Trials are of the highest rate, and whose Out has a
// directory for each.
type OverheadConfig struct {
	Config
	// Candidates for the highest rate, in order. The search for it takes runs
	// of SearchFor each.
	Candidates []float64
	SearchFor  time.Duration
	// Lower rates are measured as well, in runs of LowerFor after a warm-up of
	// at most a second; those that are not below the highest are left out.
	Lower    []float64
	LowerFor time.Duration
	// Manifest goes into each summary.
	Manifest Manifest
}

// An Overhead is what the rates come to. Its JSON is the file overhead.json.
type Overhead struct {
	Schema string `json:"schema"`
	// Direct and Routed are the highest rates of each side; Common is the
	// highest that both carry.
	Direct Ceiling `json:"direct"`
	Routed Ceiling `json:"routed"`
	Common float64 `json:"common_rate"`
	// Rates are the summaries, the highest first; each is in a directory of
	// its own as well, with its trials.
	Rates []*Summary `json:"-"`
}

// MeasureOverhead finds the highest rate that the machine carries directly and
// routed, and compares the two there and at lower rates. What was measured
// before an error is given with it.
func MeasureOverhead(ctx context.Context, cfg OverheadConfig) (o *Overhead, err error) {
	o = &Overhead{Schema: "loadtest/overhead/1"}
	search := cfg.Config
	search.Duration, search.Warmup = cfg.SearchFor, min(time.Second, cfg.Warmup)
	if o.Direct, err = Search(ctx, search, Direct, cfg.Candidates); err != nil {
		return o, err
	}
	below := slices.DeleteFunc(slices.Clone(cfg.Candidates), func(rate float64) bool { return rate > o.Direct.Rate })
	if o.Routed, err = Search(ctx, search, Routed, below); err != nil {
		return o, err
	}
	if o.Common = min(o.Direct.Rate, o.Routed.Rate); o.Common == 0 {
		return o, errors.New("overhead: no rate is carried by both sides")
	}
	lower := cfg.Config
	lower.Duration, lower.Warmup = cfg.LowerFor, min(time.Second, cfg.Warmup)
	for _, rate := range cfg.Lower { // first: they are short, and the time may be over
		if rate >= o.Common {
			continue
		}
		if err := o.at(ctx, cfg, lower, rate); err != nil {
			return o, err
		}
	}
	return o, o.at(ctx, cfg, cfg.Config, o.Common)
}

// at compares at one rate.
func (o *Overhead) at(ctx context.Context, all OverheadConfig, cfg Config, rate float64) error {
	cfg.Rate = rate
	cfg.Out = filepath.Join(all.Out, fmt.Sprintf("rate-%g", rate))
	if err := os.MkdirAll(cfg.Out, 0o755); err != nil {
		return fmt.Errorf("overhead: %w", err)
	}
	s, err := Compare(ctx, cfg)
	if s == nil {
		return err
	}
	s.Manifest = all.Manifest
	o.Rates = append(o.Rates, s)
	slices.SortFunc(o.Rates, func(a, b *Summary) int { return cmp.Compare(b.Config.Rate, a.Config.Rate) })
	return errors.Join(err, s.Save(cfg.Out))
}

// Complete tells whether each rate has all its trials.
func (o *Overhead) Complete() bool {
	return len(o.Rates) > 0 && !slices.ContainsFunc(o.Rates, func(s *Summary) bool { return s.Accepted < s.Config.Trials })
}

// Ceilings says in a line what was carried.
func (o *Overhead) Ceilings() string {
	say := func(c Ceiling) string {
		text := fmt.Sprintf("%s %g per second", c.Lane, c.Rate)
		for _, step := range c.Steps {
			if step.Carried && step.Rate == c.Rate {
				text += fmt.Sprintf(" (generator and server %.2f of a core, proxy %.2f)", step.Generator, step.Watched)
			}
		}
		return text
	}
	return "Carried: " + say(o.Direct) + "; " + say(o.Routed) + "."
}

// Save writes overhead.json, and table.md and ceiling.txt for a document.
func (o *Overhead) Save(dir string) error {
	encoded, err := json.MarshalIndent(o, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overhead.json"), append(encoded, '\n'), 0o644)
	}
	file, fileErr := os.Create(filepath.Join(dir, "table.md"))
	if err = errors.Join(err, fileErr); err != nil {
		return fmt.Errorf("save overhead: %w", err)
	}
	return errors.Join(WriteTable(file, o.Rates), file.Close(),
		os.WriteFile(filepath.Join(dir, "ceiling.txt"), []byte(o.Ceilings()+"\n"), 0o644))
}

// WriteTable writes a row of Markdown for each summary: medians over the
// accepted trials.
func WriteTable(w io.Writer, summaries []*Summary) error {
	_, err := io.WriteString(w, "| requests per second | trials, each | answered | direct p50, p95, p99, ms | routed p50, p95, p99, ms | added p50, ms | added p95, ms | added p99, ms | proxy's CPU a request, µs |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range summaries {
		_, rowErr := io.WriteString(w, s.row())
		err = errors.Join(err, rowErr)
	}
	return err
}

func (s *Summary) row() string {
	answered, due := s.answered()
	cpu := "not known"
	if s.RoutedCPU != nil {
		cpu = fmt.Sprintf("%.1f", s.RoutedCPU.Median)
	}
	text := fmt.Sprintf("| %g | %d of %d, %gs | %d of %d |", s.Config.Rate, s.Accepted, s.Made, s.Config.Duration, answered, due)
	if s.Accepted == 0 {
		return text + " no trial was accepted ||||||\n"
	}
	q := func(name string) Quantile {
		return s.Quantiles[slices.IndexFunc(s.Quantiles, func(q Quantile) bool { return q.Name == name })]
	}
	p50, p95, p99 := q("p50"), q("p95"), q("p99")
	added := func(e Estimate) string { return fmt.Sprintf("%.3f (%.3f to %.3f)", e.Median, e.Low, e.High) }
	return text + fmt.Sprintf(" %.3f, %.3f, %.3f | %.3f, %.3f, %.3f | %s | %s | %s | %s |\n",
		p50.Direct.Median, p95.Direct.Median, p99.Direct.Median, p50.Routed.Median, p95.Routed.Median, p99.Routed.Median,
		added(p50.Added), added(p95.Added), added(p99.Added), cpu)
}

// answered counts the routed requests of all trials, rejected ones too: what
// was lost is lost, whatever disturbed the trial.
func (s *Summary) answered() (ok, due int64) {
	for _, t := range s.Trials {
		ok += t.Routed.Report.Measured.Outcomes["ok"]
		due += t.Routed.Report.Measured.Scheduled
	}
	return ok, due
}
