// Package probe tries whether a replica answers: by a connection, by any
// answer, or by a successful one, as its workload asks for.
//
// One call is one try; how long it may take and when to try again is the
// scaler's to decide. A try leaves nothing behind: its connection is closed in both
// directions, without a reset that could show as an error in the log of the
// workload.
//
// A forwarder (a published port) accepts in place of a replica that does not
// listen yet, so that through one a connection proves nothing: something has
// to come back, or, where only TCP can be expected, the connection has to
// last.
package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// linger is how long a connection through a forwarder has to stay open
	// to count: a forwarder that reaches nobody ends it at once.
	linger = 50 * time.Millisecond
	// drainMost and drainFor bound what is read of an answer before closing:
	// closing with unread data would reset the connection, but an answer
	// without an end must not make readiness late.
	drainMost = 64 << 10
	drainFor  = 5 * time.Millisecond
)

// A Prober tries replicas. The zero value is ready to use, and safe for
// concurrent use.
type Prober struct {
	dialer net.Dialer
}

// New makes a Prober.
func New() *Prober { return &Prober{dialer: net.Dialer{KeepAlive: -1}} }

// Probe returns nil if r answers in the way that w asks for before ctx ends.
// The error says what came instead.
func (p *Prober) Probe(ctx context.Context, w workload.Workload, r workload.Replica) error {
	conn, err := p.dialer.DialContext(ctx, "tcp", r.Address)
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := prove(conn, w, r); err != nil {
		return fmt.Errorf("probe %s: %w", r.Address, err)
	}
	return nil
}

func prove(conn net.Conn, w workload.Workload, r workload.Replica) error {
	switch {
	case w.Ready.Kind == workload.ReadyHTTP:
		return succeeds(conn, host(w, r), w.Ready.Path)
	case !r.Forwarded:
		return nil // somebody accepted
	case w.Ready.Kind == workload.ReadyTCP:
		return lasts(conn)
	}
	return answers(conn, host(w, r))
}

// host is the name that the workload expects to be asked for.
func host(w workload.Workload, r workload.Replica) string {
	for _, h := range w.Hosts {
		if !strings.HasPrefix(h, "*") {
			return h
		}
	}
	return r.Address
}

// answers asks for / and takes the first byte, whatever it says: a server of
// HTTP/2 alone answers in its own way.
func answers(conn net.Conn, host string) error {
	if err := ask(conn, host, "/"); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	drain(conn, conn)
	return nil
}

// lasts takes a connection for ready that stays open for a while, or on which
// the server speaks first.
func lasts(conn net.Conn) error {
	conn.SetReadDeadline(time.Now().Add(linger))
	_, err := io.ReadFull(conn, make([]byte, 1))
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("closed at once: %w", err)
}

func ask(conn net.Conn, host, path string) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: rouse-probe\r\nAccept: */*\r\nConnection: close\r\n\r\n", path, host)
	if _, err := conn.Write(b.Bytes()); err != nil {
		return fmt.Errorf("not asked: %w", err)
	}
	return nil
}

// drain reads what is left of an answer, from conn or a reader in front of it.
func drain(conn net.Conn, r io.Reader) {
	conn.SetReadDeadline(time.Now().Add(drainFor))
	_, _ = io.CopyN(io.Discard, r, drainMost)
}
