// Package system_test drives whole Rouse nodes as their users meet them: the
// real program (built with the race detector), a real NATS server, real
// containers and processes, real requests. Every node is a process of its
// own, so that it can be killed like one.
package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait for something that must happen. It only has to
// be longer than a noisy machine may take; nothing is measured by it.
const patience = 60 * time.Second

// built is the folder of binaries; empty until a test needs them.
var built string

// binaries builds rouse (race-enabled, but for full storms) and loadtest once
// per test run, and returns their folder.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "rouse-system-test-")
	if err != nil {
		return "", err
	}
	built = dir
	for _, args := range [][]string{
		{"build", fmt.Sprintf("-race=%t", !*stormsFull), "-o", filepath.Join(dir, "rouse"), "../cmd/rouse"},
		{"build", "-o", filepath.Join(dir, "loadtest"), "../cmd/loadtest"},
	} {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return dir, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	if plan := os.Getenv(probeEnv); plan != "" {
		os.Exit(probeMain(plan))
	}
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built)
	}
	os.Exit(code)
}

func binary(t *testing.T, name string) string {
	t.Helper()
	dir, err := binaries()
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// A node is one running rouse process.
type node struct {
	t       *testing.T
	role    string
	traffic string // http://host:port, empty for roles without
	admin   string
	cmd     *exec.Cmd
	ended   chan struct{}
	log     *logBuffer
}

// A plan is what a node is started with.
type plan struct {
	role string // up, gateway, scaler, nats
	dir  string // store and config; kept over restarts by the caller
	// config is YAML without listen and admin, which start adds.
	config string
	env    []string
	args   []string // behind the role
	// program is another build of rouse; empty is the race-enabled one.
	program string
	// listen is where requests come in; empty is any port that is free.
	listen string
}

// start runs a node and waits until it says it is ready. It is ended with the
// test, and the test fails if the race detector had something to say.
func start(t *testing.T, p plan) *node {
	t.Helper()
	n := launch(t, p)
	n.waitReady()
	return n
}

// launch is start without the wait.
func launch(t *testing.T, p plan) *node {
	t.Helper()
	n := &node{t: t, role: p.role, ended: make(chan struct{}), log: &logBuffer{}}
	adminAddr := freeAddr(t)
	n.admin = "http://" + adminAddr
	config := fmt.Sprintf("admin: { listen: %q }\n", adminAddr)
	if p.role == "up" || p.role == "gateway" {
		addr := p.listen
		if addr == "" {
			addr = freeAddr(t)
		}
		n.traffic = "http://" + addr
		config += fmt.Sprintf("listen: %q\n", addr)
	}
	file := filepath.Join(p.dir, p.role+"-"+portOf(adminAddr)+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(config+p.config), 0o600))

	program := p.program
	if program == "" {
		program = binary(t, "rouse")
	}
	n.cmd = exec.Command(program, append([]string{p.role, "--config", file}, p.args...)...)
	n.cmd.Dir = p.dir // where ./data is
	n.cmd.Env = append(os.Environ(), p.env...)
	n.cmd.Env = append(n.cmd.Env, "GORACE=halt_on_error=1 exitcode=66")
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	require.NoError(t, n.cmd.Start())
	go func() {
		_ = n.cmd.Wait()
		close(n.ended)
	}()
	t.Cleanup(func() {
		n.stop()
		if log := n.log.String(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Errorf("%s: race or panic:\n%s", n.role, log)
		}
		if t.Failed() {
			t.Logf("--- log of %s ---\n%s", n.role, n.log.tail(200))
		}
	})
	return n
}

func (n *node) waitReady() {
	n.t.Helper()
	eventually(n.t, n.role+" is ready", func() bool {
		select {
		case <-n.ended:
			n.t.Fatalf("%s ended before it was ready:\n%s", n.role, n.log.tail(50))
		default:
		}
		resp, err := client.Get(n.admin + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// stop ends the node cleanly and waits for it; a node that has ended is left
// as it is.
func (n *node) stop() {
	n.end(syscall.SIGTERM)
}

// kill ends the node as a crash would.
func (n *node) kill() {
	n.end(syscall.SIGKILL)
}

func (n *node) end(sig syscall.Signal) {
	n.t.Helper()
	_ = n.cmd.Process.Signal(sig)
	select {
	case <-n.ended:
	case <-time.After(patience):
		_ = n.cmd.Process.Kill()
		n.t.Errorf("%s did not end within %s of %s", n.role, patience, sig)
		<-n.ended
	}
}

// client is for requests of the tests: no limit but the context's.
var client = &http.Client{
	Transport: &http.Transport{
		MaxIdleConnsPerHost: 2000,
		DialContext:         (&net.Dialer{Timeout: 20 * time.Second}).DialContext,
		DisableCompression:  true,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// An answer is a response with its body read.
type answer struct {
	status int
	header http.Header
	body   string
	took   time.Duration
	err    error
}

// get asks the node for a path of a host.
func (n *node) get(host, path string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return n.do(ctx, http.MethodGet, host, path, nil)
}

func (n *node) do(ctx context.Context, method, host, path string, body io.Reader) answer {
	began := time.Now()
	resp, err := n.open(ctx, method, host, path, body)
	if err != nil {
		return answer{err: err, took: time.Since(began)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b), time.Since(began), err}
}

// open is do for a body that is read by the caller.
func (n *node) open(ctx context.Context, method, host, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, n.traffic+path, body)
	if err != nil {
		return nil, err
	}
	req.Host = host
	return client.Do(req)
}

// A view is what the admin API says of a workload.
type view struct {
	Name     string `json:"name"`
	Phase    string `json:"phase"`
	Reason   any    `json:"reason"`
	Replicas []struct {
		ID      string `json:"id"`
		Address string `json:"address"`
	} `json:"replicas"`
	Queued     int    `json:"queued"`
	InFlight   int    `json:"in_flight"`
	ColdStarts uint64 `json:"cold_starts"`
	Generation uint64 `json:"generation"`
}

func (n *node) view(name string) (view, error) {
	var v view
	resp, err := client.Get(n.admin + "/api/v1/workloads/" + name)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return v, fmt.Errorf("status %d", resp.StatusCode)
	}
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

// waitPhase waits until the node reports the phase, and returns the view.
func (n *node) waitPhase(name, phase string) view {
	n.t.Helper()
	var last view
	eventually(n.t, name+" is "+phase, func() bool {
		v, err := n.view(name)
		last = v
		return err == nil && v.Phase == phase
	})
	return last
}

// eventually waits for what must come true, looking often.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// freeAddr is an address to listen at, now and after a restart: its port is
// none that the system gives to connections that go out.
func freeAddr(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		defer l.Close()
		return l.Addr().String()
	}
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// logBuffer keeps what a node wrote; safe for concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logBuffer) tail(lines int) string {
	all := strings.Split(strings.TrimRight(l.String(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
