// Package api is the administration of a running Rouse over HTTP: what each
// workload does, waking it and putting it to sleep, the record of cold
// starts, the live history, health, metrics and the configuration in force.
//
// It owns the routes, their JSON, who may call them, and the History that
// answers for past cold starts. It does not know where the answers come from:
// everything else is behind Backend, which the caller of New implements.
//
// With a token, every route but /healthz and /readyz asks for it. Without one
// the handler is meant for a loopback address alone, and defends it against
// web pages in a browser on the same machine: a write from another origin is
// refused, and so is any request whose Host is a name that could have been
// pointed at the loopback address (DNS rebinding).
//
// Every error is problem+json (RFC 9457). Nothing is cached, nothing may be
// framed, and the one HTML page loads nothing from anywhere.
package api

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config is what New needs beside the Backend. The zero value is usable: no
// token, no metrics, no log.
type Config struct {
	// Token is the bearer token that callers must show; empty asks for none,
	// which is right on a loopback address only.
	Token string
	// Gatherer is what /metrics exposes; nil exposes nothing.
	Gatherer prometheus.Gatherer
	// Logger takes one line for each write and each internal error; nil
	// discards them.
	Logger *slog.Logger
	// Version is shown at the foot of the page.
	Version string
	// Heartbeat is how often an idle event stream writes a comment, so that
	// neither end takes the other for dead; 0 means 15 s.
	Heartbeat time.Duration
}

type server struct {
	cfg     Config
	backend Backend
	origin  *http.CrossOriginProtection
	page    *page
	news    *news
}

// A route is one path with the one method it answers; GET answers HEAD too.
type route struct {
	method, pattern string
	handle          func(http.ResponseWriter, *http.Request) error
}

// New makes the handler of the admin listener. It starts nothing: event
// streams and waits end with the context of their request, so a server that
// wants to end them early sets http.Server.BaseContext.
func New(cfg Config, backend Backend) http.Handler {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Gatherer == nil {
		cfg.Gatherer = prometheus.NewRegistry()
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	s := &server{cfg: cfg, backend: backend, origin: http.NewCrossOriginProtection(), page: newPage(), news: newNews(backend)}
	mux := http.NewServeMux()
	for _, r := range s.openRoutes() {
		mux.Handle(r.pattern, s.serve(r))
	}
	for _, r := range s.guardedRoutes() {
		mux.Handle(r.pattern, s.guard(s.serve(r)))
	}
	mux.Handle("/", s.guard(http.HandlerFunc(s.noRoute)))
	return s.headers(mux)
}

// openRoutes answer anybody: a load balancer or an image's health check has
// no token.
func (s *server) openRoutes() []route {
	return []route{
		{http.MethodGet, "/healthz", s.health},
		{http.MethodGet, "/readyz", s.ready},
		{http.MethodGet, "/{$}", s.dashboard},
	}
}

func (s *server) guardedRoutes() []route {
	return []route{
		{http.MethodGet, "/metrics", s.metrics()},
		{http.MethodGet, "/api/v1/workloads", s.workloads},
		{http.MethodGet, "/api/v1/workloads/{name}", s.workload},
		{http.MethodGet, "/api/v1/workloads/{name}/logs", s.logs},
		{http.MethodPost, "/api/v1/workloads/{name}/wake", s.wake},
		{http.MethodPost, "/api/v1/workloads/{name}/sleep", s.sleep},
		{http.MethodPost, "/api/v1/workloads/{name}/keep", s.keep},
		{http.MethodGet, "/api/v1/days", s.days},
		{http.MethodGet, "/api/v1/added", s.added},
		{http.MethodGet, "/api/v1/findings", s.findings},
		{http.MethodGet, "/api/v1/nats", s.nats},
		{http.MethodGet, "/api/v1/live", s.live},
		{http.MethodGet, "/api/v1/wakes", s.wakes},
		{http.MethodGet, "/api/v1/wakes/{id}", s.wakeByID},
		{http.MethodGet, "/api/v1/events", s.events},
		{http.MethodGet, "/api/v1/config", s.config},
		{http.MethodGet, "/api/v1/traefik", s.traefik},
	}
}

func (s *server) metrics() func(http.ResponseWriter, *http.Request) error {
	h := promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{
		EnableOpenMetrics: true,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelError),
	})
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}
