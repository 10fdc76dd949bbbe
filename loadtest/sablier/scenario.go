package sablier

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/latency"
)

// What is measured: the proxy itself, or the API beside another proxy.
const (
	subjectProxy = "Rouse as the proxy"
	subjectAPI   = "the compatible API"
)

// A scenario is one row.
type scenario struct {
	Subject, Name string
	workload      string // that it is about
	calls         int    // 0: for as long as the duration says
	cold          bool   // put to sleep before each call
	notReady      bool   // it is not to become ready
	address       string
	call          call
}

// navigation is what a browser sends that is told to show a page.
var navigation = []string{"Accept: text/html,application/xhtml+xml", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}

// Marks are in no answer but the right one. An answer has the headers too.
const (
	markAPIReady    = "X-Sablier-Session-Status: ready\r\n"
	markAPINotReady = "X-Sablier-Session-Status: not-ready\r\n"
	markWorkload    = `"listening_at_unix_ns":` // the mimic's own answer
	markPage        = "Retry-After: "           // of the waiting page, which is a 503
)

func (c Config) scenarios() ([]scenario, error) {
	group, never := "group="+url.QueryEscape(c.Group), "names="+url.QueryEscape(c.Never)
	api := func(name, strategy, whom, mark string) scenario {
		path := "/api/strategies/" + strategy + "?" + whom + "&session_duration=1h&timeout=30s"
		return scenario{Subject: subjectAPI, Name: name, workload: c.Workload, address: c.API,
			call: call{request: http1.Request{Path: path}, status: 200, mark: mark}}
	}
	proxy := func(name, host string, status int, mark string, header ...string) scenario {
		return scenario{Subject: subjectProxy, Name: name, workload: c.Workload, address: c.Proxy,
			call: call{request: http1.Request{Path: "/", Host: host, Header: header}, status: status, mark: mark}}
	}
	all := []scenario{
		proxy("blocking warm", c.Host, 200, markWorkload),
		proxy("blocking cold", c.Host, 200, markWorkload).sleeping(c.Cold),
		proxy("dynamic warm", c.Host, 200, markWorkload, navigation...),
		proxy("dynamic not-ready", c.NeverHost, 503, markPage, navigation...).never(c.Never),
		api("blocking warm", "blocking", group, markAPIReady),
		api("blocking cold", "blocking", group, markAPIReady).sleeping(c.Cold),
		api("dynamic warm", "dynamic", group, markAPIReady),
		api("dynamic not-ready", "dynamic", never, markAPINotReady).never(c.Never),
	}
	if c.Calls > 0 {
		long := api(fmt.Sprintf("blocking warm, %d calls", c.Calls), "blocking", group, markAPIReady)
		long.calls = c.Calls
		all = append(all, long)
	}
	for i := range all {
		if err := all[i].prepare(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s scenario) sleeping(times int) scenario {
	s.cold, s.calls = true, times
	return s
}

func (s scenario) never(name string) scenario {
	s.notReady, s.workload = true, name
	return s
}

func (s *scenario) prepare() error {
	u, err := url.Parse(s.address)
	if err != nil || u.Host == "" {
		return fmt.Errorf("%s: %q is not the address of a server", s.Subject, s.address)
	}
	s.address = u.Host
	if s.call.request.Host == "" {
		s.call.request.Host = u.Host
	}
	s.call.template, err = http1.NewTemplate(s.call.request)
	return err
}

// measure makes the scenario's calls.
func (s scenario) measure(ctx context.Context, n *node) (Row, error) {
	if err := s.prime(ctx, n); err != nil {
		return Row{}, err
	}
	row := Row{Subject: s.Subject, Scenario: s.Name}
	var err error
	if row.MemoryBefore, err = n.memory(); err != nil {
		return row, err
	}
	times := latency.New()
	began := time.Now()
	if s.cold {
		row.CPU, err = s.coldCalls(ctx, n, times)
	} else {
		row.CPU, err = s.warmCalls(ctx, n, times)
		row.Rate = float64(times.Count()) / time.Since(began).Seconds()
	}
	if err != nil {
		return row, err
	}
	if row.MemoryAfter, err = n.memory(); err != nil {
		return row, err
	}
	row.CPU /= float64(times.Count())
	row.Calls, row.Times = times.Count(), times.Summary()
	return row, s.verify(ctx, n)
}

// prime has the workload in the phase that the scenario is about.
func (s scenario) prime(ctx context.Context, n *node) error {
	if s.cold {
		return nil // each call sees to it
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	phase := "ready"
	if s.notReady {
		phase = "waking"
	}
	if err := n.wake(ctx, s.workload); err != nil {
		return err
	}
	return n.await(ctx, s.workload, phase)
}

// verify that it was so to the end.
func (s scenario) verify(ctx context.Context, n *node) error {
	view, err := n.view(ctx, s.workload)
	if err == nil && s.notReady && view.Phase != "waking" {
		err = fmt.Errorf("%s was to be waking all along and is %s", s.workload, view.Phase)
	}
	return err
}

// warmCalls keeps every connection busy.
func (s scenario) warmCalls(ctx context.Context, n *node, times *latency.Histogram) (cpu float64, err error) {
	before := n.busy()
	err = loop{s.address, s.call, n.cfg.Conns, s.calls, n.cfg.Duration}.run(ctx, times)
	return microseconds(n.busy() - before), err
}

// coldCalls makes one call at a time, each to a workload that sleeps.
func (s scenario) coldCalls(ctx context.Context, n *node, times *latency.Histogram) (cpu float64, err error) {
	for range s.calls {
		used, err := s.coldCall(ctx, n, times)
		if err != nil {
			return 0, err
		}
		cpu += used
	}
	return cpu, nil
}

// settle passes between asleep and the next call, for the aftermath of a stop
// to end.
const settle = 300 * time.Millisecond

func (s scenario) coldCall(ctx context.Context, n *node, times *latency.Histogram) (cpu float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	if err := n.sleep(ctx, s.workload); err != nil {
		return 0, err
	}
	asleep, err := n.view(ctx, s.workload)
	if err != nil {
		return 0, err
	}
	c, err := dial(ctx, s.address, s.call)
	if err != nil {
		return 0, err
	}
	defer c.close()
	pause(ctx, settle)
	before := n.busy()
	took, err := c.ask()
	if err != nil {
		return 0, err
	}
	cpu = microseconds(n.busy() - before)
	times.Record(took)
	awake, err := n.view(ctx, s.workload)
	if err == nil && awake.Generation != asleep.Generation+1 {
		err = fmt.Errorf("the call was not cold: generation %d after %d", awake.Generation, asleep.Generation)
	}
	return cpu, err
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
