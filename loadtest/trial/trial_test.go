//go:build linux

package trial_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/mimic"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// laneWord makes this program, started again, the process of a lane.
const laneWord = "lane-of-a-trial"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == laneWord {
		if err := trial.RunLane(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil { // of the lanes, where the race detector is on
		panic(err)
	}
	os.Exit(m.Run())
}

// compared starts a workload and a proxy before it that takes a while.
func compared(t *testing.T, takes time.Duration) trial.Config {
	t.Helper()
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	origin := &url.URL{Scheme: "http", Host: server.Address()}
	forward := httputil.NewSingleHostReverseProxy(origin)
	forward.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(takes)
		w.Header().Set("Server-Timing", fmt.Sprintf("added;dur=%d", takes.Milliseconds()))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return trial.Config{
		Direct: side(origin.Host, "/direct"), Routed: side(proxy.Listener.Addr().String(), "/routed"),
		Rate: 200, Warmup: 200 * time.Millisecond, Duration: 400 * time.Millisecond, Trials: 2, Conns: 8,
		Served: "http://" + origin.Host, Out: t.TempDir(), Lane: []string{os.Args[0], laneWord},
		Limits: generous(),
	}
}

func side(address, path string) trial.Side {
	return trial.Side{URL: "http://" + address + path, Address: address, Target: openloop.Target{
		Request: http1.Request{Host: address, Path: path}, Expect: openloop.Expect{Echo: openloop.InBody},
	}}
}

// generous limits let a busy machine pass.
func generous() trial.Limits {
	return trial.Limits{OwnLag: time.Hour, Generator: 100, Foreign: 100, Steal: 100, Drift: 1e6}
}

func TestTrialsAreMadeInPairsOfFreshProcessesInTurn(t *testing.T) {
	t.Parallel()
	cfg := compared(t, 50*time.Millisecond)
	var told strings.Builder
	cfg.Progress = &told
	s, err := trial.Compare(t.Context(), cfg)
	require.NoError(t, err)
	s.Manifest = trial.NewManifest("test", os.Args)
	require.NoError(t, s.Save(cfg.Out))

	require.Equal(t, 2, s.Made, told.String())
	require.Equal(t, 2, s.Accepted, told.String())
	assert.Equal(t, [2]string{"direct", "routed"}, s.Trials[0].Order)
	assert.Equal(t, [2]string{"routed", "direct"}, s.Trials[1].Order)
	for _, one := range s.Trials {
		for _, run := range []*trial.Run{one.Direct, one.Routed} {
			assert.Equal(t, int64(120), run.Served)
			assert.Equal(t, int64(80), run.Report.Measured.Scheduled)
		}
		assert.Nil(t, one.Direct.Report.Added)
		assert.InEpsilon(t, 50, one.Routed.Report.Added.P50, 0.01)
	}
	for _, q := range s.Quantiles {
		assert.GreaterOrEqual(t, q.Routed.Median, 50.0, q.Name)
		assert.InDelta(t, q.Routed.Median-q.Direct.Median, q.Added.Median, 1e-9, "of two, the median is the mean")
		assert.Equal(t, 2, q.Added.N)
		assert.InDelta(t, 0.5, q.Added.Coverage, 1e-9)
	}
	require.Len(t, s.ServerTiming, 3)
	assert.InEpsilon(t, 50, s.ServerTiming[0].Added.Median, 0.01)
	assert.Contains(t, told.String(), "accepted 2 of 2")
	checkFiles(t, cfg.Out)
}

func checkFiles(t *testing.T, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var summary trial.Summary
	require.NoError(t, json.Unmarshal(text, &summary))
	assert.NotEmpty(t, summary.Manifest.Machine.Kernel)
	assert.Len(t, summary.Manifest.Binary, 64)
	assert.Len(t, summary.Trials, 2)

	file, err := os.Open(filepath.Join(dir, "trials.csv"))
	require.NoError(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 5)
	read, err := trial.Read(dir)
	require.NoError(t, err)
	again, err := read.Recomputed(dir)
	require.NoError(t, err)
	assert.JSONEq(t, string(text), encode(t, again), "the summary is what the files of its runs come to")
	again.Trials[0].Direct.Report.Result = nil
	require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.json"), []byte(encode(t, again)), 0o600))
	_, err = trial.Read(dir)
	assert.ErrorContains(t, err, "trial 1: a run is missing")
	_, err = read.Recomputed(t.TempDir())
	assert.ErrorContains(t, err, "trial 1: read the result")

	for _, name := range []string{"direct.hgrm", "routed.hgrm", "trials/01-direct/result.json", "trials/02-routed/intervals.hlog", "trials/02-routed/own_lag.hgrm"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	var out strings.Builder
	require.NoError(t, summary.Text(&out))
	assert.Contains(t, out.String(), "2 of 2 trials accepted")
	assert.Contains(t, out.String(), "by Server-Timing, p95")
	assert.Contains(t, out.String(), "not known: work of others was not looked for")
}

func encode(t *testing.T, s *trial.Summary) string {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	return string(text)
}

func TestADisturbedTrialIsRejectedWithItsReasonsAndMadeAgain(t *testing.T) {
	t.Parallel()
	cfg := compared(t, 0)
	cfg.Trials, cfg.Warmup, cfg.Duration = 1, 50*time.Millisecond, 50*time.Millisecond
	cfg.Routed.Target.Request.Path = "/status/500"
	cfg.Limits.OwnLag = time.Nanosecond
	s, err := trial.Compare(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Made)
	assert.Zero(t, s.Accepted)
	for _, one := range s.Trials {
		reasons := strings.Join(one.Rejected, "\n")
		assert.Contains(t, reasons, "routed: 10 of 10 requests failed: 10 wrong_status, 0 unsent")
		assert.Contains(t, reasons, "direct: own lag p99")
		assert.NotContains(t, reasons, "served")
	}
	require.NoError(t, s.Save(cfg.Out))
	assert.NoFileExists(t, filepath.Join(cfg.Out, "routed.hgrm"))
}

func TestALaneThatCannotBeginIsAnErrorInItsOwnWords(t *testing.T) {
	t.Parallel()
	cfg := compared(t, 0)
	cfg.Routed.Address = "nowhere"
	_, err := trial.Compare(t.Context(), cfg)
	assert.ErrorContains(t, err, "trial 1, routed")
	assert.ErrorContains(t, err, "missing port")

	_, err = trial.Compare(t.Context(), trial.Config{})
	assert.ErrorContains(t, err, "want trials")
}

func TestWhoListensOnAnAddressIsFound(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		assert.Equal(t, []int{os.Getpid()}, trial.Listeners(listener.Addr().String()))
		require.NoError(t, listener.Close())
		assert.Empty(t, trial.Listeners(listener.Addr().String()))
	}
	assert.Empty(t, trial.Listeners("192.0.2.1:80"))
	assert.Empty(t, trial.Listeners("nonsense"))
}
