package coldstart_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// A fakeRouse has one workload, "hello", which starts in no time.
type fakeRouse struct {
	mu     sync.Mutex
	phase  string
	wakes  []map[string]any
	sleeps int
	warm   bool // answers as if the workload had been awake
	busy   int  // so many sleeps are refused
}

func (f *fakeRouse) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /api/v1/workloads/hello":
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "hello", "phase": f.phase})
	case "POST /api/v1/workloads/hello/sleep":
		f.sleeps++
		if f.busy--; f.busy >= 0 {
			http.Error(w, "in use", http.StatusConflict)
			return
		}
		f.phase = "asleep"
	case "GET /api/v1/wakes":
		_ = json.NewEncoder(w).Encode(map[string]any{"wakes": f.wakes})
	default:
		f.answer(w)
	}
}

func (f *fakeRouse) answer(w http.ResponseWriter) {
	now := time.Now()
	f.phase = "ready"
	f.wakes = append([]map[string]any{{
		"id": fmt.Sprint("w", len(f.wakes)), "requested_at": now, "received_at": now, "start_at": now,
		"started_at": now, "ready_at": now.Add(time.Microsecond), "opened_at": now.Add(time.Microsecond),
	}}, f.wakes...)
	if !f.warm {
		w.Header().Set("Rouse-Cold-Start", "?1")
	}
	w.Header().Set("Server-Timing", "start;dur=1.5")
	_ = json.NewEncoder(w).Encode(mimic.Report{ListeningAt: now.UnixNano()})
}

func config(t *testing.T, f *fakeRouse) coldstart.Config {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return coldstart.Config{
		URL: server.URL, Host: "hello.localhost", Admin: server.URL, Workload: "hello",
		Trials: 3, Timeout: 10 * time.Second,
	}
}

// An order notes which side of a pair came when.
type order struct {
	rouse *fakeRouse
	log   []int // how many wakes there had been at each bare start
	fails bool
}

func (o *order) Start(context.Context) (coldstart.BareTimes, error) {
	o.rouse.mu.Lock()
	defer o.rouse.mu.Unlock()
	o.log = append(o.log, len(o.rouse.wakes))
	if o.fails {
		return coldstart.BareTimes{}, errors.New("no such container")
	}
	now := time.Now()
	return coldstart.BareTimes{Start: now, Started: now, Listening: now, Answered: now.Add(time.Second)}, nil
}

func (o *order) Stop(context.Context) error { return nil }

func TestEachTrialIsAColdStartAndEverySecondPairIsTurned(t *testing.T) {
	rouse := &fakeRouse{phase: "ready", busy: 1}
	cfg := config(t, rouse)
	bare := &order{rouse: rouse}
	var progress bytes.Buffer
	cfg.Bare, cfg.Progress = bare, &progress
	summary, err := coldstart.Run(t.Context(), cfg)
	require.NoError(t, err)
	assert.Zero(t, summary.Failed)
	assert.Equal(t, 3, summary.Added.N)
	assert.Positive(t, summary.Added.Min)
	assert.InDelta(t, 1000, summary.Bare.Total.Median, 1e-6)
	assert.Equal(t, []int{1, 1, 3}, bare.log)
	assert.Equal(t, "start", summary.Timing[0].Name)
	assert.Equal(t, 3, bytes.Count(progress.Bytes(), []byte("\n")))
	ids := map[string]bool{}
	for _, trial := range summary.Trials {
		ids[trial.Wake] = true
	}
	assert.Len(t, ids, 3, "each trial has a wake of its own")
}

func TestATrialThatWasNoColdStartIsNoNumber(t *testing.T) {
	cfg := config(t, &fakeRouse{phase: "asleep", warm: true})
	summary, err := coldstart.Run(t.Context(), cfg)
	require.ErrorContains(t, err, "not a cold start")
	assert.Equal(t, 3, summary.Failed)
	assert.Zero(t, summary.Added.N)
}

func TestAFailedBareStartFailsItsTrial(t *testing.T) {
	rouse := &fakeRouse{phase: "asleep"}
	cfg := config(t, rouse)
	cfg.Trials, cfg.Bare = 1, &order{rouse: rouse, fails: true}
	_, err := coldstart.Run(t.Context(), cfg)
	assert.ErrorContains(t, err, "bare start: no such container")
}

