// Package workload holds the words that every part of Rouse shares: what a
// workload is, which phase it is in, which replicas serve it, and the record
// of one cold start.
//
// It is the leaf of the import graph: standard library only, no I/O, no
// clocks of its own. Values are plain data; a value that has been handed to
// another package is never changed afterwards, so it may be shared between
// goroutines without a lock. Board is the one exception and says so.
package workload

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// A Workload is the description of something that may sleep: where its
// requests come from, how it is started, and how it is put back to sleep.
// It says nothing about what runs now; State does.
type Workload struct {
	// Name is unique over all nodes and satisfies ValidName.
	Name string `json:"name"`
	// Node names the scaler's reach that runs the workload.
	Node string `json:"node"`
	// Runtime is the platform that runs it: "docker" or "process".
	Runtime string `json:"runtime"`
	// Hosts are lower-case host names, each exact or with one leading
	// wildcard label ("*.example.com"). A workload without hosts is reached
	// only as a dependency.
	Hosts []string `json:"hosts,omitempty"`
	// Path is the longest-prefix part of the route, cut at a segment;
	// it starts with "/" and "/" means every path.
	Path string `json:"path,omitempty"`
	// Port is the port the workload listens on, 1 to 65535; 0 lets the
	// runtime choose (the only exposed port, or a free one for a process).
	Port int `json:"port,omitempty"`
	// Network names the container network whose address is dialled; empty
	// takes the only one, or the first by name.
	Network string `json:"network,omitempty"`

	// IdleTimeout is how long nothing may be in flight, queued or counted
	// before the workload is put to sleep. 0 means never.
	IdleTimeout time.Duration `json:"idle_timeout"`
	// HoldTimeout bounds how long one request is held.
	HoldTimeout time.Duration `json:"hold_timeout"`
	// WakeTimeout bounds one start, from the wake to proven readiness.
	WakeTimeout time.Duration `json:"wake_timeout"`
	// Wait says what a request meets while the workload sleeps.
	Wait WaitMode `json:"wait"`
	// PageAfter is how long a navigation is held before it gets the page.
	PageAfter time.Duration `json:"page_after"`
	// Ready says how readiness is proved.
	Ready Readiness `json:"ready"`
	// ReadyAfter passes between the proof of readiness and its being believed,
	// for what answers before it can do its work. 0 is none.
	ReadyAfter time.Duration `json:"ready_after,omitempty"`
	// Stop says how the workload is put to sleep.
	Stop StopMode `json:"stop"`
	// StopTimeout is the grace between asking it to end and killing it.
	StopTimeout time.Duration `json:"stop_timeout"`

	// Groups are the names under which it is woken together with others.
	Groups    []string `json:"groups,omitempty"`
	DependsOn []string `json:"depends_on,omitempty"`
	// Job says that it serves nobody, and is done once it has ended with code 0:
	// it runs anew for each wake of who depends on it.
	Job bool `json:"job,omitempty"`
	// ConflictsWith are those that it never runs beside. It is mutual: each of
	// the two names the other.
	ConflictsWith []string `json:"conflicts_with,omitempty"`
	KeepWarm      string   `json:"keep_warm,omitempty"`
	// NoWake lists path prefixes that neither wake it nor keep it awake.
	NoWake []string `json:"no_wake,omitempty"`
	// WakeAllow lists the client networks that may wake it; empty allows all.
	WakeAllow []netip.Prefix `json:"wake_allow,omitempty"`
	// Strategy chooses among its replicas; empty takes StrategyLeastInFlight.
	Strategy Strategy `json:"strategy,omitempty"`
	// Sticky sends a client to the replica that it was sent to before, by a
	// cookie, while that replica serves.
	Sticky bool `json:"sticky,omitempty"`
	// ResponseTimeout bounds the time from when a request has been sent to the
	// head of its answer; 0 is no bound, as for the next two.
	ResponseTimeout time.Duration `json:"response_timeout,omitempty"`
	// RequestTimeout bounds one request with its answer, without the time that
	// it is held. A tunnel is not bounded by it.
	RequestTimeout time.Duration `json:"request_timeout,omitempty"`
	// SilenceTimeout bounds the time in which an answer that has begun, or a
	// tunnel, carries nothing in either direction.
	SilenceTimeout time.Duration `json:"silence_timeout,omitempty"`
	// ForwardAuth is the URL of a service that is asked about each request
	// before it may wake or reach the workload; empty asks nobody.
	ForwardAuth string `json:"forward_auth,omitempty"`
	// ForwardAuthHeaders are the headers of its answer that the workload gets,
	// and that no client may send; empty takes the usual ones.
	ForwardAuthHeaders []string `json:"forward_auth_headers,omitempty"`
	// QueueRequests bounds the held requests of this workload; 0 takes the
	// gateway's limit.
	QueueRequests int `json:"queue_requests,omitempty"`
	// Min is the fewest replicas that stay awake: with 1 and more it never
	// sleeps, with all it has. Max bounds those awake; 0 means no limit.
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
	// TargetConcurrency is the number of requests in flight that one replica
	// should carry; 0 means unlimited.
	TargetConcurrency int `json:"target_concurrency,omitempty"`

	// Container names the container, Service the compose service, that the
	// docker runtime looks for. Both are empty for a workload that was found
	// by its labels: its containers carry the name.
	Container string `json:"container,omitempty"`
	Service   string `json:"service,omitempty"`
	// Containers are the names of those that it is made of, as last seen, in
	// order: callers that know containers alone find it by them.
	Containers []string `json:"containers,omitempty"`
	// Process is the command of the process runtime; nil for all others.
	Process *Process `json:"process,omitempty"`

	// Origin tells where the workload was described: "wiki (container)" or
	// "rouse.yaml:12:5".
	Origin string `json:"origin,omitempty"`
}

