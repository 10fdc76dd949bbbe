//go:build linux

// Package soak lets a Rouse work for a long time on everything at once, and
// tells whether anything was lost and whether anything grows: requests to
// what is awake and to what sleeps, uploads, WebSockets, event streams,
// clients that give up, and a trace, while workloads fall asleep and wake all
// along.
//
// It owns the traffic, the readings of the process, and the verdict. Rouse and
// its mimic workloads are run by others; each workload must keep a ledger.
//
// Guarantees: each request has an id, and the ledgers tell which workload
// has seen it: nothing is counted as answered that no workload has seen, and
// nothing may be seen twice. A leak is told by a rule ([Trend]), not by eye.
package soak

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// Config says what to do. Address, Admin, Steady, Ledgers, Duration and
// Process must be set.
type Config struct {
	// Address of Rouse's traffic, host:port; Admin is the base URL of its
	// admin API.
	Address string
	Admin   string
	// Steady is the host of a workload that always has requests; Sleepers of
	// those that sleep in between, each asked about once in Every.
	Steady   string
	Sleepers []string
	Every    time.Duration
	// Trace is replayed over and over at TraceHost; its targets are paths.
	Trace     *schedule.Trace
	TraceHost string
	// Ledgers are the files of all workloads.
	Ledgers []string
	// Rate is of requests to Steady, per second; 0 is 100. A twentieth of it
	// are uploads on top, to all.
	Rate float64
	// Sessions is how many WebSockets there are at once, and as many event
	// streams; half as many clients give up. 0 is 20.
	Sessions int
	// Pause is the most between two sessions of one client, and between two
	// messages of a session; 0 is 1 s.
	Pause time.Duration
	// Conns bounds the connections of each lane of requests; 0 is 64.
	Conns int
	// Timeout bounds each request and session; 0 is a minute.
	Timeout  time.Duration
	Duration time.Duration
	// Process is what is watched, each Interval; 0 is a second, or a 3600th of
	// Duration if that is longer.
	Process  Process
	Interval time.Duration
	Seed     uint64
	// Progress is told in a line each minute; nil is silence.
	Progress io.Writer
}

type soak struct {
	cfg     Config
	client  *http.Client
	ids     atomic.Uint64
	answers atomic.Int64

	mu      sync.Mutex
	sent    []uint64 // guarded by mu: ids of sessions that went well
	aborted []uint64 // guarded by mu
}

// Run soaks, and gives what came of it; the report tells whether it passed.
// An error is a soak that could not be made, or was ended by ctx.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	s := newSoak(cfg)
	report := &Report{Schema: "loadtest/soak/1", Began: time.Now(), Seconds: s.cfg.Duration.Seconds()}
	if err := s.rest(ctx, report, &report.Before); err != nil {
		return nil, fmt.Errorf("soak: before: %w", err)
	}
	err := s.work(ctx, report)
	if err == nil {
		err = s.settle(ctx, &report.After)
	}
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	ledgers, err := readLedgers(s.cfg.Ledgers)
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	answered, lost := sum(report.Lanes)
	report.Books = ledgers.balance(answered, lost, s.sent, s.aborted)
	report.conclude(ledgers.starts)
	return report, nil
}

func newSoak(cfg Config) *soak {
	cfg.Rate = cmp.Or(cfg.Rate, 100)
	cfg.Every = cmp.Or(cfg.Every, 10*time.Second)
	cfg.Sessions = cmp.Or(cfg.Sessions, 20)
	cfg.Pause = cmp.Or(cfg.Pause, time.Second)
	cfg.Conns = cmp.Or(cfg.Conns, 64)
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	cfg.Interval = cmp.Or(cfg.Interval, max(time.Second, cfg.Duration/3600))
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	s := &soak{cfg: cfg, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.Sessions}}}
	s.ids.Store(rand.Uint64() << 36)
	return s
}

func (s *soak) note(list *[]uint64, id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*list = append(*list, id)
}

// rest asks each workload once, so that nothing is new to Rouse afterwards,
// and reads the series when all sleep again.
func (s *soak) rest(ctx context.Context, report *Report, values *map[string]float64) error {
	var first LaneReport
	for _, host := range append([]string{s.cfg.Steady}, s.cfg.Sleepers...) {
		s.visit(ctx, &first, visit{host: host, id: s.ids.Add(1)}, s.ask)
	}
	first.Name = "first"
	report.Lanes = append(report.Lanes, first)
	if first.Right < first.Begun {
		return fmt.Errorf("a workload does not answer: %v", first.Errors)
	}
	return s.settle(ctx, values)
}

// settle waits until all workloads sleep, and reads the series.
func (s *soak) settle(ctx context.Context, values *map[string]float64) (err error) {
	s.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, 2*s.cfg.Timeout)
	defer cancel()
	for {
		awake, err := s.awake(ctx)
		if err == nil && len(awake) == 0 {
			break
		}
		if !pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("not asleep: %v: %w", awake, errors.Join(err, context.Cause(ctx)))
		}
	}
	if !pause(ctx, 2*time.Second) { // for what ends connections a moment later
		return context.Cause(ctx)
	}
	*values, err = s.cfg.Process.Read(ctx)
	return err
}

// awake names the workloads that do not sleep.
func (s *soak) awake(ctx context.Context) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.cfg.Admin, "/")+"/api/v1/workloads", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var list struct {
		Workloads []struct{ Name, Phase string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		return nil, fmt.Errorf("workloads: %w", err)
	}
	var awake []string
	for _, w := range list.Workloads {
		if w.Phase != "asleep" {
			awake = append(awake, w.Name)
		}
	}
	return awake, nil
}

// work has all lanes at once, under watch.
func (s *soak) work(ctx context.Context, report *Report) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	watched := make(chan error, 1)
	report.Loaded = time.Now()
	go func() {
		var err error
		report.series, err = watch(watching, s.cfg.Process, s.cfg.Interval, s.progress())
		watched <- err
	}()
	reports, err := together(ctx, s.lanes())
	stop()
	report.Lanes = append(report.Lanes, reports...)
	return errors.Join(err, <-watched, context.Cause(ctx))
}

// together runs all lanes at once; an error of one ends them all.
func together(ctx context.Context, lanes []lane) ([]LaneReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports, errs := make([]LaneReport, len(lanes)), make([]error, len(lanes))
	var wait sync.WaitGroup
	for i, l := range lanes {
		wait.Go(func() {
			reports[i], errs[i] = l.run(ctx)
			reports[i].Name = l.name
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wait.Wait()
	return reports, errors.Join(errs...)
}

// progress tells of a reading, once a minute.
func (s *soak) progress() func(map[string]float64) {
	began, told := time.Now(), time.Time{}
	return func(v map[string]float64) {
		if time.Since(told) < time.Minute {
			return
		}
		told = time.Now()
		_, _ = fmt.Fprintf(s.cfg.Progress, "%5.1f min: %d answers, %.1f MiB resident, %.0f goroutines, %.0f files, %.2f MiB stored\n",
			time.Since(began).Minutes(), s.answers.Load(), v[Memory]/(1<<20), v[Goroutines], v[Files], (v[JetStream]+v[History])/(1<<20))
	}
}
