package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func at0(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

func readyEvent(id string) workload.Event {
	return workload.Event{Workload: "wiki", Kind: workload.EventReleased, At: at0(1000), Generation: 4, Actor: "gw-1", Wake: &workload.Wake{
		ID: id, Workload: "wiki", Trigger: workload.TriggerRequest, Gateway: "gw-1", Generation: 4,
		RequestedAt: at0(0), ReceivedAt: at0(20), StartAt: at0(20), StartedAt: at0(500), ReadyAt: at0(900), OpenedAt: at0(901), ReleasedAt: at0(1000),
	}}
}

func failedEvent(id string) workload.Event {
	return workload.Event{Workload: "shop", Kind: workload.EventFailed, At: at0(400), Generation: 2,
		Reason: workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Log: []string{"connecting", "\x1b[2Jgave up"}},
		Wake:   &workload.Wake{ID: id, Workload: "shop", Trigger: workload.TriggerAPI, RequestedAt: at0(0), ReceivedAt: at0(100), StartAt: at0(100), StartedAt: at0(200)}}
}

func TestExplainDrawsOneTimeAxis(t *testing.T) {
	s := &standIn{History: api.NewHistory(0, 0), workloads: []api.Workload{wiki()}}
	rouse := cli(t, s)
	s.Add(readyEvent("w1"))
	want := `wiki ready after 900.0 ms
wake w1, generation 4, by request at gw-1, ` + clock(noon) + `

wake          20.0 ms  █
queue          0.0 ms   █
start        480.0 ms   ████████████████████████
probe        400.0 ms                           ████████████████████
ready          1.0 ms                                               █
release       99.0 ms                                               █████
total       1000.0 ms

longest: start, 48 % of it: the platform's own start; stop: pause keeps the memory and skips it
`
	assert.Equal(t, result{exitOK, want, ""}, rouse("explain", "wiki"))
	assert.Equal(t, result{exitOK, want, ""}, rouse("explain", "w1"))
	var w api.Wake
	require.NoError(t, json.Unmarshal([]byte(rouse("explain", "w1", "-o", "json").stdout), &w))
	assert.Equal(t, "w1", w.ID)
	assert.Len(t, w.Phases, 6)
}

func TestExplainOfAFailureEndsWithTheReasonAndTheLog(t *testing.T) {
	s := &standIn{History: api.NewHistory(0, 0), workloads: []api.Workload{shop()}}
	rouse := cli(t, s)
	s.Add(failedEvent("w2"))
	assert.Equal(t, `shop failed after 400.0 ms
wake w2, generation 2, by api, `+clock(noon)+`

wake         100.0 ms  ████████████
queue          0.0 ms              █
start        100.0 ms              █████████████
probe        200.0 ms                           ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
total        400.0 ms

reason: exited with code 3
  | connecting
  | [2Jgave up
`, strings.ReplaceAll(rouse("explain", "shop").stdout, "\t", " "))
}

func TestExplainTellsNoColdStartFromNoWorkload(t *testing.T) {
	rouse := cli(t, &standIn{workloads: []api.Workload{wiki()}})
	assert.Equal(t, result{exitFailure, "", "rouse: no cold start of wiki is known yet\n"}, rouse("explain", "wiki"))
	assert.Equal(t, exitNoWorkload, rouse("explain", "none").code)
}

func TestExplainOfAWakeUnderWay(t *testing.T) {
	s := &standIn{History: api.NewHistory(0, 0)}
	rouse := cli(t, s)
	s.Add(workload.Event{Workload: "wiki", Kind: workload.EventWoken, At: at0(1), Wake: &workload.Wake{ID: "w3"}})
	got := rouse("explain", "w3")
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "wiki is waking")
}

func TestBarNeverLeavesTheAxis(t *testing.T) {
	total := 100 * time.Millisecond
	for start := range 101 {
		for length := range 101 - start {
			p := api.WakePhase{Start: at0(start), DurationSeconds: float64(length) / 1000}
			drawn := []rune(bar(p, noon, total, "#"))
			require.LessOrEqual(t, len(drawn), barWidth)
			require.Equal(t, '#', drawn[len(drawn)-1], "every phase is seen")
		}
	}
	assert.Equal(t, "#", bar(api.WakePhase{}, noon, 0, "#"))
}

func TestEventsPrintsTheLastOnesAndEnds(t *testing.T) {
	s := &standIn{History: api.NewHistory(0, 0)}
	rouse := cli(t, s)
	s.Add(readyEvent("w1"))
	s.Add(failedEvent("w2"))
	s.Add(workload.Event{Workload: "wiki", Kind: workload.EventSlept, At: at0(2000), Generation: 4, Reason: workload.Reason{Code: workload.ReasonIdle}})
	got := rouse("events")
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, clock(at0(1000))+"  wiki                  released  generation 4, 1000.0 ms after it was asked for, wake w1\n"+
		clock(at0(400))+"  shop                  failed    generation 2, exited with code 3, 400.0 ms after it was asked for, wake w2\n"+
		clock(at0(2000))+"  wiki                  slept     generation 4, idle\n", got.stdout)
	assert.Equal(t, 1, strings.Count(rouse("events", "-n", "1").stdout, "\n"))
	assert.Equal(t, 2, strings.Count(rouse("events", "wiki").stdout, "\n"))
	assert.Equal(t, 3, strings.Count(rouse("events", "-o", "json").stdout, "\n"), "one line each")
	assert.Equal(t, 3, strings.Count(rouse("events", "-o", "yaml").stdout, "---\n"))
}

