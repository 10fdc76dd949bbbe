package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/tracing/otlp"
	"github.com/rouse-dev/rouse/workload"
)

// connectTimeout bounds how long a process that starts waits for NATS; a
// connection that is lost later is waited for without end.
const connectTimeout = 10 * time.Second

// What the history of a process keeps.
const (
	historyWakes  = 500
	historyEvents = 2000
)

// forgetAfter is how long a silent gateway's last words are kept: longer than
// any idle timeout that people use.
const forgetAfter = 7 * 24 * time.Hour

// A core is what the gateway and the scaler of one process share: the
// connection to NATS and what is learned over it.
type core struct {
	cfg      Config
	log      *slog.Logger
	reg      *prometheus.Registry
	metrics  *api.Metrics
	exporter *otlp.Exporter // of spans; nil: there is none
	name     string         // of this process, in asks, leases and reports
	bus      *events.Bus
	dir      *directory
	history  *api.History
	board    *workload.Board // what other processes' gateways say

	reconnected atomic.Pointer[func()] // what is done then; nil: nothing

	// Who else is told of what is learned; complete before follow runs.
	onStates    []func(workload.State)
	onReset     []func()
	onWorkloads []func([]workload.Workload)
	onActivity  []func(workload.Activity, time.Time)

	learned atomic.Bool   // the first list of workloads has come
	first   chan struct{} // closed with it
}

func newCore(cfg Config, logs io.Writer) *core {
	c := &core{
		cfg: cfg, log: newLogger(cfg.Log, logs), reg: prometheus.NewRegistry(),
		name: processName(cfg.Gateway), dir: newDirectory(), history: api.NewHistory(historyWakes, historyEvents),
		board: workload.NewBoard(), first: make(chan struct{}),
	}
	c.metrics = api.NewMetrics(c.reg, programBuild())
	return c
}

// processName is the configured name, or one that no other process has.
func processName(configured string) string {
	if configured != "" {
		return configured
	}
	host, err := os.Hostname()
	if err != nil {
		host = "rouse"
	}
	return host + "-" + newID()[:6]
}

func newID() string { return rand.Text() }

func newLogger(cfg LogConfig, out io.Writer) *slog.Logger {
	levels := map[logLevel]slog.Level{
		levelDebug: slog.LevelDebug, levelInfo: slog.LevelInfo, levelWarn: slog.LevelWarn, levelError: slog.LevelError,
	}
	opts := &slog.HandlerOptions{Level: levels[cfg.Level]}
	if cfg.Format == formatJSON {
		return slog.New(slog.NewJSONHandler(out, opts))
	}
	return slog.New(slog.NewTextHandler(out, opts))
}

// connect joins the events: those of server if there is one, else those of
// nats.url.
func (c *core) connect(ctx context.Context, role string, server *natsd.Server) error {
	cfg := events.Config{
		URL: c.cfg.NATS.URL, Creds: c.cfg.NATS.Creds, Name: c.name, Role: role, Replicas: c.cfg.NATS.Replicas,
		Reconnected: c.onReconnect, Logger: c.log, Registerer: c.reg,
	}
	if server != nil {
		cfg.Server = server
	}
	c.log.Info("connecting to nats", "place", c.natsPlace())
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	bus, err := events.Connect(ctx, cfg)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted while connecting to nats")
	}
	if err != nil {
		return fail(exitUnreachable, fmt.Errorf("nats at %s: %w (start it, or correct nats.url)", c.natsPlace(), err))
	}
	c.bus = bus
	if err := bus.Provision(ctx); err != nil {
		bus.Close()
		return fail(exitUnreachable, fmt.Errorf("nats at %s: streams and buckets: %w", c.natsPlace(), err))
	}
	return nil
}

// natsPlace is for people: without passwords.
func (c *core) natsPlace() string {
	if c.cfg.NATS.URL == "" {
		return "the embedded server"
	}
	return redact(c.cfg.NATS.URL)
}

// known blocks until the first list of workloads has come.
func (c *core) known(ctx context.Context) error {
	select {
	case <-c.first:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// follow learns from NATS until ctx ends.
func (c *core) follow(ctx context.Context) error {
	return together(ctx,
		func(ctx context.Context) error { return c.bus.FollowStates(ctx, c.heardState, c.heardReset) },
		func(ctx context.Context) error { return c.bus.FollowWorkloads(ctx, c.heardWorkloads) },
		func(ctx context.Context) error { return c.bus.FollowProblems(ctx, c.dir.complain) },
		func(ctx context.Context) error { return c.bus.FollowActivity(ctx, c.heardActivity) },
		c.followHistory,
		c.followAdvisories,
		forgetting(c.board),
	)
}

// wake puts an ask on its way, and reads the state again: the news that it is
// awake already may have been lost.
func (c *core) wake(ctx context.Context, w workload.Wake) error {
	spec, _, ok := c.dir.find(w.Workload)
	if !ok {
		return fmt.Errorf("wake %s: not in the catalog", w.Workload)
	}
	err := c.bus.PublishWake(ctx, spec.Node, w)
	if s, readErr := c.bus.State(ctx, w.Workload); readErr == nil {
		c.heardState(s)
	}
	return err
}

func (c *core) heardState(s workload.State) {
	c.dir.observe(s)
	for _, tell := range c.onStates {
		tell(s)
	}
}

func (c *core) heardReset() {
	c.dir.reset()
	for _, tell := range c.onReset {
		tell()
	}
}

func (c *core) heardWorkloads(ws []workload.Workload) {
	c.dir.describe(ws)
	for _, tell := range c.onWorkloads {
		tell(ws)
	}
	if c.learned.CompareAndSwap(false, true) {
		close(c.first)
	}
}

func (c *core) heardActivity(a workload.Activity, at time.Time) {
	if a.Gateway != c.name {
		c.board.Hear(a, at)
	}
	for _, tell := range c.onActivity {
		tell(a, at)
	}
}

func (c *core) onReconnect() {
	if f := c.reconnected.Load(); f != nil {
		(*f)()
	}
}

// whenReconnected adds to what is done when the events are back.
func (c *core) whenReconnected(f func()) {
	before := c.reconnected.Load()
	both := func() {
		if before != nil {
			(*before)()
		}
		f()
	}
	c.reconnected.Store(&both)
}

// followHistory fills the history. It informs only, so that no failure of it
// may end the process.
func (c *core) followHistory(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.bus.FollowEvents(ctx, events.EventFilter{Last: historyEvents}, c.history.Add)
		if err == nil {
			continue
		}
		c.log.Warn("history is not followed", "error", err)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return nil
}

// forgetting drops from a board the gateways that are long gone.
func forgetting(board *workload.Board) part {
	return func(ctx context.Context) error {
		tick := time.NewTicker(time.Hour)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				board.Forget(now, forgetAfter)
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// ready is what every role needs.
func (c *core) ready(context.Context) []api.Check {
	nats := api.Check{Name: "nats", OK: true}
	if err := c.bus.Err(); err != nil {
		nats.OK, nats.Detail = false, err.Error()
	}
	return []api.Check{nats, {Name: "workloads", OK: c.learned.Load(), Detail: "the first list of workloads"}}
}
