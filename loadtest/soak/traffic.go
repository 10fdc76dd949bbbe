//go:build linux

package soak

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// A LaneReport is what one kind of traffic came to.
type LaneReport struct {
	Name string `json:"name"`
	// Begun requests or sessions; Right are those that went as they should,
	// Aborted those that were given up on purpose.
	Begun   int64 `json:"begun"`
	Right   int64 `json:"right"`
	Aborted int64 `json:"aborted,omitempty"`
	// Messages of sessions.
	Messages int64 `json:"messages,omitempty"`
	// Errors are the first reasons, with their counts.
	Errors map[string]int64 `json:"errors,omitempty"`
	// Intended is the latency from the moment at which each was due.
	Intended *latency.Summary `json:"intended_ms,omitempty"`
}

// A lane is one kind of traffic; it returns when it is over.
type lane struct {
	name string
	run  func(ctx context.Context) (LaneReport, error)
}

// uploadSize is the length of an upload, which comes back whole.
const uploadSize = 64 << 10

// lanes are all kinds of traffic, as far as there are workloads for them.
func (s *soak) lanes() []lane {
	receivers := s.uploads()
	lanes := []lane{
		s.load("warm", schedule.Constant(s.cfg.Rate, s.cfg.Duration), target(s.cfg.Steady, "/", openloop.InBody)),
		s.load("uploads", spread(s.cfg.Rate/20, s.cfg.Duration, len(receivers)), receivers...),
		{"websocket", s.sessions(s.cfg.Sessions, s.webSocket)},
		{"sse", s.sessions(s.cfg.Sessions, s.events)},
		{"aborted", s.sessions(s.cfg.Sessions/2, s.abort)},
	}
	if n := len(s.cfg.Sleepers); n > 0 {
		rate := float64(n) / s.cfg.Every.Seconds()
		lanes = append(lanes, s.load("cold", spread(rate, s.cfg.Duration, n), targets(s.cfg.Sleepers)...))
	}
	if s.cfg.Trace != nil {
		var functions []openloop.Target
		for _, path := range s.cfg.Trace.Targets() {
			functions = append(functions, target(s.cfg.TraceHost, path, openloop.InBody))
		}
		lanes = append(lanes, s.load("trace", schedule.Loop{Of: s.cfg.Trace, For: s.cfg.Duration}, functions...))
	}
	return lanes
}

func spread(rate float64, d time.Duration, n int) schedule.Schedule {
	rates := schedule.Constant(rate, d)
	rates.Poisson, rates.Seed = true, uint64(n)
	return schedule.Spread{Schedule: rates, Targets: n}
}

func target(host, path string, echo openloop.Echo) openloop.Target {
	return openloop.Target{Request: http1.Request{Host: host, Path: path}, Expect: openloop.Expect{Echo: echo}}
}

func targets(hosts []string) []openloop.Target {
	var all []openloop.Target
	for _, host := range hosts {
		all = append(all, target(host, "/", openloop.InBody))
	}
	return all
}

// uploads go to all, but seldom to what is to fall asleep.
func (s *soak) uploads() []openloop.Target {
	body := bytes.Repeat([]byte("up"), uploadSize/2)
	to := func(host string) openloop.Target {
		one := target(host, "/echo", openloop.AsBody)
		one.Request.Body = body
		return one
	}
	all := []openloop.Target{to(s.cfg.Steady)}
	for _, host := range s.cfg.Sleepers {
		all = append(all, to(host))
		for range seldom - 1 {
			all = append(all, to(s.cfg.Steady))
		}
	}
	return all
}

// load is a lane of requests whose arrivals are fixed.
func (s *soak) load(name string, arrivals schedule.Schedule, targets ...openloop.Target) lane {
	return lane{name, func(ctx context.Context) (LaneReport, error) {
		result, err := openloop.Run(ctx, openloop.Config{
			Address: s.cfg.Address, Schedule: arrivals, Targets: targets, Conns: s.cfg.Conns, Timeout: s.cfg.Timeout,
			Every: func(i openloop.Interval) { s.answers.Add(i.OK) },
		})
		if err != nil {
			return LaneReport{}, fmt.Errorf("%s: %w", name, err)
		}
		intended := result.Times.Intended.Summary()
		m := result.Measured
		return LaneReport{
			Name: name, Begun: m.Scheduled, Right: m.Outcomes[openloop.OK.String()],
			Errors: result.Errors, Intended: &intended,
		}, nil
	}}
}

// sum adds the lanes up.
func sum(lanes []LaneReport) (answered, lost int64) {
	for _, l := range lanes {
		answered += l.Right
		lost += l.Begun - l.Right - l.Aborted
	}
	return answered, lost
}

// merge adds another worker's report of the same lane.
func (l *LaneReport) merge(o LaneReport) {
	l.Begun += o.Begun
	l.Right += o.Right
	l.Aborted += o.Aborted
	l.Messages += o.Messages
	for _, reason := range slices.Sorted(maps.Keys(o.Errors)) {
		l.fault(reason, o.Errors[reason])
	}
}

// mostErrors bounds the different texts that are kept.
const mostErrors = 16

func (l *LaneReport) fault(reason string, n int64) {
	if l.Errors == nil {
		l.Errors = map[string]int64{}
	}
	if _, known := l.Errors[reason]; !known && len(l.Errors) >= mostErrors {
		reason = "others"
	}
	l.Errors[reason] += n
}
