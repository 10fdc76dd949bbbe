package system_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A unit starts gateways that are handed one socket, as systemd does it.
type unit struct {
	t       *testing.T
	dir     string
	nats    string
	traffic string // http://host:port
	socket  *os.File
}

func newUnit(t *testing.T, nats string) *unit {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	socket, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	require.NoError(t, l.Close(), "the copy goes on listening")
	t.Cleanup(func() { socket.Close() })
	return &unit{t: t, dir: t.TempDir(), nats: nats, traffic: "http://" + l.Addr().String(), socket: socket}
}

// start runs a gateway on the socket. A shell tells it its own PID, which
// nobody knows before.
func (u *unit) start(name string) *node {
	u.t.Helper()
	admin := freeAddr(u.t)
	file := filepath.Join(u.dir, name+".yaml")
	require.NoError(u.t, os.WriteFile(file, fmt.Appendf(nil, "listen: %q\nadmin: { listen: %q }\nnats: { url: %q }\ngateway: %s\n",
		strings.TrimPrefix(u.traffic, "http://"), admin, u.nats, name), 0o600))
	n := &node{t: u.t, role: name, traffic: u.traffic, admin: "http://" + admin, ended: make(chan struct{}), log: &logBuffer{}}
	n.cmd = exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh", binary(u.t, "rouse"), "gateway", "--config", file)
	n.cmd.Dir, n.cmd.ExtraFiles = u.dir, []*os.File{u.socket}
	n.cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 exitcode=66")
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	require.NoError(u.t, n.cmd.Start())
	go func() {
		_ = n.cmd.Wait()
		close(n.ended)
	}()
	u.t.Cleanup(func() {
		n.stop()
		assert.NotContains(u.t, n.log.String(), "DATA RACE")
	})
	n.waitReady()
	return n
}

// callers ask all the time, over new connections and over kept ones.
type callers struct {
	asked, failed atomic.Int64
	first         atomic.Pointer[error]
	over          chan struct{}
	all           sync.WaitGroup
}

func newCallers(t *testing.T, url, host string) *callers {
	c := &callers{over: make(chan struct{})}
	for i := range 8 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		c.all.Go(func() {
			defer transport.CloseIdleConnections()
			for {
				select {
				case <-c.over:
					return
				default:
				}
				c.asked.Add(1)
				if err := askOnce(transport, url, host); err != nil {
					c.failed.Add(1)
					c.first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	return c
}

func askOnce(transport *http.Transport, url, host string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/echo", strings.NewReader("hello"))
	if err != nil {
		return err
	}
	req.Host = host
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || string(b) != "hello") {
		err = errors.New(res.Status)
	}
	return err
}

// more waits until that many more have been asked.
func (c *callers) more(t *testing.T, n int64) {
	t.Helper()
	from := c.asked.Load()
	eventually(t, "more is asked", func() bool { return c.asked.Load() >= from+n })
}

// Gateways that share a socket take over from each other under load, and even
// one after the other: what comes in between waits in the socket.
func TestGatewaysOnOneSocketRestartWithoutAFailedRequest(t *testing.T) {
	t.Parallel()
	nats := freeAddr(t)
	dir := t.TempDir()
	start(t, plan{role: "nats", dir: dir, config: fmt.Sprintf("nats: { listen: %q }\n", nats)})
	start(t, plan{role: "scaler", dir: t.TempDir(), config: fmt.Sprintf("nats: { url: %q }\n", "nats://"+nats) + mimics(t, "hello")})
	u := newUnit(t, "nats://"+nats)
	first := u.start("first")
	c := newCallers(t, u.traffic, "hello.test")
	c.more(t, 50)

	second := u.start("second")
	c.more(t, 20)
	first.stop()
	c.more(t, 50)
	second.stop() // nobody is there now
	third := u.start("third")
	c.more(t, 50)

	close(c.over)
	c.all.Wait()
	if err := c.first.Load(); err != nil {
		t.Error(*err)
	}
	assert.Zero(t, c.failed.Load(), "of %d requests", c.asked.Load())
	t.Logf("%d requests, %d failed", c.asked.Load(), c.failed.Load())
	third.stop()
}

func TestASocketThatNobodyServesIsAnError(t *testing.T) {
	u := newUnit(t, "nats://127.0.0.1:1")
	file := filepath.Join(u.dir, "rouse.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "listen: %q\nadmin: { listen: %q }\nnats: { url: nats://127.0.0.1:1 }\n", freeAddr(t), freeAddr(t)), 0o600))
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"`, "sh", binary(t, "rouse"), "gateway", "--config", file)
	cmd.ExtraFiles = []*os.File{u.socket}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	assert.Equal(t, 3, exit.ExitCode())
	assert.Contains(t, string(out), "is none of the addresses to listen on")

	cmd = exec.Command(binary(t, "rouse"), "version")
	cmd.Env = append(os.Environ(), "LISTEN_PID=1", "LISTEN_FDS=1")
	require.NoError(t, cmd.Run(), "what is meant for another process is left alone")
}
