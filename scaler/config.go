package scaler

import (
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/tracing"
)

// Config has the numbers and names of one scaler.
type Config struct {
	// Node is the name of its reach; workloads of other nodes are ignored.
	Node string
	// Owner names this scaler in leases. It must differ from that of every
	// other scaler alive. A restarted one that keeps its name goes on with
	// its own leases at once; empty makes a name that is never used again.
	Owner string
	// StartsInParallel bounds the Runtime.Start calls under way; 0 takes two
	// for each core.
	StartsInParallel int
	// Lease is how long a wake or a sleep may go without news of its owner
	// before another scaler takes it over; 0 takes 5 s.
	Lease time.Duration
	// LostGateway is how long a gateway that went silent without a goodbye
	// keeps everything awake, since it may have been cut off and be serving
	// still; 0 takes 10 min.
	LostGateway time.Duration
	// Reconcile is how often everything is compared without a cause; 0 takes
	// 30 s.
	Reconcile time.Duration
	// Rand gives a number from 0 up to 1 for what is left to chance about the
	// named workload or runtime; nil takes any. A simulation gives the same
	// ones again.
	Rand func(name string) float64
	// Tracer takes the spans of cold starts; nil makes none.
	Tracer tracing.Tracer
	// Logger is slog.Default when nil.
	Logger *slog.Logger
	// Registerer gets the metrics; nil leaves them unregistered.
	Registerer prometheus.Registerer
}

func (c Config) withDefaults() Config {
	if c.Owner == "" {
		c.Owner = c.Node + "-" + rand.Text()[:8]
	}
	if c.StartsInParallel <= 0 {
		c.StartsInParallel = 2 * runtime.NumCPU()
	}
	if c.Lease <= 0 {
		c.Lease = 5 * time.Second
	}
	if c.LostGateway <= 0 {
		c.LostGateway = 10 * time.Minute
	}
	if c.Reconcile <= 0 {
		c.Reconcile = 30 * time.Second
	}
	if c.Rand == nil {
		c.Rand = func(string) float64 { return mathrand.Float64() }
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

var (
	// ErrUnknown is wrapped where no workload of this node has the name.
	ErrUnknown = errors.New("no such workload on this node")
	// ErrInUse is wrapped by Sleep where requests were still in flight when
	// its time was over, or another workload that is awake needs this one.
	ErrInUse = errors.New("it is in use")
	// ErrUnsure is wrapped by Sleep where nobody can say whether it is in
	// use: the events are away, or no gateway has been heard for long enough.
	ErrUnsure = errors.New("cannot tell whether it is in use")
	// ErrClosed is wrapped where the scaler ended first, or the workload was
	// removed.
	ErrClosed = errors.New("the scaler no longer looks after it")
)