func TestCanceledItReturnsAtOnce(t *testing.T) {
	cfg := config(t, &fakeRouse{phase: "ready", busy: 1 << 30})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := coldstart.Run(ctx, cfg)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestSaveWritesForMachineAndPerson(t *testing.T) {
	summary, err := coldstart.Run(t.Context(), config(t, &fakeRouse{phase: "asleep"}))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, summary.Save(dir))
	back, err := coldstart.Read(dir)
	require.NoError(t, err)
	assert.Equal(t, summary.Added, back.Added)
	assert.Len(t, back.Trials, 3)
	again := back.Recomputed()
	assert.Equal(t, back.Total, again.Total, "a true summary is what its trials come to")
	assert.Equal(t, back.Phases, again.Phases)
	assert.InDelta(t, back.Added.Median, again.Added.Median, 1e-6)
	back.Trials[1].Total += 100
	assert.InDelta(t, back.Trials[1].Total-back.Trials[1].App, back.Recomputed().Added.Max, 1e-9)
	_, err = coldstart.Read(t.TempDir())
	assert.ErrorContains(t, err, "no such file")
	text, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "added by Rouse")
	assert.Contains(t, string(text), "3 measured, 0 failed")
}

// engine answers as the Engine API does, for one container at this address.
func engine(t *testing.T, calls *[]string, address string) *coldstart.Engine {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "docker.sock")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls = append(*calls, r.Method+" "+r.URL.String())
		switch r.URL.Path {
		case "/version":
			_, _ = fmt.Fprint(w, `{"Version":"28.5.2"}`)
		case "/containers/bare/json":
			_, _ = fmt.Fprintf(w, `{"Config":{"ExposedPorts":{%q:{}}},"NetworkSettings":{"Networks":{"host":{"IPAddress":""}}}}`, address)
		case "/containers/bare/start", "/containers/bare/stop":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.Error(w, `{"message":"No such container"}`, http.StatusNotFound)
		}
	}))
	listenUnix(t, server, socket)
	engine, err := coldstart.NewEngine("unix://" + socket)
	require.NoError(t, err)
	return engine
}

func listenUnix(t *testing.T, server *httptest.Server, socket string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	require.NoError(t, err)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
}

// sample runs a workload and gives its port.
func sample(t *testing.T) string {
	t.Helper()
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	_, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	return port
}

func TestContainerIsStartedInspectedAndStopped(t *testing.T) {
	var calls []string
	docker := engine(t, &calls, sample(t)+"/tcp")
	version, err := docker.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "28.5.2", version)

	container := coldstart.Container{Engine: docker, Name: "bare"}
	times, err := container.Start(t.Context())
	require.NoError(t, err)
	require.NoError(t, container.Stop(t.Context()))
	assert.True(t, times.Started.After(times.Start) && times.Answered.After(times.Started))
	assert.Equal(t, []string{
		"GET /version", "POST /containers/bare/start", "GET /containers/bare/json", "POST /containers/bare/stop?t=10",
	}, calls)

	_, err = coldstart.Container{Engine: docker, Name: "gone"}.Start(t.Context())
	assert.ErrorContains(t, err, "No such container")
	_, err = coldstart.NewEngine("tcp://10.0.0.1:2375")
	assert.Error(t, err)
}

func TestProcessIsStartedOnAFreePortAndStopped(t *testing.T) {
	if os.Getenv("COLDSTART_TEST_MIMIC") != "" {
		address := "127.0.0.1:" + os.Getenv("COLDSTART_TEST_MIMIC")
		_ = mimic.New(mimic.Config{Listen: address}).Run(context.Background())
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	process := coldstart.NewProcess([]string{"env", "COLDSTART_TEST_MIMIC={port}", program, "-test.run=" + t.Name()})
	for range 2 {
		times, err := process.Start(t.Context())
		require.NoError(t, err)
		assert.True(t, times.Listening.After(times.Start) && times.Answered.After(times.Listening))
		require.NoError(t, process.Stop(t.Context()))
	}
	require.NoError(t, process.Stop(t.Context()), "stopped twice is stopped")
	_, err = coldstart.NewProcess([]string{"/no/such/program"}).Start(t.Context())
	assert.ErrorContains(t, err, "/no/such/program")
}

func TestThisMachineKnowsWhatItIs(t *testing.T) {
	machine := coldstart.ThisMachine()
	assert.Positive(t, machine.Cores)
	assert.NotEmpty(t, machine.Go)
}

func ExampleStat() {
	summary := coldstart.Summary{Added: coldstart.Stat{N: 20, Min: 2, Median: 2.5, P95: 4, Max: 4.5}}
	fmt.Printf("%.1f ms, p95 %.1f\n", summary.Added.Median, summary.Added.P95)
	// Output: 2.5 ms, p95 4.0
}
