//go:build linux

// Package selftest shows that the generator tells the truth, on servers
// whose behaviour is known: one that stalls, one with a known distribution
// of latencies, and one for each way in which an answer can be wrong.
//
// It owns those servers; they listen on the loopback for as long as their
// check takes. A tool that waits for each answer before it sends the next
// request hides the stall; whoever doubts ours can run this.
package selftest

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Config of the checks.
type Config struct {
	// Stall is how long the stalling server stalls, once in ten times that;
	// 0 is 1 s.
	Stall time.Duration
	// Rate of the checks that take time, per second; 0 is 1000.
	Rate float64
	// Busy says that the machine has other work: then a latency may be longer
	// than the server's own, though never shorter.
	Busy bool
}

// A Check is one property of the generator and what was seen of it.
type Check struct {
	Name string `json:"name"`
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// Run makes all checks, one after the other, some 15 s with the defaults. An
// error is a check that could not be made.
func Run(ctx context.Context, cfg Config) ([]Check, error) {
	if cfg.Stall == 0 {
		cfg.Stall = time.Second
	}
	if cfg.Rate == 0 {
		cfg.Rate = 1000
	}
	var checks []Check
	for _, make := range []func(context.Context, Config) ([]Check, error){stall, distribution, conservation, faults} {
		more, err := make(ctx, cfg)
		if err != nil {
			return checks, fmt.Errorf("self-test: %w", err)
		}
		checks = append(checks, more...)
	}
	return checks, ctx.Err()
}

// Passed tells whether all did.
func Passed(checks []Check) bool {
	for _, c := range checks {
		if !c.OK {
			return false
		}
	}
	return len(checks) > 0
}

// Text writes the checks for a person.
func Text(w io.Writer, checks []Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		verdict := "ok"
		if !c.OK {
			verdict = "WRONG"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\twant %s\tgot %s\n", verdict, c.Name, c.Want, c.Got)
	}
	return table.Flush()
}
