//go:build linux

// Package trial compares two ways to the same server, one direct and one
// through a proxy, so that the figures can be believed: many short trials,
// each a pair of runs one right after the other, in fresh processes, in the
// order ABBA, each run with a reading of what else the machine did. A trial
// that was disturbed is kept, marked with the reasons, and made again.
//
// It owns the plan, the processes of the runs, the verdicts and the files.
// What is sent and measured is package openloop's.
//
// Guarantees: nothing is judged by how good its result is: the limits are on
// errors, on the generator and on the machine, and on the direct side alone
// where it changes under the comparison. Every trial is in the files.
package trial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// Config says what to compare. Direct, Routed, Rate, Duration, Trials and Out
// must be set.
type Config struct {
	Direct, Routed Side
	// Rate is in requests per second, even or Poisson.
	Rate    float64
	Poisson bool
	// Seed of the Poisson arrivals; both runs of a trial have the same.
	Seed uint64
	// Warmup comes before Duration, at the same rate.
	Warmup, Duration time.Duration
	// Trials that are to be accepted. No more than twice as many are made.
	Trials   int
	Protocol openloop.Protocol
	// Conns and Timeout are as in openloop.Config.
	Conns   int
	Timeout time.Duration
	// Served is a URL of the mimic workload behind both sides, which counts
	// what it has served; empty: it is not compared.
	Served string
	// Upstream is the Unix socket of Hold, whose address is that of Direct:
	// the server is then part of the generator, and answers after UpstreamDelay
	// with UpstreamSize bytes. Empty: the server is another process.
	Upstream      string
	UpstreamDelay time.Duration
	UpstreamSize  int
	// Unpinned leaves every process on the CPUs where it is.
	Unpinned bool
	// Limits of a trial that is accepted; zero values are the defaults.
	Limits Limits
	// Out is the directory of the files.
	Out string
	// Lane is the command line that calls RunLane in a fresh process.
	Lane []string
	// Progress is told of each trial; nil is nobody.
	Progress io.Writer
}

// Side is one way to the server.
type Side struct {
	URL string `json:"url"`
	// Address is where to connect, and Target what to ask for there.
	Address string          `json:"address"`
	Target  openloop.Target `json:"-"`
	// PIDs are the processes that serve it; the server's own are those of
	// Direct. Empty: unknown, and so is how much of the machine's work was
	// not the comparison's.
	PIDs []int `json:"pids"`
}

// Names of the lanes.
const (
	Direct = "direct"
	Routed = "routed"
)

// A Trial is a pair of runs.
type Trial struct {
	Number int `json:"number"`
	// Order is that in which they were made.
	Order  [2]string `json:"order"`
	Direct *Run      `json:"direct"`
	Routed *Run      `json:"routed"`
	// Rejected has the reasons why it does not count; empty: it does.
	Rejected []string `json:"rejected"`
}

// Accepted tells whether it counts.
func (t *Trial) Accepted() bool { return len(t.Rejected) == 0 }

// Compare makes the trials and gives their summary; its files are written
// by Save. When ctx ends, it gives the summary of what was made by then, and
// ctx's cause.
func Compare(ctx context.Context, cfg Config) (*Summary, error) {
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	places := arrange(cfg)
	restore := places.pin()
	defer restore()
	s := &Summary{Began: time.Now(), Config: describe(cfg), Places: places}
	err := s.fill(ctx, cfg, places)
	s.Ended = time.Now()
	s.conclude(cfg.Limits)
	if err != nil {
		return s, fmt.Errorf("compare: %w", err)
	}
	return s, nil
}

func (c *Config) fill() {
	c.Limits = c.Limits.filled()
	c.Warmup = cmp.Or(c.Warmup, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Conns = cmp.Or(c.Conns, c.Protocol.Conns())
}

func (c Config) check() error {
	switch {
	case c.Trials < 1 || c.Duration <= 0 || !(c.Rate > 0):
		return errors.New("want trials, a duration and a rate")
	case len(c.Lane) == 0 || c.Out == "":
		return errors.New("want the command of a lane, and a directory")
	case !c.Unpinned && realTime(append(append([]int{}, c.Direct.PIDs...), c.Routed.PIDs...)):
		return errors.New("a process with a real-time priority is not moved to fewer CPUs: it could spin for ever")
	}
	return nil
}

// fill makes trials until enough are accepted.
func (s *Summary) fill(ctx context.Context, cfg Config, places Places) error {
	accepted := 0
	for n := 1; accepted < cfg.Trials && n <= 2*cfg.Trials; n++ {
		t, err := pair(ctx, cfg, places, n)
		if err != nil {
			return err
		}
		t.judge(cfg.Limits)
		s.Trials = append(s.Trials, t)
		if t.Accepted() {
			accepted++
		}
		tell(cfg.Progress, t, accepted, cfg.Trials)
	}
	return nil
}

func tell(w io.Writer, t *Trial, accepted, want int) {
	if w == nil {
		return
	}
	p95 := func(r *Run) float64 { return r.Report.Intended.P95 }
	_, _ = fmt.Fprintf(w, "trial %d: p95 %.3f ms direct, %.3f ms routed; accepted %d of %d", t.Number, p95(t.Direct), p95(t.Routed), accepted, want)
	for _, reason := range t.Rejected {
		_, _ = fmt.Fprintf(w, "\n  rejected: %s", reason)
	}
	_, _ = fmt.Fprintln(w)
}

// pair makes one trial: odd ones direct first, even ones routed first, so
// that what changes evenly with time falls on both sides alike.
func pair(ctx context.Context, cfg Config, places Places, n int) (*Trial, error) {
	t := &Trial{Number: n, Order: [2]string{Direct, Routed}}
	if n%2 == 0 {
		t.Order = [2]string{Routed, Direct}
	}
	for _, lane := range t.Order {
		run, err := launch(ctx, cfg, places, plan{
			Lane: lane, Dir: LaneDir(cfg.Out, n, lane), Seed: cfg.Seed + uint64(n),
		})
		if err != nil {
			return nil, fmt.Errorf("trial %d, %s: %w", n, lane, err)
		}
		if lane == Direct {
			t.Direct = run
		} else {
			t.Routed = run
		}
	}
	return t, nil
}
