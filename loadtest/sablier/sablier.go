// Package sablier makes the four scenarios of Sablier's own benchmark on
// Rouse: blocking and dynamic, warm and cold, both through the proxy and at
// the API that Sablier's plugins call, in one table.
//
// It differs from the original where that does not do what it says: a cold
// call is cold each time, for the workload is put to sleep before every one
// and its generation has to have grown by one after it; a call that is "not
// ready" is made to a workload that never becomes ready; and each answer is
// read and has to be the one that the scenario is about. The loop is closed,
// as the original's is: a connection sends its next call once the last is
// answered, so that the percentiles say nothing of a rate that is kept up
// while the server stalls. Package openloop is for that.
//
// It knows Rouse by its addresses, its admin API and, of its process, CPU time
// and memory.
package sablier

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// Config says what to measure.
type Config struct {
	// Proxy and API are base URLs: where traffic goes, and where plugins ask.
	Proxy, API string
	// Admin is the base URL of the admin API.
	Admin string
	// Workload is the name, and Group a group of it alone, of a workload that
	// wakes; Host is what the proxy knows it by. Never is one that does not
	// become ready, NeverHost what the proxy knows that by.
	Workload, Group, Host string
	Never, NeverHost      string
	// PID is the process of Rouse.
	PID int
	// Conns is the number of connections of the warm scenarios, each with one
	// call at a time; 0 is 10, as in the original.
	Conns int
	// Duration is the length of each of those; 0 is 30 s, as in the original.
	Duration time.Duration
	// Cold is the number of cold calls; 0 is 20.
	Cold int
	// Calls, of more than 0, is the length of one more warm run in calls, for
	// memory.
	Calls int
	// Timeout bounds each step of a cold call; 0 is a minute.
	Timeout time.Duration
	// Progress is told of each row; nil is nobody.
	Progress io.Writer
}

func (c Config) filled() Config {
	if c.Conns <= 0 {
		c.Conns = 10
	}
	if c.Duration <= 0 {
		c.Duration = 30 * time.Second
	}
	if c.Cold <= 0 {
		c.Cold = 20
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c
}

// Run makes every scenario, one after the other. An answer that is not the
// scenario's is an error: there is no figure for it.
func Run(ctx context.Context, cfg Config) (*Summary, error) {
	cfg = cfg.filled()
	s := &Summary{At: time.Now(), Machine: coldstart.ThisMachine(), Conns: cfg.Conns, Duration: cfg.Duration.Seconds()}
	n := newNode(cfg)
	scenarios, err := cfg.scenarios()
	if err != nil {
		return nil, fmt.Errorf("sablier's scenarios: %w", err)
	}
	for _, sc := range scenarios {
		row, err := sc.measure(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", sc.Subject, sc.Name, err)
		}
		s.Rows = append(s.Rows, row)
		_, _ = fmt.Fprintln(cfg.Progress, row)
	}
	return s, nil
}

var errEnded = errors.New("interrupted")
