//go:build linux

// Package openloop sends a load whose arrivals are fixed in advance, and
// tells of each request how late its answer came, counted from the moment at
// which it was due. A server that stalls for a second is charged with that
// second by every request that was due in it, whether or not a connection
// was free to send it.
//
// It owns the connections and the clock of a run. It knows nothing of Rouse;
// the requests, what their answers must be, and the schedule come by Config.
//
// How: one thread does everything for HTTP/1.1: it waits by epoll_pwait2
// with a timer slack of a nanosecond, sends what is due, and reads what has
// come. A Go timer is up to 1.1 ms late (the runtime waits by whole
// milliseconds); this is some 20 µs late, and allocates nothing for a
// request. Over h2c, goroutines take the arrivals in turn.
//
// Guarantees: never more than Conns connections, and none is dialled while
// one is free; what is due and finds all of them busy waits in the order of
// the schedule, in no memory but the schedule's; each request that was due
// ends as exactly one [Outcome] or is counted as unsent. A run takes constant
// memory, however long.
package openloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// Protocol is how requests are sent.
type Protocol int

// The protocols. The zero value keeps connections alive.
const (
	KeepAlive Protocol = iota // HTTP/1.1, connections made before the start
	Fresh                     // HTTP/1.1, a new connection for each request
	H2C                       // HTTP/2 without TLS
)

// String is the name of the protocol.
func (p Protocol) String() string { return [...]string{"keep-alive", "fresh", "h2c"}[p] }

// Conns is how many connections there are unless told otherwise.
func (p Protocol) Conns() int {
	if p == H2C {
		return 8
	}
	return 128
}

// Config says what to send. Address, Schedule and Targets must be set.
type Config struct {
	// Address is where to connect, host:port; the first of several
	// addresses of a name is taken.
	Address  string
	Protocol Protocol
	Schedule schedule.Schedule
	// Targets are what schedule.Arrival.Target is an index into.
	Targets []Target
	// Conns bounds the connections; 0 is 128, or 8 of H2C.
	Conns int
	// Streams bounds the requests at once on one connection of H2C; 0 is 16.
	Streams int
	// Warmup is how long after the start requests are sent and checked, but
	// not recorded.
	Warmup time.Duration
	// Timeout bounds a request from its send; 0 is 30 s.
	Timeout time.Duration
	// Drain bounds the time after the schedule's end in which what is left is
	// still sent and awaited; 0 is Timeout.
	Drain time.Duration
	// Spin is how long before an arrival the thread stops sleeping and looks
	// at the clock instead: it takes a core the more of its time, and sends
	// the more sharply. 0 never spins. H2C does not.
	Spin time.Duration
	// Upstream is served by the same thread, if it is set; not over H2C.
	Upstream *Upstream
	// Every is called about once a second, and at the end, from a goroutine
	// of its own, with what came since the last call; it may keep nothing of
	// it. Run returns after the last call has. nil is nobody.
	Every func(Interval)
	// WarmedUp is called when the warm-up is over, from a goroutine of its
	// own; Run returns after it has. nil is nobody.
	WarmedUp func()
}

// Target is a request and what its answer must be.
type Target struct {
	Request http1.Request
	Expect  Expect
}

// target is a Target made ready.
type target struct {
	template *http1.Template
	expect   Expect
	noBody   bool // its answers have none
}

// Run sends the load and returns when each request has ended, or when ctx
// has: then with the results so far, marked as aborted, and no error. An
// error is a load that could not begin; a server that cannot be reached is
// a result.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.filled()
	address, targets, err := cfg.prepare(ctx)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	b := newBook(cfg, &stop)
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: its timer slack is nobody else's
		if cfg.Protocol == H2C {
			ended <- runStreams(ctx, b, address.String(), targets)
			return
		}
		ended <- runLoop(b, address, targets)
	}()
	if err := <-ended; err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return b.close(), nil
}

func (c Config) filled() Config {
	c.Conns = cmp.Or(c.Conns, c.Protocol.Conns())
	c.Streams = cmp.Or(c.Streams, 16)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.Drain = cmp.Or(c.Drain, c.Timeout)
	return c
}

func (c Config) prepare(ctx context.Context) (*net.TCPAddr, []target, error) {
	switch {
	case c.Schedule == nil:
		return nil, nil, errors.New("no schedule")
	case len(c.Targets) == 0:
		return nil, nil, errors.New("no target")
	case c.Upstream != nil && c.Protocol == H2C:
		return nil, nil, errors.New("an upstream has no place beside h2c")
	case c.Conns < 0 || c.Conns > 1<<16 || c.Streams < 0:
		return nil, nil, fmt.Errorf("%d connections, %d streams: out of range", c.Conns, c.Streams)
	}
	address, err := resolve(ctx, c.Address)
	if err != nil {
		return nil, nil, err
	}
	targets := make([]target, len(c.Targets))
	for i, t := range c.Targets {
		t.Request.Close = c.Protocol == Fresh
		template, err := http1.NewTemplate(t.Request)
		if err == nil {
			err = t.Expect.check(template)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("target %d: %w", i, err)
		}
		targets[i] = target{template, t.Expect, template.Request.Method == "HEAD"}
	}
	return address, targets, nil
}

func resolve(ctx context.Context, address string) (*net.TCPAddr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	return &net.TCPAddr{IP: ips[0].IP, Port: number, Zone: ips[0].Zone}, err
}

// firstID makes the ids of two runs differ.
func firstID() uint64 { return rand.Uint64() << 36 }
