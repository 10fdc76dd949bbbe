// Package sablier answers the HTTP API of Sablier, so that Sablier's own
// plugins for Traefik, Caddy and proxy-wasm work with Rouse: they ask here
// before each request of a user, and send it to the workload themselves.
//
// It owns the routes, their parameters, and the form of the answers; what is
// done to a workload is its gate's. It does not know how one is started.
//
// Guarantees: every answer of status 200 of a strategy has the header
// X-Sablier-Session-Status, and no other has; an answer comes when the last
// workload is ready or the first start has failed, not at a tick; nothing is
// reached by name or group but the workloads of the catalog, which have opted
// in; a call leaves nothing in memory but the moment until which its
// workloads are kept awake.
package sablier

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// Config is what New needs beside the gates. The zero value is usable.
type Config struct {
	// Healthy says whether the process can do its work; nil is always.
	Healthy func() bool
	// Logger takes one line for each start that is asked for and fails; nil
	// discards them.
	Logger *slog.Logger
	// Registerer may be nil: then no metrics are registered.
	Registerer prometheus.Registerer
}

// Gates finds the gate of a workload; nil: there is none of that name.
type Gates interface {
	Gate(name string) *activator.Gate
}

// An API is the http.Handler. It knows no workload before Update. All methods
// are safe for concurrent use.
type API struct {
	cfg   Config
	gates Gates
	index atomic.Pointer[index]

	blockingCalls, dynamicCalls meter
}

// New makes the handler; it starts nothing. A call ends with the context of
// its request.
func New(cfg Config, gates Gates) *API {
	if cfg.Healthy == nil {
		cfg.Healthy = func() bool { return true }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	a := &API{cfg: cfg, gates: gates}
	a.blockingCalls, a.dynamicCalls = newMeters(cfg.Registerer)
	a.index.Store(newIndex(nil, gates))
	return a
}

// Update takes the whole catalog, once the gates have it.
func (a *API) Update(ws []workload.Workload) { a.index.Store(newIndex(ws, a.gates)) }

// ServeHTTP answers one call. A base path in front of the routes, as Sablier
// has it, is for the proxy to cut off; a slash at the end is forgiven.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	handle := a.route(path)
	switch {
	case handle == nil:
		fail(w, r, problem{Status: http.StatusNotFound, id: "not-found", Title: "There is nothing here", Detail: r.URL.Path + " is no path of this API"})
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		fail(w, r, problem{Status: http.StatusMethodNotAllowed, id: "method-not-allowed", Title: "The method is not allowed", Detail: "this API answers GET"})
	case fromAnotherSite(r.Header):
		fail(w, r, problem{Status: http.StatusForbidden, id: "cross-site", Title: "The request comes from another site", Detail: "this API is for proxies, not for pages in a browser"})
	default:
		handle(w, r)
	}
}

func (a *API) route(path string) http.HandlerFunc {
	switch path {
	case "/api/strategies/blocking":
		return a.blocking
	case "/api/strategies/dynamic":
		return a.dynamic
	case "/api/themes", "/api/dynamic/themes":
		return a.themes
	case "/health":
		return a.health
	}
	return nil
}

// fromAnotherSite reports what a browser sends on behalf of a page that is
// not ours: it must not wake anything. Proxies do not send the header.
func fromAnotherSite(h http.Header) bool {
	site := h.Get("Sec-Fetch-Site")
	return site != "" && site != "none" && site != "same-origin"
}

func (a *API) themes(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string][]string{"themes": themeNames})
}

// health is for images and load balancers: OK, or 503.
func (a *API) health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !a.cfg.Healthy() {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("Service Unavailable"))
		return
	}
	_, _ = w.Write([]byte("OK"))
}
