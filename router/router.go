// Package router is the front door: it finds the workload that a request
// belongs to, gets a lease for it from the activator, forwards the request to
// the replica that the lease names, and measures what that cost.
//
// It owns the routes, the forwarding headers, the connections to replicas,
// every answer that Rouse gives in a workload's place, the access log and the
// added-latency metrics. It does not know why or how a workload wakes, where
// its state is kept, or what runs it; of those it sees the activator's lease
// and errors.
//
// Guarantees: a request to an awake workload passes through unchanged but for
// the forwarding headers, bodies are streamed both ways in constant memory,
// whatever the protocol (HTTP/1.1, HTTP/2, upgrades, gRPC); a body is never
// sent twice; a held request costs no goroutine of the router's; a connection
// to one replica never serves another, whatever their addresses; an answer
// that breaks off is never made to look whole.
package router

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

// Config is what New needs besides the activator. The zero value trusts no
// proxy, treats every request alike and keeps no access log.
type Config struct {
	// TrustedProxies are the networks whose X-Forwarded-* and Forwarded
	// headers are believed.
	TrustedProxies []netip.Prefix
	NoWake         NoWake
	// WakesPerClient bounds the cold starts that one client may cause in a
	// minute, over all workloads; 0 means no bound.
	WakesPerClient int
	// BodyTimeout is how long a client may take for each 4 KiB of a body whose
	// length it said, WriteTimeout how long it may leave what is written to it
	// unread; 0 is a minute each.
	BodyTimeout, WriteTimeout time.Duration
	// Journal tells waiting pages how far a cold start has come; nil: they do
	// not say.
	Journal Journal
	// Theme makes Rouse's own pages; nil is the built-in one.
	Theme *waitpage.Theme
	// AccessLog has a line for each request. Run writes it.
	AccessLog AccessLog
	// Tracer takes the spans of requests; nil makes none.
	Tracer tracing.Tracer
	// Logger takes what the access log does not tell; nil discards.
	Logger *slog.Logger
	// Registerer takes the metrics; nil registers nowhere.
	Registerer prometheus.Registerer
}

// A Router is an http.Handler. It is safe for concurrent use.
type Router struct {
	activator                 *activator.Activator
	policy                    policy
	table                     atomic.Pointer[table]
	upstreams                 *upstreams
	buffers                   *buffers
	exchanges                 sync.Pool // of *exchange, not in use
	leavers                   *leavers
	budgets                   budgets
	auth                      *http.Client // asks authentication services
	turns                     *turns
	lobby                     *lobby
	theme                     *waitpage.Theme
	bodyTimeout, writeTimeout time.Duration
	meters                    *meters
	nowhere                   *meter // of requests that no workload serves
	access                    *accessLog
	tracer                    tracing.Tracer // nil: no spans
	logger                    *slog.Logger
	running                   atomic.Int64 // requests and tunnels under way
	leaving                   atomic.Bool  // the server stops: connections end with their next answer

	updating sync.Mutex // held by Update
}

// New makes a router without routes. The error is one of registering metrics.
func New(cfg Config, act *activator.Activator) (*Router, error) {
	meters, err := newMeters(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register router metrics: %w", err)
	}
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	r := &Router{
		activator:    act,
		policy:       newPolicy(cfg),
		upstreams:    newUpstreams(),
		buffers:      newBuffers(),
		leavers:      newLeavers(),
		budgets:      budgets{perMinute: cfg.WakesPerClient},
		auth:         newAuthClient(),
		turns:        newTurns(),
		theme:        cfg.Theme,
		bodyTimeout:  cmp.Or(cfg.BodyTimeout, defaultBodyTimeout),
		writeTimeout: cmp.Or(cfg.WriteTimeout, defaultWriteTimeout),
		meters:       meters,
		nowhere:      meters.of(""),
		access:       newAccessLog(cfg.AccessLog),
		tracer:       cfg.Tracer,
		logger:       logger,
	}
	r.lobby = &lobby{activator: act, journal: cfg.Journal, leaving: r.leaving.Load, rooms: map[string]*room{}}
	r.exchanges.New = func() any { return &exchange{router: r} }
	r.table.Store(&table{})
	return r, nil
}

// Update takes the whole catalog and replaces all routes at once; requests
// under way keep the route they have. It returns one Problem for each host
// that is no host or that two workloads claim, of which the first by name
// gets it. Call it after the activator's Update.
func (r *Router) Update(workloads []workload.Workload) []workload.Problem {
	r.updating.Lock()
	defer r.updating.Unlock()
	next, problems := newTable(workloads, r.meters.of)
	names := make(map[string]bool, len(workloads))
	for i := range workloads {
		names[workloads[i].Name] = true
	}
	before := r.table.Swap(next)
	before.each(func(route *route) {
		if !names[route.workload.Name] {
			r.meters.forget(route.workload.Name)
		}
	})
	r.upstreams.retain(func(name, _ string) bool { return names[name] })
	return problems
}

// Observe takes the news of one workload's state: connections to replicas
// that it no longer has are closed, at once when idle, so that a workload on
// its way to sleep does not wait for clients that say nothing more. Requests
// under way are left to end. It is no harm if news is missed: Run catches up.
func (r *Router) Observe(s workload.State) {
	r.upstreams.retain(func(name, id string) bool {
		return name != s.Workload || serves(s, id)
	})
}

// serves reports that new requests may still go to a replica.
func serves(s workload.State, id string) bool {
	if s.Phase != workload.Ready {
		return false
	}
	for i := range s.Replicas {
		if s.Replicas[i].ID == id {
			return true
		}
	}
	return false
}

// sweepEvery is the pace of closing connections to replicas that went away.
const sweepEvery = 5 * time.Second

// Run does what requests must not wait for: writes the access log, closes
// connections to replicas that went away, and watches for held clients that
// leave. It blocks until ctx ends, closes the idle connections then, and
// returns nil. Requests are served without it, but those three stay undone:
// end it after the servers.
func (r *Router) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	parts.Go(func() { r.leavers.run(ctx) })
	parts.Go(func() { r.sweep(ctx) })
	if r.access != nil {
		parts.Go(func() {
			r.access.run(ctx, func(err error) { r.logger.Error("access log cannot be written", "error", err) })
		})
	}
	parts.Wait()
	r.auth.CloseIdleConnections()
	r.upstreams.retain(func(_, _ string) bool { return false })
	return nil
}

func (r *Router) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.sweepOnce()
		}
	}
}

// sweepOnce keeps the connections to replicas that the gates know of.
func (r *Router) sweepOnce() {
	states := map[string]workload.State{}
	for _, view := range r.activator.Views() {
		states[view.Name] = view.State
	}
	r.upstreams.retain(func(name, id string) bool { return serves(states[name], id) })
	r.upstreams.sweep(time.Now())
}

// ServeHTTP answers one request; it blocks until the answer, or the tunnel
// that it became, has ended. It panics with http.ErrAbortHandler, as net/http
// wants it, where an answer broke off. The request's header is the router's
// from here on: it is changed and sent in place of a copy.
func (r *Router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	x := r.exchanges.Get().(*exchange)
	x.begin(w, req)
	defer x.end()
	x.serve()
	x.whole = true
}

// idle blocks until no request and no tunnel is under way, or ctx ends; it
// returns how many are.
func (r *Router) idle(ctx context.Context) int64 {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		n := r.running.Load()
		if n == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
		}
	}
}
