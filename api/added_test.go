package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestAddedSumsUpWhatTheRouterCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rouse_added_latency_seconds", Buckets: []float64{0.001, 0.01}}, []string{"workload", "path"})
	require.NoError(t, reg.Register(h))
	observe := func(name, path string, seconds ...float64) {
		for _, s := range seconds {
			h.WithLabelValues(name, path).Observe(s)
		}
	}
	observe("wiki", "warm", 0.0005, 0.0005, 0.005)
	observe("blog", "warm", 0.5)
	observe("blog", "cold", 0.002)
	ask := func(path string) api.Added {
		return decode[api.Added](t, serve(api.Config{Gatherer: reg}, newFake(), httptest.NewRequest(http.MethodGet, path, nil)).Body)
	}
	all := ask("/api/v1/added")
	assert.Equal(t, []float64{0.001, 0.01}, all.Warm.Bounds)
	assert.Equal(t, []uint64{2, 1, 1}, all.Warm.Counts)
	assert.EqualValues(t, 4, all.Warm.Total)
	assert.InDelta(t, 0.506, all.Warm.Sum, 1e-9)
	assert.Equal(t, []uint64{0, 1, 0}, all.Cold.Counts)
	assert.Equal(t, []uint64{2, 1, 0}, ask("/api/v1/added?workload=wiki").Warm.Counts)
	assert.Equal(t, api.Histogram{Bounds: []float64{}, Counts: []uint64{}}, ask("/api/v1/added?workload=wiki").Cold, "lists, not null")
}

func TestNamesThatAreNoneAreRefused(t *testing.T) {
	assert.Equal(t, http.StatusNotFound, get(newFake(), "/api/v1/added?workload=none").Code)
	p := problem(t, get(newFake(), "/api/v1/events?workload=%C3%BC"))
	assert.Equal(t, http.StatusBadRequest, p.Status)
	assert.Contains(t, p.Detail, `"ü" has 'ü' at byte 1`)
	long := problem(t, get(newFake(), "/api/v1/workloads/"+strings.Repeat("a", 7000)))
	assert.Less(t, len(long.Detail), 200, "it is not echoed whole")
}

func TestFindingsAreAList(t *testing.T) {
	f := newFake()
	assert.JSONEq(t, `{"findings":[]}`, get(f, "/api/v1/findings").Body.String())
	f.findings = []api.Finding{{Severity: "error", Code: "clock", Place: "host", What: "a", Why: "b", Fix: "c"}}
	assert.JSONEq(t, `{"findings":[{"severity":"error","code":"clock","place":"host","what":"a","why":"b","fix":"c"}]}`, get(f, "/api/v1/findings").Body.String())
}
