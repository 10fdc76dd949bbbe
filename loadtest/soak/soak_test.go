//go:build linux

package soak_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/mimic"
	"github.com/rouse-dev/rouse/loadtest/schedule"
	"github.com/rouse-dev/rouse/loadtest/soak"
)

// leaking tells this test's program to be a process that leaks something each
// time that it is looked at.
const leaking = "SOAK_TEST_LEAKS"

func TestMain(m *testing.M) {
	if what := os.Getenv(leaking); what != "" {
		leak(what)
	}
	os.Exit(m.Run())
}

// leak serves metrics and grows with each look at them, in what it is told.
func leak(what string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	var kept [][]byte
	var files []*os.File
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		for range 5 {
			switch what {
			case soak.Goroutines:
				go func() { select {} }()
			case soak.Files:
				file, _ := os.Open(os.DevNull)
				files = append(files, file)
			case soak.Memory:
				kept = append(kept, block[:1])
			}
		}
		_, _ = fmt.Fprintf(w, "# HELP go_goroutines\ngo_goroutines %d\ngo_memstats_heap_objects 5e+03\n", runtime.NumGoroutine())
	}))
	runtime.KeepAlive(kept)
	runtime.KeepAlive(files)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// watched runs a process that leaks, and gives the reading of it.
func watched(t *testing.T, what string) soak.Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), leaking+"="+what)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	var address string
	_, err = fmt.Fscanln(out, &address)
	require.NoError(t, err)
	return soak.Process{PID: cmd.Process.Pid, Metrics: "http://" + address}
}

func TestTheLeakThatWasSeededIsFound(t *testing.T) {
	t.Parallel()
	for _, what := range []string{soak.Memory, soak.Goroutines, soak.Files, "nothing"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			process := watched(t, what)
			for name, leaks := range soak.Leaks(t, process, 80) {
				if name != soak.Memory || what == "nothing" { // all that leaks takes memory
					assert.Equal(t, name == what, leaks, name)
				}
				assert.True(t, name != what || leaks, name)
			}
		})
	}
}

// A soak of a workload without Rouse in between.
func TestASoakThatGoesWellCountsEachRequestOnce(t *testing.T) {
	t.Parallel()
	report := run(t)
	assert.True(t, report.Passed(), report.Faults)
	books := report.Books
	assert.Zero(t, books.Lost+books.Twice+books.Strange+books.Unended)
	assert.Equal(t, books.Answered, books.Seen-books.AbortedSeen)
	assert.Positive(t, books.Aborted)
	for _, lane := range report.Lanes {
		assert.Positive(t, lane.Begun, lane.Name)
		assert.Equal(t, lane.Begun, lane.Right+lane.Aborted, lane.Name)
	}
	dir := filepath.Join(t.TempDir(), "out")
	require.NoError(t, report.Save(dir))
	series, err := os.ReadFile(filepath.Join(dir, "series.csv"))
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(series), "seconds,goroutines,"), string(series))
	assert.FileExists(t, filepath.Join(dir, "summary.json"))
}

func run(t *testing.T) *soak.Report {
	t.Helper()
	dir := t.TempDir()
	starts, ledger := filepath.Join(dir, "starts"), filepath.Join(dir, "ledger")
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0", Ledger: ledger})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, `{"workloads":[{"name":"steady","phase":"asleep"}]}`)
	}))
	t.Cleanup(admin.Close)
	wake(t, starts)
	trace, err := schedule.ReadTrace(strings.NewReader("at_ms,target\n0,/a\n100,/b\n300,/a\n"), 1)
	require.NoError(t, err)
	cfg := soak.Config{
		Address: server.Address(), Admin: admin.URL, Steady: "steady.localhost", Sleepers: []string{"nap.localhost"},
		Every: 100 * time.Millisecond, Trace: trace, TraceHost: "trace.localhost", Ledgers: []string{starts, ledger},
		Rate: 60, Sessions: 2, Pause: 20 * time.Millisecond, Conns: 8,
		Duration: 1500 * time.Millisecond, Interval: 50 * time.Millisecond, Process: watched(t, "nothing"),
	}
	report, err := soak.Run(t.Context(), cfg)
	require.NoError(t, err)
	return report
}

// wake writes down starts of a workload, as if it were woken all along.
func wake(t *testing.T, path string) {
	t.Helper()
	var starts strings.Builder
	for i := range 2000 {
		_, _ = fmt.Fprintf(&starts, "start %d\n", time.Now().Add(time.Duration(i)*30*time.Millisecond).UnixNano())
	}
	require.NoError(t, os.WriteFile(path, []byte(starts.String()), 0o600))
}
