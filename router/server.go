package router

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 3 * time.Minute
	maxHeaderBytes = 64 << 10
	defaultGrace   = 30 * time.Second
	// farewell is how long connections that are idle when the server stops are
	// kept open: a client may be about to use one, and whoever does hears with
	// the answer that it ends. Long enough for a proxy with some traffic.
	farewell = time.Second
	// cutGrace is how long what was cut off gets to notice.
	cutGrace = 2 * time.Second
)

// errCutOff is the cause that ends the context of what goes on beyond the
// grace.
var errCutOff = errors.New("the server stops")

// ServerConfig says how one listener is served. The zero value is cleartext.
type ServerConfig struct {
	// TLS has the certificates; then HTTP/1.1 and HTTP/2 are negotiated by
	// ALPN. nil is cleartext: HTTP/1.1 and h2c on one port.
	TLS *tls.Config
	// Grace is how long requests, held or running, and tunnels may go on once
	// the server is told to stop; 0 is 30 s.
	Grace time.Duration
	// HeaderTimeout is how long a client may take to send the head of a
	// request; 0 is 10 s.
	HeaderTimeout time.Duration
	// Connections bounds those that are open at once, ConnectionsPerClient
	// those of one client, which trusted proxies are not; 0 is no bound.
	Connections, ConnectionsPerClient int
	// Lean has plain requests over HTTP/1.1 in cleartext served without
	// net/http, see package lean. It changes nothing but what they cost.
	Lean bool
}

// A Server serves one listener with a Router. It is used once.
type Server struct {
	router *Router
	http   http.Server
	cfg    ServerConfig
	grace  time.Duration
	conns  atomic.Int64 // open ones of net/http, without those that became tunnels
	front  *front       // nil: net/http serves them all
}

// NewServer makes the server of one listener; it does not listen itself.
func NewServer(cfg ServerConfig, r *Router) *Server {
	s := &Server{router: r, cfg: cfg, grace: cfg.Grace}
	if s.grace <= 0 {
		s.grace = defaultGrace
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(cfg.TLS != nil)
	protocols.SetUnencryptedHTTP2(cfg.TLS == nil)
	s.http = http.Server{
		Handler:           r,
		TLSConfig:         cfg.TLS.Clone(), // net/http adds to it
		Protocols:         protocols,
		ReadHeaderTimeout: cmp.Or(cfg.HeaderTimeout, headerTimeout),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(r.logger.Handler(), slog.LevelWarn),
		ConnContext:       withConn,
		ConnState:         s.count,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerStream:     heldStream,
			MaxReceiveBufferPerConnection: 1 << 20,
			SendPingTimeout:               time.Minute, // a client that vanished holds no place for ever
		},
	}
	return s
}

// count keeps count of the connections.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Add(-1)
	}
}

// Serve accepts from l until ctx ends, and then stops with grace: it accepts
// no more, ends each connection with its next answer, lets requests and tunnels
// end, and cuts off what is left when the grace is over. It closes l, returns when every request has ended, and gives
// nil after a stop that was asked for. The activator must go on until then,
// for held requests are to be released.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	ended := make(chan error, 1)
	d := newDoor(l, s.cfg, s.router)
	watching, leave := context.WithCancel(base)
	var watched sync.WaitGroup
	watched.Go(func() { d.watch(watching) })
	defer watched.Wait()
	defer leave()
	var in net.Listener = d
	closeIn := d.Close
	if s.cfg.Lean && s.cfg.TLS == nil {
		s.front = newFront(s, d, base)
		in, closeIn = s.front, s.front.stop
		defer func() { _ = s.front.Close() }() // it is closed already, but after an error
		watched.Go(s.front.run)
		watched.Go(func() { s.front.lean.Watch(watching) })
	}
	go func() { ended <- s.accept(in) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.router.leaving.Store(true)
	_ = closeIn() // accepting ends with an error of its own, and no other could tell more
	s.sayFarewell()
	s.stop(context.WithoutCancel(ctx), func() { cut(errCutOff) })
	<-ended
	return nil
}

// open is how many connections there are that are no tunnels.
func (s *Server) open() int64 {
	n := s.conns.Load()
	if s.front != nil {
		n += int64(s.front.lean.Open())
	}
	return n
}

// sayFarewell leaves idle connections open for a moment.
func (s *Server) sayFarewell() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(min(farewell, s.grace)); s.open() > 0 && time.Now().Before(end); {
		<-tick.C
	}
}

func (s *Server) accept(l net.Listener) error {
	if s.http.TLSConfig != nil {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

// stop lets what runs end, for as long as the grace allows; cut ends the
// context of all that is left, upon which a held request is told to try again
// and a tunnel closed.
func (s *Server) stop(ctx context.Context, cut func()) {
	grace, cancel := context.WithTimeout(ctx, s.grace)
	defer cancel()
	if s.front != nil {
		s.front.lean.Leave()
	}
	err := s.http.Shutdown(grace) // knows nothing of tunnels, nor of what is served without it
	left := s.router.idle(grace)
	if s.front != nil && !s.front.lean.Wait(grace) {
		err = grace.Err()
	}
	if err == nil && left == 0 {
		return
	}
	s.router.logger.Warn("requests are cut off at the end of the grace", "requests", left)
	cut()
	if s.front != nil {
		s.front.lean.Abort()
		defer s.front.lean.Close()
	}
	last, cancelLast := context.WithTimeout(ctx, cutGrace)
	defer cancelLast()
	s.router.idle(last)
	if s.front != nil {
		s.front.lean.Wait(last)
	}
	_ = s.http.Close() // what it could say has been said by Shutdown
}
