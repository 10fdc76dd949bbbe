// Package activator holds the requests of sleeping workloads: one gate each.
//
// An open gate hands out leases, each the right to send one request to one
// replica, without a lock and without an allocation. A closed one holds
// requests, first come first served and bounded in number and bytes, asks for
// the workload to be woken for as long as anybody waits, and lets them go at a
// pace that a fresh replica can bear.
//
// It knows neither HTTP nor the wire nor any platform: news of a workload
// comes in by Observe and Drain, asks go out by a Waker, and what it has to
// say for itself is read by Activity and Views.
//
// Guarantees: a held request has exactly one end, and gives its place back
// exactly once; every end is told apart by its error; a drain that answered
// zero has nothing in flight and nothing can slip in after it; in flight is
// counted per replica and survives every change of state. DESIGN.md beside
// this file gives the invariants and why they hold.
package activator

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/workload"
)

// A Waker carries asks to whoever can start a workload.
type Waker interface {
	// Wake hands the ask over; nil means that one is safely on its way, be it
	// this or an earlier one. Before it returns, it should have called Observe
	// with what the store says now: a gate that was closed on a suspicion
	// opens again when Wake has returned and brought nothing newer. It blocks
	// for half a second at most, and is called under no lock, by a goroutine
	// for each workload that is asked for.
	Wake(ctx context.Context, w workload.Wake) error
}

// Config is what an Activator is made of. The zero value works.
type Config struct {
	// Gateway names this gateway in its asks and reports.
	Gateway string
	// QueueRequests bounds the held requests of each workload that does not
	// bring a bound of its own; 0 means 1000.
	QueueRequests int
	// QueueBytes bounds what the held requests of one workload may cost in
	// bytes, see Ask.Bytes; 0 means 64 MiB.
	QueueBytes int64
	// TotalQueueBytes is the same over all workloads; 0 means 16 times
	// QueueBytes.
	TotalQueueBytes int64
	// WakesPerMinute bounds the cold starts that requests may ask for, for
	// each workload on its own; 0 means no bound.
	WakesPerMinute int
	// ReleaseConcurrency is how many held requests may be let go without an
	// answer yet, once a gate opens; 0 starts with a few and grows while
	// answers come.
	ReleaseConcurrency int
	// WakeRepeat is about how often an ask is repeated while somebody waits;
	// 0 means 1 s.
	WakeRepeat time.Duration
	// Logger may be nil: then nothing is logged.
	Logger *slog.Logger
	// Registerer may be nil: then no metrics are registered.
	Registerer prometheus.Registerer
	// Released, which may be nil, is called with the record of a cold start,
	// its OpenedAt and ReleasedAt set, once the last request that this gateway
	// held for it is no longer held. Calls come one after the other from
	// Run's goroutines and hold up nothing but each other.
	Released func(workload.Wake)
	// Rand gives a number from 0 up to 1 for what is left to chance about the
	// named workload, its choice of replicas apart; nil takes any. A
	// simulation gives the same ones again. It is called under locks.
	Rand func(workload string) float64
}

func (c Config) withDefaults() Config {
	if c.QueueRequests <= 0 {
		c.QueueRequests = 1000
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = 64 << 20
	}
	if c.TotalQueueBytes <= 0 {
		c.TotalQueueBytes = 16 * c.QueueBytes
	}
	if c.WakeRepeat <= 0 {
		c.WakeRepeat = time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Released == nil {
		c.Released = func(workload.Wake) {}
	}
	if c.Rand == nil {
		c.Rand = func(string) float64 { return rand.Float64() }
	}
	return c
}

// An Activator has the gates of one gateway. All its methods are safe for
// concurrent use and, Run apart, none of them blocks.
type Activator struct {
	cfg   Config
	waker Waker
	clock clock

	gates    atomic.Pointer[map[string]*Gate] // name -> gate of the current catalog
	heldCost atomic.Int64                     // bytes held over all gates
	changed  chan struct{}
	asks     *mailbox[*Gate]         // gates that want to be tended
	records  *mailbox[workload.Wake] // cold starts to be reported

	mu      sync.Mutex                // guards the rest; taken before any gate's lock
	known   map[string]*Gate          // name -> gate, also the removed ones still in use
	early   map[string]workload.State // name -> state that came before its workload
	stopped bool
}

// New makes an Activator without any gate. Nothing is asked for and nothing
// reported until Run runs.
func New(cfg Config, waker Waker) *Activator {
	a := &Activator{
		cfg:     cfg.withDefaults(),
		waker:   waker,
		clock:   clock{time.Now()},
		changed: make(chan struct{}, 1),
		asks:    newMailbox[*Gate](),
		records: newMailbox[workload.Wake](),
		known:   map[string]*Gate{},
		early:   map[string]workload.State{},
	}
	a.gates.Store(&map[string]*Gate{})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(collector{a})
	}
	return a
}

// Run asks for workloads and reports cold starts until ctx ends; then every
// held request ends with ErrShutdown, and nothing is held any more. Gates that
// are open stay so: the last requests of a gateway are its listener's to stop.
// It returns nil once all of its goroutines have ended.
func (a *Activator) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { a.report(ctx) })
	for {
		select {
		case <-ctx.Done():
			a.shut()
			return nil
		case <-a.asks.ready:
			for _, g := range a.asks.take() {
				tasks.Go(func() { g.tend(ctx) })
			}
		}
	}
}

// shut ends every wait for good.
func (a *Activator) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stopped = true
	for _, g := range a.known {
		g.stop(ErrShutdown)
	}
}

// report hands over the records of cold starts, and the last ones at the end.
func (a *Activator) report(ctx context.Context) {
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-a.records.ready:
		}
		for _, w := range a.records.take() {
			a.cfg.Released(w)
		}
	}
}

// Gate gives the gate of a workload, nil when the catalog has none of that
// name. It takes no lock. A gate stays the same for as long as the catalog
// has its workload.
func (a *Activator) Gate(name string) *Gate { return (*a.gates.Load())[name] }

// A clock counts from a fixed moment: one reading of the monotonic clock is
// half the price of time.Now, and fits an atomic.
type clock struct{ base time.Time }

// now is never 0, which stands for "never" wherever a reading is kept.
func (c clock) now() int64 { return int64(time.Since(c.base)) + 1 }

func (c clock) at(t time.Time) int64 { return int64(t.Sub(c.base)) + 1 }

func (c clock) time(reading int64) time.Time { return c.base.Add(time.Duration(reading - 1)) }