// Dialled reports whether anybody connects to it, to prove it ready or with a
// request: else it needs neither port nor address.
func (w *Workload) Dialled() bool {
	return !w.Job && (len(w.Hosts) > 0 || w.Ready.Kind != ReadyDocker)
}

// A Process is a command that serves HTTP on the port it is given.
type Process struct {
	// Command is the program and its arguments; "{port}" in any of them
	// becomes the port, which is also in the environment as PORT.
	Command []string `json:"command"`
	// Dir is the working directory; empty is the scaler's own.
	Dir string `json:"dir,omitempty"`
	// Env is added to the scaler's environment, as "KEY=value".
	Env []string `json:"env,omitempty"`
}

// Strategy says how a replica is chosen among several.
type Strategy string

const (
	// StrategyLeastInFlight takes two replicas by chance, and of the two the
	// one with less in flight.
	StrategyLeastInFlight Strategy = "least-inflight"
	// StrategyFastest takes two by chance, and of the two the one that
	// promises the earlier answer: by its average time to the first byte and
	// what it has in flight. One not heard of for a while is tried again.
	StrategyFastest Strategy = "fastest"
	// StrategyRoundRobin takes one after the other.
	StrategyRoundRobin Strategy = "round-robin"
)

// WaitMode says what a request to a sleeping workload meets.
type WaitMode string

const (
	// WaitAuto holds, and answers a navigation with the waiting page once
	// PageAfter has passed.
	WaitAuto WaitMode = "auto"
	// WaitHold always holds.
	WaitHold WaitMode = "hold"
	// WaitPage answers a navigation with the page at once, holds the rest.
	WaitPage WaitMode = "page"
)

// StopMode says how a workload is put to sleep.
type StopMode string

const (
	// StopStop ends it; its memory is given back.
	StopStop StopMode = "stop"
	// StopPause freezes it; it wakes faster and keeps its memory.
	StopPause StopMode = "pause"
	// StopThrottle leaves it running with next to no CPU; it wakes faster,
	// keeps its memory, and what it does by itself goes on slowly.
	StopThrottle StopMode = "throttle"
)

