// Package mimic is the sample workload: an HTTP server that behaves, on
// demand, as workloads do in the field: slow to start, slow to answer, big,
// streaming, crashing, deaf to SIGTERM.
//
// It owns one listener and what is served on it. It knows nothing of Rouse,
// reads no file and no environment, and writes no file but its ledger;
// whoever runs it passes a Config.
//
// Guarantees: nothing listens before the start-up time is over; the moment
// of listen() is in every [Report], so that a cold start can be measured
// from outside; when Run's context ends, the listener closes, what is in
// flight is answered, and Run returns nil.
package mimic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// awaitEvery is how often Config.Await is looked for.
const awaitEvery = 10 * time.Millisecond

// Config says how the workload behaves. The zero value listens on a free
// port of every address at once and answers at once.
type Config struct {
	// Listen is the TCP address, host:port; port 0 takes a free one.
	Listen string
	// Startup passes before the listener opens.
	Startup time.Duration
	// Await is a file that has to exist before the listener opens, which is
	// noticed within awaitEvery; empty is none.
	Await string
	// Delay passes before each answer, but not before those of /healthz.
	Delay time.Duration
	// Size is the least length of the body of a report, in bytes.
	Size int
	// ExitAfter ends Run with ExitCode this long after its begin, which may
	// be before it listens. 0 is never.
	ExitAfter time.Duration
	ExitCode  int
	// HealthzStatus is what /healthz answers; 0 is 200.
	HealthzStatus int
	// Deaf makes it go on when Run's context ends.
	Deaf bool
	// Ledger is a file that is told of each start, of each request's begin and
	// end, and of being asked to end, before any of it has an effect. It is
	// appended to and can be shared by all copies of a workload; the lines are
	// "start <Unix ns>", "begin <X-Request-ID>", "end <X-Request-ID>" and
	// "term <requests in flight>". Health checks are not in it. Empty is none.
	Ledger string
	// Logger is told about start and end; nil is silence.
	Logger *slog.Logger
}

// ExitError is how Run ends when the workload is to exit with a code of its
// own: told so by Config, or by a request to /crash. What was in flight has
// been cut off.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("exit with code %d", e.Code) }

// Server is one workload. Its methods are safe for concurrent use.
type Server struct {
	cfg      Config
	hostname string
	handler  http.Handler

	ledger      *ledger // written before listening closes
	served      atomic.Int64
	inFlight    atomic.Int64
	healthzCode atomic.Int64
	canceled    atomic.Int64
	listeningAt atomic.Int64 // Unix ns; 0 before
	address     string       // written before listening closes
	listening   chan struct{}

	eaten    memory
	crash    chan struct{} // holds one: the first /crash
	draining chan struct{} // closed when the drain begins
	sockets  sync.WaitGroup
}

// New makes a workload that does nothing before Run.
func New(cfg Config) *Server {
	s := &Server{
		cfg:       cfg,
		hostname:  hostname(),
		listening: make(chan struct{}),
		crash:     make(chan struct{}, 1),
		draining:  make(chan struct{}),
	}
	if s.cfg.Logger == nil {
		s.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s.healthzCode.Store(int64(cmp.Or(cfg.HealthzStatus, http.StatusOK)))
	s.handler = s.routes()
	return s
}

// Handler serves the workload's answers without its listener.
func (s *Server) Handler() http.Handler { return s.handler }

// Listening is closed once the listener is open.
func (s *Server) Listening() <-chan struct{} { return s.listening }

// Address is where it listens, host:port. It blocks until Listening.
func (s *Server) Address() string {
	<-s.listening
	return s.address
}

// Run starts up, listens and serves until ctx ends, then drains: it returns
// nil when the last request in flight has been answered, however long that
// takes. Ended while still starting up, it returns ctx's cause at once. It
// returns an [*ExitError] when the workload is to exit by itself. Run is
// called once.
func (s *Server) Run(ctx context.Context) (err error) {
	if s.ledger, err = openLedger(s.cfg.Ledger); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.ledger.close()) }()
	noted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { s.told(); close(noted) })
	defer func() {
		switch {
		case !stop():
			<-noted
		case ctx.Err() != nil: // seen here before the context came to say it
			s.told()
		}
	}()
	heard := ctx
	if s.cfg.Deaf {
		heard = context.WithoutCancel(ctx)
	}
	return s.run(heard)
}

func (s *Server) run(ctx context.Context) error {
	exit := after(s.cfg.ExitAfter)
	s.rehearse()
	if err := s.startUp(ctx, exit); err != nil {
		return err
	}
	listener, err := s.listen(ctx)
	if err != nil {
		return err
	}
	server := s.server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	s.cfg.Logger.Info("listening", "address", s.address, "startup", s.cfg.Startup)

	select {
	case <-ctx.Done():
		return s.drain(ctx, server, served)
	case <-exit:
		err = s.exit()
	case <-s.crash:
		err = &ExitError{Code: 1}
	case err = <-served:
		return fmt.Errorf("serve on %s: %w", s.address, err)
	}
	err = errors.Join(err, server.Close())
	<-served
	return err
}

// startUp blocks until it is time to listen.
func (s *Server) startUp(ctx context.Context, exit <-chan time.Time) error {
	for wait := s.cfg.Startup; ; wait = awaitEvery {
		select {
		case <-time.After(wait):
			if s.cfg.Await == "" || exists(s.cfg.Await) {
				return nil
			}
		case <-exit:
			return s.exit()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// after is time.After, but never for 0.
func after(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d)
}

func (s *Server) exit() error {
	s.cfg.Logger.Error("exiting as told", "code", s.cfg.ExitCode)
	return &ExitError{Code: s.cfg.ExitCode}
}

func (s *Server) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", s.cfg.Listen, err)
	}
	s.listeningAt.Store(time.Now().UnixNano())
	s.address = listener.Addr().String()
	close(s.listening)
	return listener, nil
}

func (s *Server) server() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           s.handler,
		Protocols:         protocols,
		ReadHeaderTimeout: 30 * time.Second,
	}
	server.RegisterOnShutdown(func() { close(s.draining) })
	return server
}

// drain waits for what is in flight without a bound: to cut it off is the
// business of whoever sent the signal.
func (s *Server) drain(ctx context.Context, server *http.Server, served <-chan error) error {
	s.cfg.Logger.Info("draining", "served", s.served.Load())
	if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	<-served
	s.sockets.Wait()
	return nil
}
