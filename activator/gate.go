package activator

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// An Ask is what Acquire wants to know of a request. The zero value is one
// that wakes, is held for as long as the workload says, and costs little.
type Ask struct {
	// Hold bounds the wait; 0 or less takes the workload's HoldTimeout.
	Hold time.Duration
	// Bytes is what the request keeps in memory while it is held: its head
	// and what has been read of its body. At least 4 KiB are charged.
	Bytes int64
	// NoWake is a request that neither wakes the workload nor keeps it awake.
	// While it is in flight it is waited for by a drain like any other.
	NoWake bool
	// NoHold asks for the workload, but does not wait: ErrHoldTimeout at once.
	NoHold bool
	// Traceparent is the request's W3C trace context.
	Traceparent string
	// Prefer is the Key of the lease of an earlier request of the same client:
	// if that replica still serves, it is chosen; else, or when empty, any.
	Prefer string
	// Refused is the ID of the replica that just refused this request's
	// connection, whose lease has been released: another is chosen. Should
	// there be none, the request is held, before all others, until newer news
	// of the workload comes, or the replica is due for another try.
	Refused string

	keep time.Duration // of Await; 0 for what gets a lease
}

// quiet reports whether what is in flight for it is no use of the workload.
func (a *Ask) quiet() bool { return a.NoWake || a.keep > 0 }

// charge is what holding the request costs; 0 when it is not to be held.
func (a Ask) charge() int64 {
	if a.NoHold {
		return 0
	}
	return max(a.Bytes, minCharge)
}

// A Gate is where the requests of one workload pass or wait. Its methods are
// safe for concurrent use.
type Gate struct {
	name      string
	activator *Activator
	snapshot  atomic.Pointer[snapshot]
	turn      atomic.Uint32 // of StrategyRoundRobin
	strategy  atomic.Pointer[workload.Strategy]
	quiet     atomic.Bool   // unused when last reported: the next use is news
	nudge     chan struct{} // ends the pause of whoever tends the gate
	rejected  [numRejections]atomic.Uint64

	mu      sync.Mutex // guards what follows
	spec    workload.Workload
	limit   *rate.Limiter // of cold starts; nil: none
	rules   protocol.Gate // what of state decides, and what keeps the gate shut
	state   workload.State
	targets []target
	tallies map[string]*tally // replica ID -> tally
	version uint64            // of state and targets

	queue   queue
	epoch   uint64   // openings so far
	passing bool     // requests pass, or are being let go
	opening *opening // while those that were held are being let go
	asking  *asking  // since the first request met the gate closed
	tending bool     // a goroutine is at work on asking, or about to be
	refusal *refusal // closed because every replica refused
	trial   bool     // about to open to replicas that refused before
	over    error    // why nothing is held any more; nil while it is

	_        [64]byte     // keeps what every request writes off the lines that it reads
	lastUsed atomic.Int64 // clock reading of the last end of a counted request; 0: never

	_         [64]byte
	admitted  atomic.Int64 // clock reading of when Await last let somebody go; 0: never
	keptUntil atomic.Int64 // clock reading; 0: never
}

func newGate(a *Activator, w workload.Workload) *Gate {
	g := &Gate{
		name:      w.Name,
		activator: a,
		nudge:     make(chan struct{}, 1),
		spec:      w,
		state:     workload.State{Workload: w.Name},
		tallies:   map[string]*tally{},
	}
	if n := a.cfg.WakesPerMinute; n > 0 {
		g.limit = rate.NewLimiter(rate.Every(time.Minute/time.Duration(n)), n)
	}
	g.strategy.Store(&w.Strategy)
	g.quiet.Store(true)
	g.snapshot.Store(&snapshot{state: g.state})
	return g
}

// Name is the workload's name.
func (g *Gate) Name() string { return g.name }

// State is the last news of the workload; it must not be changed. It takes no
// lock.
func (g *Gate) State() workload.State { return g.snapshot.Load().state }

// Acquire gives a lease on a replica. At an open gate it returns at once,
// without a lock and without an allocation. At a closed one it asks for the
// workload and blocks until the request's turn, ask.Hold or the end of ctx,
// and the error is one of this package's. A lease must be released.
func (g *Gate) Acquire(ctx context.Context, ask Ask) (Lease, error) {
	if lease, ok := g.Pass(ask); ok {
		return lease, nil
	}
	return g.enter(ctx, &ask)
}

// Pass is Acquire for one who would do something first that is for those alone
// who may have to wait: false, where Acquire has to look closer. It keeps
// nothing of the ask.
func (g *Gate) Pass(ask Ask) (Lease, bool) {
	if ask.Refused == "" {
		if t := g.pass(weightOf(ask.NoWake), ask.Prefer); t != nil {
			return g.lease(t, ask.NoWake), true
		}
	}
	return Lease{}, false
}

// pass is the warm path: nil when the gate is not open to all. The request is
// counted before the snapshot is looked at for the second time, and a gate is
// closed before its count is taken: so either the closing is seen here and
// the count undone, or the request is seen there.
func (g *Gate) pass(weight uint64, preferred string) *target {
	for {
		s := g.snapshot.Load()
		if !s.open {
			return nil
		}
		t := g.choose(s.targets, preferred)
		t.enter(weight)
		if g.snapshot.Load() == s {
			return t
		}
		t.leave(weight)
	}
}

// lease wraps a request that is in flight already; quiet says that it is no
// use of the workload.
func (g *Gate) lease(t *target, quiet bool) Lease {
	if !quiet {
		g.stir()
	}
	l := Lease{gate: g, target: t, weight: weightOf(quiet)}
	if *g.strategy.Load() == workload.StrategyFastest {
		l.begun = g.activator.clock.now()
	}
	return l
}

func (g *Gate) log() *slog.Logger {
	return g.activator.cfg.Logger.With("workload", g.name)
}