// Lives reports whether what sleeps so is still there, under the same name.
func (m StopMode) Lives() bool { return m == StopPause || m == StopThrottle }

// ReadyKind is the kind of proof that a replica answers.
type ReadyKind string

const (
	// ReadyAuto is ReadyTCP where the replica's own address is dialled, and
	// any HTTP answer where a forwarder stands in between and would accept
	// on the replica's behalf.
	ReadyAuto ReadyKind = "auto"
	// ReadyTCP takes an accepted connection for ready.
	ReadyTCP ReadyKind = "tcp"
	// ReadyHTTP takes a 2xx or 3xx answer to a GET of Readiness.Path.
	ReadyHTTP ReadyKind = "http"
	// ReadyDocker takes the engine's "healthy" for ready.
	ReadyDocker ReadyKind = "docker"
)

// Readiness is the proof asked for: a kind, and for ReadyHTTP a path.
type Readiness struct {
	Kind ReadyKind `json:"kind"`
	Path string    `json:"path,omitempty"`
}

// String gives the form that labels and the config file use.
func (r Readiness) String() string {
	if r.Kind == ReadyHTTP {
		return "http:" + r.Path
	}
	return string(r.Kind)
}

// ParseReadiness reads auto, tcp, docker or http:/path.
func ParseReadiness(s string) (Readiness, error) {
	switch kind := ReadyKind(s); kind {
	case ReadyAuto, ReadyTCP, ReadyDocker:
		return Readiness{Kind: kind}, nil
	}
	if path, ok := strings.CutPrefix(s, "http:"); ok && path != "" && path[0] == '/' {
		return Readiness{Kind: ReadyHTTP, Path: path}, nil
	}
	return Readiness{}, fmt.Errorf("%q is not a readiness proof: use auto, tcp, docker or http:/path", s)
}

// MaxName is the longest name in bytes: encoded for the wire it still fits
// the 255 bytes that a JetStream subject token may safely have.
const MaxName = 80

// ErrName is wrapped by every error of ValidName.
var ErrName = errors.New("not a workload name")

// ValidName reports, as an error that says what to change, a name that is
// empty, longer than MaxName, or not made of letters, digits, '.', '_' and
// '-', the first a letter or digit. These are the names that Docker gives to
// containers, so every container name passes.
func ValidName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: it is empty", ErrName)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: %.40q... has %d bytes, the limit is %d", ErrName, name, len(name), MaxName)
	}
	for i, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			return fmt.Errorf("%w: %q has %q at byte %d: use letters, digits, '.', '_' and '-', the first a letter or digit", ErrName, name, c, i+1)
		}
	}
	return nil
}

// A Problem is something wrong with the description of a workload, which takes
// out that workload alone and is shown until it is mended; or, by its Kind,
// something else that an operator should know of.
type Problem struct {
	// Kind is empty for a description, or ProblemNATS.
	Kind ProblemKind `json:"kind,omitempty"`
	// Workload is its name, or empty where even that is unknown.
	Workload string `json:"workload,omitempty"`
	// Place is file:line:col, the container's name, or a part of NATS.
	Place string `json:"place"`
	// Message says what is wrong, Fix what to do about it.
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// A ProblemKind says what a Problem is about.
type ProblemKind string

// ProblemNATS is what the NATS server told of its own streams.
const ProblemNATS ProblemKind = "nats"

// Error makes a Problem an error of one line.
func (p Problem) Error() string {
	s := p.Place + ": " + p.Message
	if p.Fix != "" {
		s += " (" + p.Fix + ")"
	}
	return s
}

// A Catalog is one snapshot of every known workload and of what is wrong
// with the others. It is never changed; a new one replaces it.
type Catalog struct {
	// Workloads are sorted by name, and valid.
	Workloads []Workload `json:"workloads"`
	Problems  []Problem  `json:"problems,omitempty"`
}