func TestEventsAreFilteredBeforeTheyAreCounted(t *testing.T) {
	s := &standIn{History: api.NewHistory(0, 0)}
	rouse := cli(t, s)
	s.Add(failedEvent("w2"))
	for i := range 100 {
		e := readyEvent("w1")
		e.At = e.At.Add(time.Duration(i) * time.Second)
		s.Add(e)
	}
	s.Add(workload.Event{Workload: "blog", Kind: workload.EventSlept, At: time.Now()})
	for args, want := range map[string]int{
		"--kind failed":                1,
		"--kind failed,slept":          2,
		"--kind failed --kind slept":   2,
		"--kind slept wiki":            0,
		"--kind released -n 7":         7,
		"--since 1h":                   1,
		"--since 1h --kind failed":     0,
		"--wake w2":                    1,
		"--wake w1 -n 3 -o json":       3,
		"--wake none":                  0,
		"--kind failed,released -n 99": 99,
	} {
		got := rouse(append([]string{"events"}, strings.Fields(args)...)...)
		assert.Equal(t, exitOK, got.code, args)
		assert.Equal(t, want, strings.Count(got.stdout, "\n"), args)
	}
	got := rouse("events", "--kind", "fialed")
	assert.Equal(t, exitUsage, got.code)
	assert.Contains(t, got.stderr, "did you mean failed?")
	assert.Equal(t, exitUsage, rouse("events", "--since", "-1h").code)
}

func TestFilteredEventsAreFollowedWhereThePastEnded(t *testing.T) {
	quiet(t)
	s := &standIn{History: api.NewHistory(0, 0)}
	server := serveOn(t, "127.0.0.1:0", s)
	defer server.Close()
	s.Add(failedEvent("w1"))
	s.Add(readyEvent("w2"))
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"events", "-f", "--kind", "failed", "--admin", server.Addr}, &stdout, &stderr)
	}()
	require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "wake w1\n") }, 10*time.Second, time.Millisecond)
	later := failedEvent("w3")
	later.At = later.At.Add(time.Hour)
	s.Add(readyEvent("w4"))
	s.Add(later)
	require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "wake w3\n") }, 10*time.Second, time.Millisecond)
	cancel()
	assert.Equal(t, exitOK, <-ended)
	assert.Equal(t, 2, strings.Count(stdout.String(), "\n"), "each once: %s", stdout.String())
	assert.Empty(t, stderr.String())
}

// buffer is a bytes.Buffer that a test reads while a command writes.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func serveOn(t *testing.T, address string, s *standIn) *http.Server {
	t.Helper()
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &http.Server{Addr: l.Addr().String(), Handler: api.New(api.Config{}, s)}
	go func() { _ = server.Serve(l) }()
	return server
}

func TestEventsFollowsThroughARestartUntilInterrupted(t *testing.T) {
	quiet(t)
	s := &standIn{History: api.NewHistory(0, 0)}
	server := serveOn(t, "127.0.0.1:0", s)
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"events", "-f", "--admin", server.Addr}, &stdout, &stderr)
	}()
	seen := func(n int) func() bool {
		return func() bool { return strings.Count(stdout.String(), "\n") == n }
	}
	s.Add(readyEvent("w1"))
	require.Eventually(t, seen(1), 10*time.Second, time.Millisecond)

	require.NoError(t, server.Close())
	s.Add(failedEvent("w2"))
	server = serveOn(t, server.Addr, s)
	require.Eventually(t, seen(2), 10*time.Second, time.Millisecond, "what came meanwhile, and nothing twice")
	assert.Contains(t, stderr.String(), "trying again")

	require.NoError(t, server.Close())
	s = &standIn{History: api.NewHistory(0, 0)} // another process, which read the history again
	s.Add(readyEvent("w1"))
	s.Add(failedEvent("w2"))
	s.Add(workload.Event{Workload: "wiki", Kind: workload.EventSlept, At: at0(2000)})
	server = serveOn(t, server.Addr, s)
	defer server.Close()
	require.Eventually(t, seen(3), 10*time.Second, time.Millisecond)
	cancel()
	assert.Equal(t, exitOK, <-ended)
}

func TestExplainAndStatusSayWhatAWakeWaitsFor(t *testing.T) {
	waits := workload.Reason{Code: workload.ReasonConflict, Detail: "it waits until llama sleeps, which it never runs beside"}
	s := &standIn{workloads: []api.Workload{{Name: "qwen", Phase: workload.Waking, Generation: 2, Reason: waits}}, History: api.NewHistory(0, 0)}
	now := time.Now()
	s.Add(workload.Event{Workload: "qwen", Kind: workload.EventWoken, At: now, Generation: 2,
		Wake: &workload.Wake{ID: "w9", Workload: "qwen", Generation: 2, RequestedAt: now, ReceivedAt: now}})
	rouse := cli(t, s)
	assert.Contains(t, rouse("explain", "qwen").stdout, "reason: conflict: "+waits.Detail)
	assert.Contains(t, rouse("status").stdout, "WAITING\n  qwen: conflict: "+waits.Detail)
	assert.Contains(t, rouse("status", "qwen").stdout, waits.Detail)
}
