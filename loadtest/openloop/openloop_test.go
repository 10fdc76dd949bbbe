//go:build linux

package openloop_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/mimic"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// workload runs a mimic and gives its address.
func workload(t *testing.T, cfg mimic.Config) string {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	server := mimic.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		cancel()
		assert.NoError(t, <-ended)
	})
	return server.Address()
}

// to asks for a path, with the id looked for in the report.
func to(address, path string) openloop.Target {
	return openloop.Target{
		Request: http1.Request{Host: address, Path: path},
		Expect:  openloop.Expect{Echo: openloop.InBody},
	}
}

func load(address string, rate float64, d time.Duration) openloop.Config {
	return openloop.Config{
		Address: address, Schedule: schedule.Constant(rate, d), Conns: 16,
		Targets: []openloop.Target{to(address, "/")}, Timeout: time.Minute,
	}
}

func run(t *testing.T, cfg openloop.Config) *openloop.Result {
	t.Helper()
	r, err := openloop.Run(t.Context(), cfg)
	require.NoError(t, err)
	return r
}

func all(r *openloop.Result, o openloop.Outcome) bool {
	return r.Measured.Outcomes[o.String()] == r.Measured.Scheduled && r.Measured.Scheduled > 0
}

func TestEachRequestIsSentAndAnsweredOnceOverEachProtocol(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]openloop.Protocol{"keep-alive": openloop.KeepAlive, "fresh": openloop.Fresh, "h2c": openloop.H2C} {
		t.Run(name, func(t *testing.T) {
			address := workload(t, mimic.Config{})
			body := []byte(strings.Repeat("x", 50_000))
			cfg := load(address, 500, 400*time.Millisecond)
			cfg.Protocol, cfg.Conns, cfg.Warmup = protocol, 8, 100*time.Millisecond
			cfg.Targets[0].Request.Header = []string{"Accept: application/json"}
			echo := openloop.Target{
				Request: http1.Request{Host: address, Path: "/echo", Body: body},
				Expect:  openloop.Expect{Echo: openloop.AsBody},
			}
			trace := "at_ms,target\n"
			for i := range 200 {
				trace += fmt.Sprintf("%d,%s\n", 2*i, []string{"report", "echo"}[i%2])
			}
			schedule, err := schedule.ReadTrace(strings.NewReader(trace), 1)
			require.NoError(t, err)
			cfg.Schedule, cfg.Targets = schedule, append(cfg.Targets, echo)
			before, err := openloop.Served(t.Context(), "http://"+address)
			require.NoError(t, err)
			r := run(t, cfg)
			after, err := openloop.Served(t.Context(), "http://"+address)
			require.NoError(t, err)

			assert.Equal(t, int64(200), after-before-1)
			assert.Empty(t, r.Errors)
			assert.Equal(t, int64(50), r.WarmUp.Scheduled)
			assert.True(t, r.WarmUp.Conserved())
			assert.True(t, all(r, openloop.OK), "%+v", r.Measured)
			assert.True(t, r.Measured.Conserved())
			assert.Equal(t, map[int]int64{200: 150}, r.Measured.Statuses)
			assert.Equal(t, int64(150), r.Times.Intended.Count())
			assert.Equal(t, int64(150), r.Times.OwnLag.Count())
			assert.LessOrEqual(t, r.Times.Service.Quantile(1), r.Times.Intended.Quantile(1))
			assert.False(t, r.Aborted)
			if protocol == openloop.Fresh {
				assert.Equal(t, int64(200), r.DialsWarmUp+r.DialsMeasured)
			} else {
				assert.Equal(t, int64(8), r.DialsBefore)
				assert.Zero(t, r.DialsWarmUp+r.DialsMeasured)
			}
		})
	}
}

func TestWaitingForAConnectionIsPartOfTheLatencyAndMakesNoConnection(t *testing.T) {
	t.Parallel()
	var once atomic.Bool
	thaw := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !once.Swap(true) {
			time.AfterFunc(300*time.Millisecond, func() { close(thaw) })
		}
		<-thaw
	}))
	defer s.Close()
	address := s.Listener.Addr().String()
	cfg := load(address, 1000, 500*time.Millisecond)
	cfg.Conns = 2
	cfg.Targets[0].Expect.Echo = openloop.Nowhere
	r := run(t, cfg)
	assert.True(t, all(r, openloop.OK), "%+v", r.Errors)
	assert.Zero(t, r.DialsMeasured)
	assert.Equal(t, int64(2), r.PeakInFlight)
	assert.GreaterOrEqual(t, r.PeakBacklog, int64(200))
	assert.GreaterOrEqual(t, r.Times.Intended.Quantile(0.5), 20*time.Millisecond)
	assert.GreaterOrEqual(t, r.Times.SendLag.Quantile(0.5), 20*time.Millisecond, "they waited for a connection")
	assert.Less(t, r.Times.Service.Quantile(0.5), r.Times.Intended.Quantile(0.5))
	assert.Less(t, r.Times.OwnLag.Quantile(0.5), r.Times.SendLag.Quantile(0.5), "which was not the generator's fault")
}

