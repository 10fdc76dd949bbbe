package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

var leanFlag = flag.Bool("lean", true, "serve plain requests without net/http")

const patience = 20 * time.Second // how long a test waits for what must happen

// A rig is a router with a real activator and a real listener; the test is
// the scaler.
type rig struct {
	t      testing.TB
	act    *activator.Activator
	router *router.Router
	addr   string
	log    *lines
	said   *lines // by the router itself
	reg    *prometheus.Registry
	stop   context.CancelFunc // of the server
	served chan error

	revision atomic.Uint64
	mu       sync.Mutex
	wakes    []workload.Wake
	onWake   func(workload.Wake)
}

type rigConfig struct {
	router    router.Config
	server    router.ServerConfig
	activator activator.Config
}

func newRig(t testing.TB, cfg rigConfig, workloads ...workload.Workload) *rig {
	t.Helper()
	r := &rig{t: t, log: &lines{}, said: &lines{}, reg: prometheus.NewRegistry(), served: make(chan error, 1)}
	if cfg.activator.WakeRepeat == 0 {
		cfg.activator.WakeRepeat = 5 * time.Millisecond
	}
	r.act = activator.New(cfg.activator, r)
	cfg.router.AccessLog.To, cfg.router.Registerer = r.log, r.reg
	cfg.router.Logger = slog.New(slog.NewTextHandler(panicWatch{t, r.said}, nil))
	var err error
	r.router, err = router.New(cfg.router, r.act)
	require.NoError(t, err)
	r.act.Update(workloads)
	require.Empty(t, r.router.Update(workloads))
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	parts.Go(func() { _ = r.act.Run(ctx) })
	parts.Go(func() { _ = r.router.Run(ctx) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.addr = listener.Addr().String()
	serving, stop := context.WithCancel(context.Background())
	r.stop = stop
	if cfg.server.Grace == 0 {
		cfg.server.Grace = 100 * time.Millisecond
	}
	cfg.server.Lean = *leanFlag
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.served <- router.NewServer(cfg.server, r.router).Serve(serving, listener)
	}()
	t.Cleanup(func() { stop(); <-ended; cancel(); parts.Wait() })
	return r
}

// Wake makes the rig the activator's Waker.
func (r *rig) Wake(_ context.Context, w workload.Wake) error {
	r.mu.Lock()
	r.wakes = append(r.wakes, w)
	do := r.onWake
	r.mu.Unlock()
	if do != nil {
		do(w)
	}
	return nil
}

func (r *rig) whenWoken(do func(workload.Wake)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onWake = do
}

// woken waits for the first ask: it goes out beside the request.
func (r *rig) woken() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.wakeCount() > 0 }, 10*time.Second, time.Millisecond, "nothing was asked for")
}

func (r *rig) wakeCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wakes)
}

// observe tells the activator and the router of a state, as wire does.
func (r *rig) observe(s workload.State) {
	s.Revision = r.revision.Add(1)
	r.act.Observe(s)
	r.router.Observe(s)
}

// ready says that these addresses serve the workload; the replica IDs are
// name-generation-n.
func (r *rig) ready(name string, generation uint64, addresses ...string) {
	s := workload.State{Workload: name, Phase: workload.Ready, Generation: generation}
	for i, address := range addresses {
		s.Replicas = append(s.Replicas, workload.Replica{ID: replicaID(name, generation, i), Address: address})
	}
	r.observe(s)
}

func replicaID(name string, generation uint64, i int) string {
	return name + "-" + string(rune('0'+generation)) + "-" + string(rune('0'+i))
}

// get sends one GET; see do.
func (r *rig) get(host, path string, header ...string) *http.Response {
	r.t.Helper()
	return r.do(http.MethodGet, host, path, nil, header...)
}

// do sends one request over a connection of its own; header is names and
// values in turn.
func (r *rig) do(method, host, path string, body io.Reader, header ...string) *http.Response {
	r.t.Helper()
	res, err := client.Do(r.request(context.Background(), method, host, path, body, header...))
	require.NoError(r.t, err)
	return res
}

var client = &http.Client{
	Timeout:       patience,
	Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, ExpectContinueTimeout: patience},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func (r *rig) request(ctx context.Context, method, host, path string, body io.Reader, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.addr+path, body)
	require.NoError(r.t, err)
	req.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return req
}

