// Package coldstart measures what Rouse adds to a cold start, from outside:
// a request to a sleeping [mimic] workload, the workload's own word for when
// it listened, and the record that Rouse keeps of the wake.
//
// What Rouse adds is the request's whole time, less the time from the start
// call to the app's listen(): the caller would have waited for that anyhow.
// Trials can be interleaved with bare starts of an equal workload, without
// Rouse, so that a slow machine slows both alike.
//
// It knows Rouse by its traffic address and its admin API only. All clocks
// must be one: workload, Rouse and measurement on one machine.
package coldstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Config says what to measure.
type Config struct {
	// URL is asked for through Rouse, with Host as its Host header where
	// that is not empty.
	URL  string
	Host string
	// Admin is the base URL of Rouse's admin API; Workload the name there of
	// what answers at URL.
	Admin    string
	Workload string
	// Trials is how many cold starts are made; 0 makes none.
	Trials int
	// Settle passes between asleep and the next start, for the platform's
	// own aftermath of a stop to end.
	Settle time.Duration
	// Timeout bounds each step of a trial; 0 is a minute.
	Timeout time.Duration
	// Bare, when set, is started without Rouse once a trial; first in every
	// second one.
	Bare Starter
	// Progress is told each trial in a line; nil is silence.
	Progress io.Writer
}

// A Starter starts and stops a workload equal to the measured one, without
// Rouse.
type Starter interface {
	// Start returns the times of one start, once it has answered.
	Start(ctx context.Context) (BareTimes, error)
	// Stop returns when it has ended.
	Stop(ctx context.Context) error
}

// Run makes the trials one after the other and sums them up. A trial that
// fails is counted and the next one made; an error is returned when ctx
// ends, or when no trial worked.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	rouse := newRouse(cfg)
	trials := make([]Trial, 0, cfg.Trials)
	var problems []error
	for i := range cfg.Trials {
		trial, err := runTrial(ctx, rouse, i)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("measure cold starts: %w", context.Cause(ctx))
		}
		if err != nil {
			trial.Error = err.Error()
			problems = append(problems, err)
		}
		trials = append(trials, trial)
		_, _ = fmt.Fprintln(cfg.Progress, trial)
	}
	summary := summarize(cfg, trials)
	if summary.Added.N == 0 && len(problems) > 0 {
		return summary, fmt.Errorf("no trial worked: %w", errors.Join(problems...))
	}
	return summary, nil
}

// runTrial is one cold start through Rouse and, if asked for, one without.
func runTrial(ctx context.Context, rouse *rouse, i int) (Trial, error) {
	trial := Trial{N: i + 1}
	steps := []func(context.Context, *Trial) error{rouse.coldStart, rouse.bareStart}
	if i%2 == 1 {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := step(ctx, &trial); err != nil {
			return trial, err
		}
	}
	return trial, nil
}

// pause waits, and reports that ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
