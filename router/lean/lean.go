// Package lean serves and forwards plain HTTP/1.1 at the price of its system
// calls: about half of what net/http's server and transport cost together, or less.
//
// A Server reads the requests of a connection as long as each is one that
// every server reads in the same way, and has an http.Handler answer them,
// through a Writer that may forward a request too. At the first sign of
// anything else it hands the connection over, with the bytes that it has read:
// it is net/http that judges what is odd, and so nothing is read in two ways.
//
// It decides nothing about a request: neither where it goes, nor what is in
// the head that goes out, nor who may send it. Those are the handler's.
//
// Guarantees: an answer goes to the connection of its request and to no other;
// a request of which a server may have seen a byte is sent again only if its
// caller allows it; a connection to a server serves another request only when
// the answer before has ended exactly where its head said; an answer that
// breaks off closes its client's connection; an idle connection holds no
// buffer. A plain request allocates nothing.
package lean

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A Server serves the connections that it is given. Its fields are set before
// the first; its methods are safe for concurrent use.
type Server struct {
	// Handler answers the requests; its ResponseWriter is a *Writer. The
	// strings of the request are good until it returns, see Writer.Keep.
	Handler http.Handler
	// Context gives that of the requests of a connection. It should end only
	// with the server: a client that leaves is told of by Writer.Left.
	Context func(net.Conn) context.Context
	// HandOver takes a connection on which something else is said than plain
	// HTTP/1.1. It must not block for long.
	HandOver func(net.Conn)
	// HeadTimeout is how long a client may take for a head, or a new one to
	// begin; IdleTimeout how long it may rest between two requests.
	HeadTimeout, IdleTimeout time.Duration
	// Logger takes panics of the handler.
	Logger *slog.Logger

	leaving atomic.Bool
	dates   dates
	watch   watch
	writers sync.Pool // of *Writer
	mu      sync.Mutex
	conns   map[*conn]struct{} // guarded by mu
}

// Serve serves one connection until it ends or is handed over.
func (s *Server) Serve(front net.Conn) {
	if c := s.enter(front); c != nil {
		c.serve()
	} else {
		s.HandOver(front)
	}
}

// enter takes a connection in; nil: it is none that can be served here.
func (s *Server) enter(front net.Conn) *conn {
	raw := socketOf(front)
	if raw == nil || front.RemoteAddr() == nil {
		return nil
	}
	c := &conn{Conn: front, server: s, raw: raw, fd: numberOf(raw), remote: front.RemoteAddr().String()}
	c.fill = c.readOnce
	// The one request whose context all others of the connection have.
	c.blank = *(&http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: c.remote}).WithContext(s.Context(front))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[*conn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return c
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// Open is how many connections are served.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Watch closes the connections that have been silent for too long, and finds
// the clients that leave while their answers are waited for, until ctx ends. It
// must run before the first connection is served.
func (s *Server) Watch(ctx context.Context) {
	var leaving sync.WaitGroup
	leaving.Go(func() { s.watch.run(ctx) })
	defer leaving.Wait()
	tick := time.NewTicker(min(s.HeadTimeout/4+time.Millisecond, time.Second))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			s.expire(func(_ bool, until time.Time) bool { return until.Before(now) })
		case <-ctx.Done():
			return
		}
	}
}

// Leave closes the connections that are idle now, and the others as soon as
// the request that they are at has been answered.
func (s *Server) Leave() {
	s.leaving.Store(true)
	s.expire(func(idle bool, _ time.Time) bool { return idle })
}

func (s *Server) expire(over func(idle bool, until time.Time) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.expire(over)
	}
}

// Wait blocks until every connection has ended; false: ctx has ended before.
func (s *Server) Wait(ctx context.Context) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for s.Open() > 0 {
		select {
		case <-ctx.Done():
			return s.Open() == 0
		case <-tick.C:
		}
	}
	return true
}

// Close closes every connection, whatever goes on over it.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close() // it has ended already
	}
}

// Abort breaks off the forwarding of every request under way: what is read
// from its server ends in an error.
func (s *Server) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.abort()
	}
}

// writer gives one with nothing in it.
func (s *Server) writer() *Writer {
	if w, _ := s.writers.Get().(*Writer); w != nil {
		return w
	}
	return newWriter()
}