func TestARunThatIsEndedEarlyTellsWhatItHasSeen(t *testing.T) {
	t.Parallel()
	for _, protocol := range []openloop.Protocol{openloop.KeepAlive, openloop.H2C} {
		address := workload(t, mimic.Config{})
		cfg := load(address, 200, time.Hour)
		cfg.Protocol, cfg.Conns, cfg.Streams = protocol, 2, 1
		cfg.Targets = append(cfg.Targets, to(address, "/hang"))
		trace, err := schedule.ReadTrace(strings.NewReader("at_ms,target\n0,/\n1,/\n2,/hang\n3,/hang\n4,/\n5,/\n3600000,/\n"), 1)
		require.NoError(t, err)
		cfg.Schedule = trace
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		cfg.Every = func(i openloop.Interval) {
			seen++
			if i.InFlight == 2 {
				cancel()
			}
		}
		r, err := openloop.Run(ctx, cfg)
		require.NoError(t, err)
		assert.True(t, r.Aborted)
		assert.Equal(t, int64(6), r.Measured.Scheduled)
		assert.Equal(t, int64(4), r.Measured.Started)
		assert.Equal(t, int64(2), r.Measured.Unsent)
		assert.Equal(t, int64(2), r.Measured.Finished)
		assert.Equal(t, map[string]int64{"ok": 2, "unfinished": 2}, r.Measured.Outcomes)
		assert.False(t, r.Measured.Conserved())
		assert.GreaterOrEqual(t, seen, 2)
	}
}

func TestAServerThatNeverAnswersEndsTheRunByItsBounds(t *testing.T) {
	t.Parallel()
	for _, protocol := range []openloop.Protocol{openloop.KeepAlive, openloop.H2C} {
		address := workload(t, mimic.Config{})
		cfg := load(address, 100, 50*time.Millisecond)
		cfg.Protocol, cfg.Conns, cfg.Streams = protocol, 2, 1
		cfg.Targets = []openloop.Target{to(address, "/hang")}
		cfg.Timeout, cfg.Drain = 200*time.Millisecond, 250*time.Millisecond
		r := run(t, cfg)
		assert.False(t, r.Aborted)
		assert.GreaterOrEqual(t, r.Measured.Outcomes["timeout"], int64(2), "%v", r.Measured.Outcomes)
		assert.Equal(t, int64(5), r.Measured.Scheduled)
		assert.Equal(t, int64(5), r.Measured.Failed())
	}
}

func TestConnectionsThatTheServerClosesAreMadeAgainWhenNeeded(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	defer s.Close()
	cfg := load(s.Listener.Addr().String(), 500, 100*time.Millisecond)
	cfg.Targets[0].Expect.Echo = openloop.Nowhere
	r := run(t, cfg)
	assert.True(t, all(r, openloop.OK), "%+v", r.Errors)
	assert.Equal(t, int64(50-16), r.DialsMeasured)
}

func TestWhatAProxySaysThatItAddedIsRecorded(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Server-Timing", "db;dur=9")
		w.Header().Add("Server-Timing", "queue;dur=3, added;dur=0.125")
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	for _, protocol := range []openloop.Protocol{openloop.KeepAlive, openloop.H2C} {
		cfg := load(s.Listener.Addr().String(), 500, 20*time.Millisecond)
		cfg.Protocol = protocol
		cfg.Targets[0].Expect.Echo = openloop.Nowhere
		r := run(t, cfg)
		assert.Equal(t, int64(10), r.Times.Added.Count())
		assert.InDelta(t, 125*time.Microsecond, r.Times.Added.Quantile(1), 1000)
	}
}

func TestALoadThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	good := load("127.0.0.1:1", 1, time.Millisecond)
	cases := map[string]func(*openloop.Config){
		"no schedule":  func(c *openloop.Config) { c.Schedule = nil },
		"no target":    func(c *openloop.Config) { c.Targets = nil },
		"out of range": func(c *openloop.Config) { c.Conns = -1 },
		"missing port": func(c *openloop.Config) { c.Address = "localhost" },
		"target 0":     func(c *openloop.Config) { c.Targets = []openloop.Target{{}} },
		"too short": func(c *openloop.Config) {
			c.Targets = []openloop.Target{to("a", "/")}
			c.Targets[0].Expect.Echo = openloop.AsBody
		},
		"has no body": func(c *openloop.Config) {
			c.Targets = []openloop.Target{to("a", "/")}
			c.Targets[0].Request.Method = "HEAD"
		},
	}
	for want, spoil := range cases {
		cfg := good
		spoil(&cfg)
		_, err := openloop.Run(t.Context(), cfg)
		assert.ErrorContains(t, err, want)
	}
}

// plain answers each read with the same bytes, and allocates nothing for it.
func plain(tb testing.TB) string {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	var conns sync.WaitGroup
	tb.Cleanup(func() { _ = listener.Close(); conns.Wait() })
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n0123456789")
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				buffer := make([]byte, 4096)
				for {
					if _, err := conn.Read(buffer); err != nil {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			})
		}
	})
	return listener.Addr().String()
}

func plainLoad(address string, rate float64, n int) openloop.Config {
	cfg := load(address, rate, time.Duration(float64(n)/rate*float64(time.Second)))
	cfg.Targets[0].Expect = openloop.Expect{Length: 10}
	return cfg
}

func TestARequestAllocatesNothing(t *testing.T) {
	address := plain(t)
	mallocs := func(n int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := run(t, plainLoad(address, 20_000, n))
		runtime.ReadMemStats(&after)
		require.True(t, all(r, openloop.OK), "%v", r.Errors)
		return after.Mallocs - before.Mallocs
	}
	few, many := mallocs(1000), mallocs(5000)
	assert.Less(t, many, few+400, "4000 requests more")
}

func BenchmarkRequests(b *testing.B) {
	b.ReportAllocs()
	address := plain(b)
	b.ResetTimer()
	r, err := openloop.Run(b.Context(), plainLoad(address, 1e6, b.N)) // as fast as it can
	require.NoError(b, err)
	require.Equal(b, int64(b.N), r.Measured.Outcomes["ok"])
}
