package router

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/rouse-dev/rouse/router/lean"
)

// A front is the listener of an http.Server that gets only a part of the
// connections: the lean server keeps those on which all is plain, and hands
// over the others.
type front struct {
	net.Listener
	lean     *lean.Server
	handed   chan net.Conn
	failed   chan error // of accepting
	stopping atomic.Bool
	once     sync.Once
	closed   chan struct{}
}

func newFront(s *Server, l net.Listener, base context.Context) *front {
	f := &front{Listener: l, handed: make(chan net.Conn), failed: make(chan error), closed: make(chan struct{})}
	f.lean = &lean.Server{
		Handler:     s.router,
		Context:     func(conn net.Conn) context.Context { return withConn(base, conn) },
		HandOver:    f.handOver,
		HeadTimeout: s.http.ReadHeaderTimeout,
		IdleTimeout: s.http.IdleTimeout,
		Logger:      s.router.logger,
	}
	return f
}

// run accepts until the listener is closed.
func (f *front) run() {
	for {
		conn, err := f.Listener.Accept()
		if err == nil {
			go f.lean.Serve(conn)
			continue
		}
		if f.stopping.Load() {
			return
		}
		select {
		case f.failed <- err: // net/http knows which ones pass, and waits before it comes again
		case <-f.closed:
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// Accept gives the next connection that is handed over.
func (f *front) Accept() (net.Conn, error) {
	select {
	case conn := <-f.handed:
		return conn, nil
	case err := <-f.failed:
		return nil, err
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *front) handOver(conn net.Conn) {
	select {
	case f.handed <- conn:
	case <-f.closed:
		_ = conn.Close() // nobody is there who could be told
	}
}

// stop accepts no more; what is handed over still is. It may be called again.
func (f *front) stop() error {
	if f.stopping.Swap(true) {
		return nil
	}
	return f.Listener.Close()
}

// Close ends the handing over too.
func (f *front) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.stop()
}
