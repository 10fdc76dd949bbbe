package dockertest

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// A Wire stands between a part under test and the engine, and can be cut. It
// is safe for concurrent use.
type Wire struct {
	path   string
	engine string

	mu    sync.Mutex
	down  bool              // guarded by mu
	conns map[net.Conn]bool // open ones; guarded by mu
	wg    sync.WaitGroup
}

// NewWire lays one to the engine that Client talks to; it is gone when the
// test ends.
func NewWire(t testing.TB) *Wire {
	t.Helper()
	engine, ok := strings.CutPrefix(Client(t).DaemonHost(), "unix://")
	if !ok {
		t.Skip("the engine is not on a socket of this machine")
	}
	dir, err := os.MkdirTemp("", "wire") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{path: filepath.Join(dir, "s"), engine: engine, conns: map[net.Conn]bool{}}
	l, err := net.Listen("unix", w.path)
	if err != nil {
		t.Fatal(err)
	}
	w.wg.Go(func() { w.accept(l) })
	t.Cleanup(func() {
		_ = l.Close()
		w.Cut()
		w.wg.Wait()
		_ = os.RemoveAll(dir)
	})
	return w
}

// Host is the address to use in the engine's place.
func (w *Wire) Host() string { return "unix://" + w.path }

func (w *Wire) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		w.wg.Go(func() { w.join(conn) })
	}
}

func (w *Wire) join(conn net.Conn) {
	engine, err := net.Dial("unix", w.engine)
	if err != nil || !w.keep(conn, engine) {
		_ = conn.Close()
		return
	}
	w.wg.Go(func() {
		_, _ = io.Copy(engine, conn)
		w.drop(conn, engine)
	})
	_, _ = io.Copy(conn, engine)
	w.drop(conn, engine)
}

func (w *Wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		if w.down {
			_ = c.Close()
		}
		w.conns[c] = true
	}
	return !w.down
}

func (w *Wire) drop(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(w.conns, c)
	}
}

// Cut ends all connections and lets no new one through until Mend.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.conns {
		_ = c.Close()
	}
}

// Mend lets connections through again.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}
