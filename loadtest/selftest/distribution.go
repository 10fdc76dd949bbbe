//go:build linux

package selftest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/mimic"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// shares is a distribution of delays: of 100 requests, so many each.
var shares = []struct {
	count int
	delay time.Duration
}{{60, 5 * time.Millisecond}, {32, 40 * time.Millisecond}, {6, 200 * time.Millisecond}, {2, 800 * time.Millisecond}}

// quantiles of it: each lies well inside a share, and its delay is known.
var quantiles = []struct {
	q     float64
	delay time.Duration
}{{0.5, 5 * time.Millisecond}, {0.9, 40 * time.Millisecond}, {0.95, 200 * time.Millisecond}, {0.99, 800 * time.Millisecond}}

func wait(conn net.Conn, path, id string) bool {
	delay, err := time.ParseDuration(strings.TrimPrefix(path, "/"))
	if err != nil {
		return false
	}
	time.Sleep(delay)
	return answer(conn, "200 OK", id)
}

// distribution asks a server whose delays are known. A quantile may be
// above its delay by what the machine takes, but must be nearer to it than
// to the next, four times as long; of a busy machine, only the order of the
// quantiles can be known.
func distribution(ctx context.Context, cfg Config) ([]Check, error) {
	s, err := serve(wait)
	if err != nil {
		return nil, err
	}
	defer s.close()
	trace, targets := mixture(s, cfg.Rate/2)
	schedule, err := schedule.ReadTrace(strings.NewReader(trace), 1)
	if err != nil {
		return nil, err
	}
	r, err := openloop.Run(ctx, openloop.Config{
		Address: s.address(), Schedule: schedule, Conns: 256, Targets: targets, Timeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	ok := r.Measured.Failed() == 0
	var want, got []string
	last := time.Duration(0)
	for _, q := range quantiles {
		seen := r.Times.Intended.Quantile(q.q)
		ok = ok && seen >= q.delay && seen > last && (cfg.Busy || seen < 4*q.delay)
		last = seen
		want = append(want, fmt.Sprintf("p%g %v", 100*q.q, q.delay))
		got = append(got, fmt.Sprintf("%v", seen.Round(10*time.Microsecond)))
	}
	return []Check{{Name: "a server with known latencies", Want: strings.Join(want, ", "), Got: strings.Join(got, ", "), OK: ok}}, nil
}

// mixture is a trace of 500 requests that go through the shares in an order
// that has none of them come in bursts.
func mixture(s *server, rate float64) (string, []openloop.Target) {
	var order, trace []string
	for _, share := range shares {
		for range share.count {
			order = append(order, share.delay.String())
		}
	}
	names := map[string]bool{}
	var targets []openloop.Target
	for i := range 500 {
		name := order[i*37%len(order)]
		if !names[name] {
			names[name] = true
			targets = append(targets, ask(s, "/"+name))
		}
		trace = append(trace, fmt.Sprintf("%f,%s\n", float64(i)/rate*1000, name))
	}
	return "at_ms,target\n" + strings.Join(trace, ""), targets
}

// conservation compares what was sent with what a mimic workload has served.
func conservation(ctx context.Context, cfg Config) ([]Check, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workload := mimic.New(mimic.Config{Listen: "127.0.0.1:0"})
	ended := make(chan error, 1)
	go func() { ended <- workload.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	address := workload.Address()
	url := "http://" + address
	before, err := openloop.Served(ctx, url)
	if err != nil {
		return nil, err
	}
	r, err := openloop.Run(ctx, openloop.Config{
		Address: address, Schedule: schedule.Rates{Phases: schedule.Constant(cfg.Rate, time.Second).Phases, Poisson: true, Seed: 1},
		Targets: []openloop.Target{{
			Request: http1.Request{Host: address, Path: "/echo", Body: []byte(strings.Repeat("body ", 20))},
			Expect:  openloop.Expect{Echo: openloop.AsBody},
		}},
	})
	if err != nil {
		return nil, err
	}
	after, err := openloop.Served(ctx, url)
	served := after - before - 1
	own := func(q float64) time.Duration { return r.Times.OwnLag.Quantile(q).Round(time.Microsecond) }
	return []Check{{
		Name: "Poisson arrivals at a mimic workload",
		Want: "scheduled = started = finished = right answers = served",
		Got: fmt.Sprintf("%d, %d, %d, %d, %d (own lag p50 %v, p99 %v; %.0f µs of CPU a request, with the workload's)",
			r.Measured.Scheduled, r.Measured.Started, r.Measured.Finished, r.Measured.Outcomes[openloop.OK.String()], served,
			own(0.5), own(0.99), 1000*latency.Milliseconds(r.CPU)/float64(max(1, r.Measured.Started))),
		OK: err == nil && r.Measured.Failed() == 0 && r.Measured.Conserved() && served == r.Measured.Sent,
	}}, err
}
