package router

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// NoWake says which requests neither wake a workload nor keep it awake. The
// zero value names none.
type NoWake struct {
	// Prefetch takes in what browsers fetch on a guess.
	Prefetch bool
	// Methods are compared as they are ("HEAD").
	Methods []string
	// Paths are prefixes, cut at a segment.
	Paths []string
	// UserAgents are parts of the User-Agent header, in the case given.
	UserAgents []string
	// Answer is the status of the answer while the workload sleeps; 0 is 503.
	Answer int
}

// A policy is the part of the configuration that judges requests.
type policy struct {
	trusted []netip.Prefix
	noWake  NoWake
	answer  int // status for a no-wake request while asleep
}

func newPolicy(cfg Config) policy {
	p := policy{trusted: cfg.TrustedProxies, noWake: cfg.NoWake, answer: cfg.NoWake.Answer}
	if p.answer == 0 {
		p.answer = http.StatusServiceUnavailable
	}
	return p
}

// quiet reports a request that neither wakes nor keeps awake.
func (p *policy) quiet(r *http.Request, w *workload.Workload) bool {
	n := &p.noWake
	if n.Prefetch && prefetched(r.Header) {
		return true
	}
	if slices.Contains(n.Methods, r.Method) || below(n.Paths, r.URL.Path) || below(w.NoWake, r.URL.Path) {
		return true
	}
	agent := r.UserAgent()
	return slices.ContainsFunc(n.UserAgents, func(part string) bool { return strings.Contains(agent, part) })
}

func below(prefixes []string, path string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return underPath(path, prefix) })
}

// mayWake reports whether the client may wake the workload at all.
func (p *policy) mayWake(r *http.Request, from peer, w *workload.Workload) bool {
	return len(w.WakeAllow) == 0 || within(w.WakeAllow, p.clientAddr(from, r))
}
