//go:build linux

package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"sort"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// A Step is a run at one rate of the search for the highest.
type Step struct {
	Rate    float64 `json:"rate"`
	Carried bool    `json:"carried"`
	// Why says what was wrong, where it was not carried.
	Why []string `json:"why,omitempty"`
	P95 float64  `json:"intended_p95_ms"`
	// Cores of the generator, with the upstream in it, and of the lane's own
	// processes.
	Generator float64 `json:"generator_cores"`
	Watched   float64 `json:"watched_cores"`
}

// A Ceiling is the highest rate that a lane carries.
type Ceiling struct {
	Lane  string  `json:"lane"`
	Rate  float64 `json:"rate"` // 0: none of them
	Steps []Step  `json:"steps"`
}

// Search finds the highest of the rates, in order, that a lane carries: all is
// answered, the intended p95 is within Limits.Queue, and the generator is good. Each
// is tried twice, for cfg.Duration, before it counts as too high; by bisection.
func Search(ctx context.Context, cfg Config, lane string, rates []float64) (Ceiling, error) {
	cfg.fill()
	places := arrange(cfg)
	restore := places.pin()
	defer restore()
	c := Ceiling{Lane: lane}
	var failed error
	try := func(rate float64) bool {
		for range 2 {
			step, err := c.step(ctx, cfg, places, rate)
			if err != nil {
				failed = err
				return false
			}
			c.Steps = append(c.Steps, step)
			if step.Carried {
				c.Rate = max(c.Rate, rate)
				return true
			}
		}
		return false
	}
	sort.Search(len(rates), func(i int) bool { return failed != nil || !try(rates[i]) })
	if failed != nil {
		return c, fmt.Errorf("search: %w", failed)
	}
	return c, nil
}

func (c *Ceiling) step(ctx context.Context, cfg Config, places Places, rate float64) (Step, error) {
	cfg.Rate = rate
	run, err := launch(ctx, cfg, places, plan{
		Lane: c.Lane, Dir: filepath.Join(cfg.Out, "search", fmt.Sprintf("%s-%02d-%g", c.Lane, len(c.Steps)+1, rate)),
	})
	if err != nil {
		return Step{}, err
	}
	step := Step{
		Rate: rate, Why: run.faults(cfg.Limits), P95: run.Report.Intended.P95, Generator: run.Report.CoreShare,
		Watched: run.WatchedMicroseconds * run.Report.Rate / 1e6,
	}
	if step.P95 > latency.Milliseconds(cfg.Limits.Queue) {
		step.Why = append(step.Why, fmt.Sprintf("intended p95 %.1f ms", step.P95))
	}
	step.Carried = len(step.Why) == 0
	if cfg.Progress != nil {
		_, _ = fmt.Fprintf(cfg.Progress, "%s at %g per second: carried %v, p95 %.3f ms %v\n", c.Lane, rate, step.Carried, step.P95, step.Why)
	}
	return step, nil
}
