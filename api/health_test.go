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

func TestHealthAnswersWhateverTheBackendDoes(t *testing.T) {
	f := newFake()
	f.checks = []api.Check{{Name: "nats"}}
	w := get(f, "/healthz")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "ok\n", w.Body.String())
}

func TestReadyIsWhatEveryCheckSays(t *testing.T) {
	f := newFake()
	assert.Equal(t, http.StatusOK, get(f, "/readyz").Code)
	f.checks = []api.Check{{Name: "nats", OK: true}, {Name: "docker", Detail: "event stream lost"}}
	w := get(f, "/readyz")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, api.Readiness{Ready: false, Checks: f.checks}, decode[api.Readiness](t, w.Body))
	f.checks[1].OK = true
	assert.Equal(t, http.StatusOK, get(f, "/readyz").Code)
}

func TestReadyKeepsDetailsFromStrangers(t *testing.T) {
	f := newFake()
	f.checks = []api.Check{{Name: "docker", Detail: "dial unix /var/run/docker.sock"}}
	r := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	assert.NotContains(t, serve(api.Config{Token: "t"}, f, r).Body.String(), "unix")
	r.Header.Set("Authorization", "Bearer t")
	assert.Contains(t, serve(api.Config{Token: "t"}, f, r).Body.String(), "unix")
	assert.NotEmpty(t, f.checks[0].Detail, "the backend's own slice is left alone")
}

func TestMetricsExposeTheBuildAndTheLastReload(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := api.NewMetrics(reg, api.Build{Version: "v1.2.3", Revision: "abc"})
	scrape := func() string {
		w := serve(api.Config{Gatherer: reg}, newFake(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
		require.Equal(t, http.StatusOK, w.Code)
		return w.Body.String()
	}
	text := scrape()
	assert.Regexp(t, `rouse_build_info\{goversion="go[^"]+",revision="abc",version="v1.2.3"\} 1`, text)
	assert.Contains(t, text, "rouse_config_last_reload_successful 1")
	assert.Contains(t, text, "go_goroutines")
	assert.Contains(t, text, "process_cpu_seconds_total")
	m.Reloaded(false)
	assert.Contains(t, scrape(), "rouse_config_last_reload_successful 0")
	m.Reloaded(true)
	assert.Contains(t, scrape(), "rouse_config_last_reload_successful 1")
}

func TestMetricsWithoutARegistryAreUsable(t *testing.T) {
	api.NewMetrics(nil, api.Build{}).Reloaded(false)
	w := get(newFake(), "/metrics")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Empty(t, strings.TrimSpace(strings.ReplaceAll(w.Body.String(), "# EOF", "")))
}
