package sablier_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// A sink is a ResponseWriter that costs nothing itself.
type sink struct {
	header http.Header
	status int
	bytes  int
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) Write(b []byte) (int, error) {
	s.bytes += len(b)
	return len(b), nil
}

func (s *sink) WriteHeader(status int) { s.status = status }

func (s *sink) reset() {
	clear(s.header)
	s.status, s.bytes = 0, 0
}

// warm is a rig with a group that is awake, and a call as plugins make it.
func warm(t testing.TB, strategy string) (*rig, *http.Request) {
	r := newRig(t, activator.Config{}, office()...)
	r.see("wiki", workload.Ready)
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.URL = &url.URL{Path: "/api/strategies/" + strategy, RawQuery: "group=team&session_duration=1h&timeout=30s"}
	return r, req
}

// A warm call allocates its Content-Length, and nothing that grows.
func TestAWarmCallAllocatesNextToNothing(t *testing.T) {
	for strategy, most := range map[string]float64{"blocking": 2, "dynamic": 2} {
		r, req := warm(t, strategy)
		defer r.stop()
		w := &sink{header: http.Header{}}
		allocations := testing.AllocsPerRun(1000, func() {
			w.reset()
			r.api.ServeHTTP(w, req)
		})
		require.Equal(t, "ready", w.header.Get(statusHeader))
		require.LessOrEqual(t, allocations, most, strategy)
	}
}

// Sablier keeps some 56 bytes of each call until its session is over: a
// million of them would be 56 MB here.
func TestMemoryIsFlatOverAMillionCalls(t *testing.T) {
	calls := 1_000_000
	if testing.Short() || raceEnabled {
		calls = 50_000
	}
	r, req := warm(t, "blocking")
	defer r.stop()
	w := &sink{header: http.Header{}}
	call := func(n int) {
		for range n {
			w.reset()
			r.api.ServeHTTP(w, req)
		}
	}
	call(1000)
	before := live()
	call(calls)
	grown := live() - before
	require.Less(t, grown, int64(64<<10), "of %d calls", calls)
	require.Equal(t, "ready", w.header.Get(statusHeader))
}

// live is the heap after a collection.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkWarmCall(b *testing.B) {
	for _, strategy := range []string{"blocking", "dynamic"} {
		b.Run(strategy, func(b *testing.B) {
			r, req := warm(b, strategy)
			defer r.stop()
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				w.reset()
				r.api.ServeHTTP(w, req)
			}
		})
	}
}
