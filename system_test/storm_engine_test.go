package system_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// A callCounter stands before the engine and counts the calls that start
// containers.
type callCounter struct {
	address string // for docker.host
	engine  *httputil.ReverseProxy

	mu    sync.Mutex
	now   int // guarded by mu, as are the rest
	most  int
	calls int
}

// countCalls puts a counter before the machine's engine.
func countCalls(t *testing.T) *callCounter {
	t.Helper()
	target, err := url.Parse(dockertest.Client(t).DaemonHost())
	require.NoError(t, err)
	if target.Scheme != "unix" {
		t.Skipf("the engine is at %s, not at a socket of this machine", target)
	}
	dir, err := os.MkdirTemp("", "rouse-engine-") // t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "sock")
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	c := &callCounter{address: "unix://" + socket, engine: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		FlushInterval: -1, // events come one by one
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", target.Path)
		}},
	}}
	server := &http.Server{Handler: c, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return c
}

func (c *callCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && path.Base(r.URL.Path) == "start" {
		c.begin()
		defer c.end()
	}
	c.engine.ServeHTTP(w, r)
}

func (c *callCounter) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.now++
	c.most = max(c.most, c.now)
}

func (c *callCounter) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now--
}

func (c *callCounter) counts() (most, calls int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most, c.calls
}