// start sends a request from a goroutine of its own.
func (r *rig) start(method, host, path string, b io.Reader, header ...string) <-chan *http.Response {
	r.t.Helper()
	answer := make(chan *http.Response, 1)
	req := r.request(context.Background(), method, host, path, b, header...)
	go func() {
		defer close(answer)
		if res, err := client.Do(req); err == nil {
			answer <- res
		}
	}()
	return answer
}

// queued waits until that many requests are held for the workload.
func (r *rig) queued(name string, n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for _, v := range r.act.Views() {
			if v.Name == name {
				return v.Queued == n
			}
		}
		return false
	}, patience, time.Millisecond, "%d requests held", n)
}

// inFlight waits until that many requests are in flight.
func (r *rig) inFlight(name string, n int) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for _, v := range r.act.Views() {
			if v.Name == name {
				return v.InFlight == n
			}
		}
		return false
	}, patience, time.Millisecond, "%d requests in flight", n)
}

// entry waits for the access log's line that want describes.
func (r *rig) entry(want func(entry) bool) entry {
	r.t.Helper()
	var found entry
	require.Eventually(r.t, func() bool {
		for _, e := range r.log.entries(r.t) {
			if want(e) {
				found = e
				return true
			}
		}
		return false
	}, patience, 5*time.Millisecond, "line in the access log")
	return found
}

func (r *rig) entryOf(requestID string) entry {
	r.t.Helper()
	return r.entry(func(e entry) bool { return e.RequestID == requestID })
}

// counted gives rouse_requests_total.
func (r *rig) counted(workload, outcome string) float64 {
	return r.metric("rouse_requests_total", map[string]string{"workload": workload, "outcome": outcome})
}

// metric sums a counter's value, or a histogram's count, over matching labels.
func (r *rig) metric(name string, labels map[string]string) (sum float64) {
	r.t.Helper()
	families, err := r.reg.Gather()
	require.NoError(r.t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
	series:
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want != l.GetValue() {
					continue series
				}
			}
			sum += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// An entry is one line of the access log.
type entry struct {
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id"`
	TraceID   string    `json:"trace_id"`
	Client    string    `json:"client"`
	Method    string    `json:"method"`
	Host      string    `json:"host"`
	Path      string    `json:"path"`
	Status    int       `json:"status"`
	Bytes     int64     `json:"bytes"`
	Workload  string    `json:"workload"`
	Replica   string    `json:"replica"`
	Outcome   string    `json:"outcome"`
	Cold      bool      `json:"cold"`
	Total     float64   `json:"total_seconds"`
	Added     float64   `json:"added_seconds"`
	Queued    float64   `json:"queued_seconds"`
	Upstream  float64   `json:"upstream_seconds"`
}

// lines takes the access log.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *lines) entries(t testing.TB) []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []entry
	for line := range strings.Lines(l.buf.String()) {
		var e entry
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		all = append(all, e)
	}
	return all
}

// upstream starts a workload's replica that speaks HTTP/1.1 and h2c, and
// gives its address.
func upstream(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveUpstream(t, listener, handler)
}

func serveUpstream(t testing.TB, listener net.Listener, handler http.Handler) string {
	t.Helper()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, ErrorLog: log.New(panicWatch{t, &lines{}}, "", 0)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return listener.Addr().String()
}

// panicWatch is a log that fails the test when a server tells of a panic.
type panicWatch struct {
	t testing.TB
	*lines
}

func (p panicWatch) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("panic")) {
		p.t.Errorf("%s", line)
	}
	return p.lines.Write(line)
}

// nowhere is an address that refuses connections.
func nowhere(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

func wiki(change ...func(*workload.Workload)) workload.Workload {
	w := workload.Workload{Name: "wiki", Node: "n1", Hosts: []string{"wiki.test"}, Path: "/",
		HoldTimeout: patience, PageAfter: patience, Wait: workload.WaitAuto, Origin: "wiki (container)"}
	for _, c := range change {
		c(&w)
	}
	return w
}

func body(t testing.TB, res *http.Response) string {
	t.Helper()
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}
