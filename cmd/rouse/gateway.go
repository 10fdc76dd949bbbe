package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

// activityEvery is how often a gateway tells of its traffic. The scaler takes
// one for gone after workload.Gone.
const activityEvery = time.Second

// redirectTimeout bounds all that a client does at tls.redirect.
const redirectTimeout = 10 * time.Second

// A gateway is the router and the activator, wired to the events.
type gateway struct {
	*core
	act          *activator.Activator
	router       *router.Router
	server       *router.Server
	listener     net.Listener
	redirect     net.Listener  // to HTTPS; nil: there is none
	sablier      *sablierAPI   // nil: there is none
	shared       bool          // the listener may be another gateway's too
	certificates *certificates // nil: no TLS
	phases       *phaseMeter
	serving      atomic.Bool
	leaving      atomic.Bool   // it no longer listens
	back         chan struct{} // the connection to the events is; buffered 1
}

// alsoReady adds what a gateway needs.
func (g *gateway) alsoReady(others func(context.Context) []api.Check) func(context.Context) []api.Check {
	return func(ctx context.Context) []api.Check {
		return append(others(ctx), api.Check{Name: "router", OK: g.serving.Load(), Detail: "traffic at " + g.listener.Addr().String()})
	}
}

// newGateway wires a gateway that will serve the listeners.
func newGateway(c *core, l *listeners) (*gateway, error) {
	phases, err := newPhaseMeter(c.reg)
	if err != nil {
		return nil, err
	}
	g := &gateway{core: c, listener: l.traffic, redirect: l.redirect, shared: l.shared, phases: phases, back: make(chan struct{}, 1)}
	limits := c.cfg.Limits
	g.act = activator.New(activator.Config{
		Gateway: c.name, QueueRequests: limits.QueueRequests, QueueBytes: limits.QueueBytes,
		WakesPerMinute: limits.WakesPerMinute, ReleaseConcurrency: limits.ReleaseConcurrency,
		Logger: c.log, Registerer: c.reg, Released: g.released,
	}, g)
	r, err := router.New(router.Config{
		TrustedProxies: c.cfg.TrustedProxies, NoWake: noWake(c.cfg.NoWake), WakesPerClient: limits.WakesPerClient,
		BodyTimeout: limits.BodyTimeout, WriteTimeout: limits.WriteTimeout, AccessLog: accessLog(c.cfg.AccessLog),
		Tracer: c.tracer(), Journal: c.history, Theme: theme(c.cfg.WaitingPage, c.log), Logger: c.log, Registerer: c.reg,
	}, g.act)
	if err != nil {
		return nil, err
	}
	g.router = r
	if g.certificates, err = newCertificates(c.cfg.TLS, c.log); err != nil {
		return nil, err
	}
	serve := router.ServerConfig{Connections: limits.Connections, ConnectionsPerClient: limits.ConnectionsPerClient, Lean: c.cfg.Lean}
	if g.certificates != nil {
		serve.TLS = g.certificates.config()
	}
	g.server = router.NewServer(serve, r)
	g.sablier = newSablierAPI(c, l.sablier, g.act)
	c.onStates = append(c.onStates, g.observe)
	c.onReset = append(c.onReset, g.act.Reset)
	c.onWorkloads = append(c.onWorkloads, g.update)
	c.whenReconnected(g.sayItIsBack)
	return g, nil
}

func noWake(cfg NoWakeConfig) router.NoWake {
	return router.NoWake{
		Prefetch: cfg.Prefetch, Methods: cfg.Methods, Paths: cfg.Paths, UserAgents: cfg.UserAgents, Answer: cfg.Answer,
	}
}

// theme is the user's; nil: there is none.
func theme(cfg WaitingPageConfig, log *slog.Logger) *waitpage.Theme {
	if cfg.Template == "" {
		return nil
	}
	return waitpage.NewTheme(cfg.Template, func(err error) {
		log.Error("waiting_page.template has a fault, the built-in page stands in for it", "error", err)
	})
}

func accessLog(cfg AccessLogConfig) router.AccessLog {
	if cfg.Format == accessOff {
		return router.AccessLog{}
	}
	return router.AccessLog{To: os.Stdout, Format: router.LogFormat(cfg.Format), Percent: cfg.Percent}
}

func (g *gateway) observe(s workload.State) {
	g.act.Observe(s)
	g.router.Observe(s)
}

