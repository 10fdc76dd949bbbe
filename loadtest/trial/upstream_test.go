//go:build linux

package trial_test

import (
	"context"
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

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// held starts a server that is part of the lanes, and a proxy before it.
func held(t *testing.T) trial.Config {
	t.Helper()
	probe, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := probe.Addr().String()
	require.NoError(t, probe.Close())
	dir, err := os.MkdirTemp("", "held") // short enough for a Unix socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- trial.Hold(ctx, address, socket) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	require.Eventually(t, func() bool { _, err := os.Stat(socket); return err == nil }, time.Minute, time.Millisecond)

	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	forward.Transport = transport
	proxy := httptest.NewServer(forward)
	t.Cleanup(func() { proxy.Close(); transport.CloseIdleConnections() })
	limits := generous()
	limits.Queue = time.Hour
	return trial.Config{
		Direct: side(address, "/direct"), Routed: side(proxy.Listener.Addr().String(), "/routed"),
		Rate: 100, Warmup: 200 * time.Millisecond, Duration: 300 * time.Millisecond, Trials: 1, Conns: 4,
		Upstream: socket, UpstreamDelay: time.Millisecond, UpstreamSize: 200,
		Out: t.TempDir(), Lane: []string{os.Args[0], laneWord}, Limits: limits, Unpinned: true,
	}
}

func TestTheOverheadIsMeasuredAtTheHighestCommonRateAndBelow(t *testing.T) {
	t.Parallel()
	cfg := held(t)
	o, err := trial.MeasureOverhead(t.Context(), trial.OverheadConfig{
		Config: cfg, Candidates: []float64{40, 80}, SearchFor: 200 * time.Millisecond,
		Lower: []float64{500, 20}, LowerFor: 200 * time.Millisecond,
	})
	require.NoError(t, err)
	assert.Equal(t, 80.0, o.Common)
	require.Len(t, o.Rates, 2, "a lower rate that is higher is left out")
	for i, rate := range []float64{80, 20} {
		s := o.Rates[i]
		assert.Equal(t, rate, s.Config.Rate)
		assert.Equal(t, 1, s.Accepted)
		for _, run := range []*trial.Run{s.Trials[0].Direct, s.Trials[0].Routed} {
			sent := run.Report.WarmUp.Sent + run.Report.Measured.Sent
			assert.Equal(t, sent, run.Served, "the server in the lane counts too")
			assert.GreaterOrEqual(t, run.Report.Service.P50, 1.0, "it takes a millisecond")
		}
	}
	require.NoError(t, o.Save(cfg.Out))
	table, err := os.ReadFile(filepath.Join(cfg.Out, "table.md"))
	require.NoError(t, err)
	assert.Contains(t, string(table), "| 80 | 1 of 1, 0.3s | 24 of 24 |")
	assert.FileExists(t, filepath.Join(cfg.Out, "rate-20", "trials.csv"))
}

func TestARateThatIsNotAnsweredIsNotCarried(t *testing.T) {
	t.Parallel()
	cfg := held(t)
	cfg.Routed.Target.Expect.Status = http.StatusTeapot
	ceiling, err := trial.Search(t.Context(), cfg, trial.Routed, []float64{20, 40, 60})
	require.NoError(t, err)
	assert.Zero(t, ceiling.Rate)
	require.Len(t, ceiling.Steps, 4, "40 twice, 20 twice")
	assert.Contains(t, strings.Join(ceiling.Steps[0].Why, ";"), "wrong_status")
	cfg.Upstream += "-of-nobody"
	_, err = trial.Search(t.Context(), cfg, trial.Direct, []float64{20})
	require.ErrorContains(t, err, "take the socket")
}

func TestPeersHaveTheirTurnsInRoundsOfReversedOrder(t *testing.T) {
	t.Parallel()
	cfg := held(t)
	peers := trial.PeersConfig{
		Direct: cfg.Direct, Peers: []trial.Peer{{Name: "one", Side: cfg.Routed}, {Name: "two", Side: cfg.Routed}},
		Upstream: cfg.Upstream, UpstreamDelay: time.Millisecond, Limits: cfg.Limits, Out: cfg.Out, Lane: cfg.Lane,
		Rounds: 2, Requests: 50, Conns: 4, Rate: 50, Duration: 200 * time.Millisecond,
	}
	s, err := trial.ComparePeers(t.Context(), peers)
	require.NoError(t, err)
	var order []string
	for _, turn := range s.Turns {
		order = append(order, turn.Peer)
		assert.Empty(t, turn.RejectedCPU)
		assert.Empty(t, turn.RejectedRate)
		assert.Positive(t, turn.PerSecond)
	}
	assert.Equal(t, []string{"one", "two", "two", "one"}, order)
	assert.True(t, s.Complete())
	require.NoError(t, s.Save(cfg.Out))
	var text strings.Builder
	require.NoError(t, s.Text(&text))
	assert.Contains(t, text.String(), "two")
	peers.Peers = nil
	_, err = trial.ComparePeers(t.Context(), peers)
	require.ErrorContains(t, err, "want peers")
}
