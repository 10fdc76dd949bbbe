package router_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/tracing/otlp/otlptest"
	"github.com/rouse-dev/rouse/workload"
)

const (
	plainRequest = "GET /some/path?q=1 HTTP/1.1\r\nHost: wiki.test\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n\r\n"
	plainAnswer  = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\nServer: x\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n{\"hello\":\"all\"}"
)

// cannedUpstream answers every request head with plainAnswer and allocates
// nothing while it does.
func cannedUpstream(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(conn)
		}
	}()
	return listener.Addr().String()
}

func answerAll(conn net.Conn) {
	defer conn.Close()
	answer, buf, have := []byte(plainAnswer), make([]byte, 4096), 0
	for {
		n, err := conn.Read(buf[have:])
		if err != nil {
			return
		}
		if have += n; bytes.HasSuffix(buf[:have], []byte("\r\n\r\n")) {
			if _, err := conn.Write(answer); err != nil {
				return
			}
			have = 0
		}
	}
}

// plainClient sends plainRequest over one connection, and allocates nothing
// while it does.
type plainClient struct {
	conn    net.Conn
	request []byte
	buf     []byte
}

func newPlainClient(t testing.TB, addr string) *plainClient {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return &plainClient{conn, []byte(plainRequest), make([]byte, 4096)}
}

func (c *plainClient) roundTrip() error {
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	for have := 0; ; {
		n, err := c.conn.Read(c.buf[have:])
		if err != nil {
			return err
		}
		if have += n; bytes.HasSuffix(c.buf[:have], []byte("}")) {
			return nil
		}
	}
}

// The whole chain, from the client's socket to the workload's and back, both
// ends of which allocate nothing: net/http's server, router, activator and
// transport together, with access log and metrics on. What the server alone
// costs, which answers the same itself, is told beside it.
func TestWarmRequestAllocatesLittle(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, cannedUpstream(t))
	chain := allocations(t, rig.addr)
	front := allocations(t, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{\"hello\":\"all\"}")
	}))
	t.Logf("%.1f allocations per request in the whole chain, %.1f of them net/http's server", chain, front)
	bound := 70.0
	if raceDetector() {
		bound = 80 // its sync.Pool drops a part of what is given back
	}
	if *leanFlag {
		bound -= 68 // but for what happens besides
	}
	if chain >= bound {
		t.Errorf("%.1f allocations per warm request in the whole chain, the bound is %.0f", chain, bound)
	}
}

// Tracing that is off costs no allocation, and a trace that is not kept none
// either: neither one that begins here nor one that came so.
func TestTracingAllocatesNothingForWhatIsNotKept(t *testing.T) {
	measure := func(tracer tracing.Tracer, request string) float64 {
		rig := newRig(t, rigConfig{router: router.Config{Tracer: tracer}}, wiki())
		rig.ready("wiki", 1, cannedUpstream(t))
		return allocationsOf(t, rig.addr, request)
	}
	none, all := exporter(t, otlptest.Start(t), 0), exporter(t, otlptest.Start(t), 1)
	joined := func(flags string) string {
		return strings.Replace(plainRequest, "\r\n\r\n", "\r\nTraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-"+flags+"\r\n\r\n", 1)
	}
	off, offJoined := measure(nil, plainRequest), measure(nil, joined("00"))
	left, leftJoined := measure(none, plainRequest), measure(all, joined("00"))
	kept := measure(all, plainRequest)
	t.Logf("allocations per request: %.2f without tracing, %.2f where the trace is not kept; %.2f and %.2f in a trace of the client's; %.2f with its spans",
		off, left, offJoined, leftJoined, kept)
	slack := 0.5 // for what happens besides
	if raceDetector() {
		slack = 3 // its sync.Pool drops a part of what is given back
	}
	assert.InDelta(t, off, left, slack)
	assert.InDelta(t, offJoined, leftJoined, slack)
	if *leanFlag && !raceDetector() {
		assert.Less(t, off, slack)
	}
}

func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// allocations gives those of this process per request to addr.
func allocations(t *testing.T, addr string) float64 {
	t.Helper()
	return allocationsOf(t, addr, plainRequest)
}

func allocationsOf(t *testing.T, addr, request string) float64 {
	t.Helper()
	c := newPlainClient(t, addr)
	c.request = []byte(request)
	const warmUp, requests = 200, 2000
	var before, after runtime.MemStats
	for i := range warmUp + requests {
		if i == warmUp {
			runtime.ReadMemStats(&before)
		}
		if err := c.roundTrip(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / requests
}

func BenchmarkWarmRequest(b *testing.B) {
	c := otlptest.Start(b)
	for name, tracer := range map[string]tracing.Tracer{"untraced": nil, "not kept": exporter(b, c, 0), "kept": exporter(b, c, 1)} {
		b.Run(name, func(b *testing.B) {
			rig := newRig(b, rigConfig{router: router.Config{Tracer: tracer}}, wiki())
			rig.ready("wiki", 1, cannedUpstream(b))
			c := newPlainClient(b, rig.addr)
			b.ReportAllocs()
			for b.Loop() {
				if err := c.roundTrip(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What a held request keeps in memory: everything of it, the client's own
// connection in this process included.
func TestHeldRequestsAreSmall(t *testing.T) {
	if testing.Short() {
		t.Skip("opens a thousand connections")
	}
	const held = 1000
	rig := newRig(t, rigConfig{}, wiki())
	request := []byte(plainRequest)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range held {
		conn, err := net.Dial("tcp", rig.addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write(request)
		require.NoError(t, err)
	}
	rig.queued("wiki", held)
	goroutines := runtime.NumGoroutine()
	runtime.GC()
	runtime.ReadMemStats(&after)
	heap := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
	t.Logf("%d bytes and %.2f goroutines per held request", heap/held, float64(goroutines)/held)
	if heap/held > 28<<10 {
		t.Errorf("%d bytes per held request", heap/held)
	}
	if goroutines > 2*held+100 { // net/http's own two: the handler, and the watch for the client
		t.Errorf("%d goroutines for %d held requests", goroutines, held)
	}
}

func Example() {
	act := activator.New(activator.Config{}, wakerFunc(func(context.Context, workload.Wake) error { return nil }))
	r, err := router.New(router.Config{}, act)
	if err != nil {
		panic(err)
	}
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello from ", r.Host)
	}))
	defer app.Close()
	workloads := []workload.Workload{{Name: "app", Hosts: []string{"app.example.com"}, Path: "/"}}
	act.Update(workloads)
	r.Update(workloads)
	act.Observe(workload.State{Workload: "app", Phase: workload.Ready, Generation: 1, Revision: 1,
		Replicas: []workload.Replica{{ID: "1", Address: app.Listener.Addr().String()}}})

	front := httptest.NewServer(r)
	defer front.Close()
	req, _ := http.NewRequest(http.MethodGet, front.URL, nil)
	req.Host = "app.example.com"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, string(text))
	// Output: 200 hello from app.example.com
}

type wakerFunc func(context.Context, workload.Wake) error

func (f wakerFunc) Wake(ctx context.Context, w workload.Wake) error { return f(ctx, w) }