func (g *gateway) update(ws []workload.Workload) {
	g.act.Update(ws)
	g.sablier.update(ws)
	for _, p := range g.router.Update(ws) {
		g.log.Warn("route left out", "workload", p.Workload, "place", p.Place, "problem", p.Message, "fix", p.Fix)
	}
}

// Wake is the activator's Waker.
func (g *gateway) Wake(ctx context.Context, w workload.Wake) error { return g.wake(ctx, w) }

// released adds what only a gateway knows to the history of a cold start.
func (g *gateway) released(w workload.Wake) {
	g.phases.observe(&w)
	tracing.RecordOpening(g.tracer(), &w)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	e := workload.Event{
		Workload: w.Workload, Kind: workload.EventReleased, At: w.ReleasedAt,
		Generation: w.Generation, Actor: g.name, Wake: &w,
	}
	if err := g.bus.RecordEvent(ctx, e); err != nil {
		g.log.Debug("event not recorded", "workload", w.Workload, "error", err)
	}
}

// run serves until ctx ends and every request has had its end; what serves
// the requests ends after them.
func (g *gateway) run(ctx context.Context) error {
	return beneath(ctx, g.serveGates, func(ctx context.Context) error {
		if err := g.introduce(ctx); err != nil {
			return nil
		}
		g.serving.Store(true)
		defer g.serving.Store(false)
		defer context.AfterFunc(ctx, func() { g.leaving.Store(true) })()
		return together(ctx,
			func(ctx context.Context) error { return g.server.Serve(ctx, g.listener) },
			g.serveRedirect,
			g.sablier.serve,
		)
	})
}

// serveRedirect sends clients that come in cleartext to HTTPS, until ctx ends.
func (g *gateway) serveRedirect(ctx context.Context) error {
	if g.redirect == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(g.listener.Addr().String())
	if err != nil {
		return fmt.Errorf("tls.redirect: %w", err)
	}
	s := &http.Server{Handler: g.router.RedirectToHTTPS(port), ReadTimeout: redirectTimeout, WriteTimeout: redirectTimeout,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug)}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(g.redirect); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("tls.redirect: %w", err)
	}
	return nil
}

// introduce makes sure that every scaler knows of this gateway before it
// serves anything: one that is cut off from then on is missed, and nothing
// that it may be using is put to sleep.
func (g *gateway) introduce(ctx context.Context) error {
	for told := false; ; told = true {
		err := g.bus.ReportActivity(ctx, g.activity())
		if err == nil {
			return nil
		}
		if !told {
			g.log.Warn("no traffic is taken before nats knows of this gateway", "error", err)
		}
		select {
		case <-time.After(activityEvery / 4):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// activity is the gateway's traffic, and where it listens as long as it does,
// and nobody else can: of one that shares its place, another proves nothing.
func (g *gateway) activity() workload.Activity {
	a := g.act.Activity()
	if !g.leaving.Load() && !g.shared {
		a.Place = placeOf(g.listener.Addr())
	}
	return a
}

func (g *gateway) serveGates(ctx context.Context) error {
	return together(ctx,
		g.act.Run,
		g.router.Run,
		func(ctx context.Context) error { return g.bus.ServeDrain(ctx, g.name, g.act.Drain) },
		g.report,
		g.keepCertificates,
	)
}

// keepCertificates reads the certificates again as they change.
func (g *gateway) keepCertificates(ctx context.Context) error {
	if g.certificates == nil {
		return nil
	}
	return g.certificates.run(ctx)
}

// sayItIsBack has the traffic told at once.
func (g *gateway) sayItIsBack() {
	select {
	case g.back <- struct{}{}:
	default:
	}
}

// report tells of the traffic once a second, and at once when a workload
// comes into use or the events are back; the last report says goodbye. A report that is lost is
// made good by the next.
func (g *gateway) report(ctx context.Context) error {
	tick := time.NewTicker(activityEvery)
	defer tick.Stop()
	for {
		if err := g.bus.PublishActivity(g.activity()); err != nil {
			g.log.Debug("activity not told", "error", err)
		}
		select {
		case <-tick.C:
		case <-g.act.Changed():
		case <-g.back: // nobody has heard of it meanwhile
		case <-ctx.Done():
			last := g.activity()
			last.Leaving = true
			if err := g.bus.PublishActivity(last); err != nil {
				g.log.Debug("end not told", "error", err)
			}
			return nil
		}
	}
}
