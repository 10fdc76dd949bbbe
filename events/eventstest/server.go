// Package eventstest gives tests a real NATS server in process, and the means
// to hurt it: restart, lose the store, cut and mute connections.
//
// It knows package events only to hand out connected Buses. Everything it
// starts ends with the test.
package eventstest

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/natsd"
)

// patience bounds what a test waits for; on a busy machine a start takes
// longer than any assertion should depend on.
const patience = 20 * time.Second

// A Server is a NATS server that can be restarted: clients in the process and
// over TCP reconnect to it. It is safe for concurrent use.
type Server struct {
	t    testing.TB
	opts natsd.Options

	mu    sync.Mutex
	inner *natsd.Server // nil while stopped; guarded by mu
}

// Start starts a server that listens on a free port of the loopback and ends
// with the test. With users it admits those alone, and Buses of its own.
func Start(t testing.TB, users ...natsd.User) *Server {
	t.Helper()
	return begin(t, natsd.Options{Users: users})
}

// StartSynced is Start with every write on the disk before it counts.
func StartSynced(t testing.TB) *Server {
	t.Helper()
	return begin(t, natsd.Options{SyncAlways: true})
}

func begin(t testing.TB, opts natsd.Options) *Server {
	t.Helper()
	opts.StoreDir, opts.Listen = storeDir(t), "127.0.0.1:0"
	s := &Server{t: t, opts: opts}
	s.Resume()
	s.opts.Listen = s.inner.Addr().String() // a restart keeps the port
	t.Cleanup(s.Stop)
	return s
}

// URL is where it listens, also while it is stopped.
func (s *Server) URL() string { return "nats://" + s.opts.Listen }

// Addr is the host:port of the same.
func (s *Server) Addr() string { return s.opts.Listen }

// InProcessConn connects through memory to whatever runs now.
func (s *Server) InProcessConn() (net.Conn, error) {
	inner := s.current()
	if inner == nil {
		return nil, errors.New("server is stopped")
	}
	return inner.InProcessConn()
}

// Raw is a TCP connection on which the handshake is done, to send what no
// client library would. What it receives is thrown away; it ends with the
// test.
func (s *Server) Raw() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err == nil {
		_, err = io.WriteString(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"protocol\":1}\r\n")
	}
	if err != nil {
		s.t.Fatalf("connect by hand: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, conn)
	}()
	s.t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return conn
}

// Credentials admit this process.
func (s *Server) Credentials() (user, password string) {
	inner := s.current()
	if inner == nil {
		return "", ""
	}
	return inner.Credentials()
}

func (s *Server) current() *natsd.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner
}

// Stop ends the server and keeps its store. It may be called again.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner != nil {
		s.inner.Shutdown()
		s.inner = nil
	}
}

// Resume starts a stopped server on its old port and store.
func (s *Server) Resume() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	inner, err := natsd.Start(ctx, s.opts)
	if err != nil {
		s.t.Fatalf("start nats: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inner = inner
}

// Restart ends the server and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Resume()
}

// Wipe is a restart that loses the store.
func (s *Server) Wipe() {
	s.t.Helper()
	s.Stop()
	if err := os.RemoveAll(s.opts.StoreDir); err != nil {
		s.t.Fatalf("wipe nats store: %v", err)
	}
	s.Resume()
}

// Bus is a connection through memory, with everything provisioned, that ends
// with the test.
func (s *Server) Bus(name string) *events.Bus {
	s.t.Helper()
	return s.Connect(events.Config{Server: s, Name: name})
}

// TCP is Bus over TCP.
func (s *Server) TCP(name string) *events.Bus {
	s.t.Helper()
	return s.Connect(events.Config{URL: s.URL(), Name: name})
}

// Connect connects as asked, provisions, and ends with the test.
func (s *Server) Connect(cfg events.Config) *events.Bus {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	bus, err := events.Connect(ctx, cfg)
	if err != nil {
		s.t.Fatalf("connect: %v", err)
	}
	s.t.Cleanup(bus.Close)
	if err := bus.Provision(ctx); err != nil {
		s.t.Fatalf("provision: %v", err)
	}
	return bus
}
