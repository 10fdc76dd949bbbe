package system_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A meter is what a page of metrics has under one name.
type meter struct {
	kind   string              // counter, gauge, histogram
	labels map[string][]string // name -> the values that are there, sorted; le is none
}

// promised are the metrics that others rely on: names, kinds and labels to the
// letter. The values are those that are there after a cold and a warm request;
// nil: whatever they are.
var promised = map[string]meter{
	"rouse_requests_total": {"counter", map[string][]string{
		"workload": {"", "tool"},
		"outcome":  {"canceled", "denied", "error", "held", "nowake", "page", "shed", "timeout", "warm"}}},
	"rouse_added_latency_seconds": {"histogram", map[string][]string{"workload": {"", "tool"}, "path": {"cold", "warm"}}},
	"rouse_wake_duration_seconds": {"histogram", map[string][]string{"workload": {"tool"}}},
	"rouse_wake_phase_seconds": {"histogram", map[string][]string{
		"workload": {"tool"}, "phase": {"probe", "queue", "ready", "release", "start", "wake"}}},
	"rouse_wakes_total":          {"counter", map[string][]string{"workload": {"tool"}, "trigger": {"request"}, "result": {"ready"}}},
	"rouse_queue_requests":       {"gauge", map[string][]string{"workload": {"tool"}}},
	"rouse_queue_rejected_total": {"counter", map[string][]string{"workload": {"tool"}, "reason": nil}},
	"rouse_in_flight_requests":   {"gauge", map[string][]string{"workload": {"tool"}}},
	"rouse_workload_phase": {"gauge", map[string][]string{
		"workload": {"tool"}, "phase": {"asleep", "draining", "failed", "ready", "waking"}}},
	"rouse_workload_running_seconds_total": {"counter", map[string][]string{"workload": {"tool"}}},
	"rouse_workload_asleep_seconds_total":  {"counter", map[string][]string{"workload": {"tool"}}},
	"rouse_runtime_request_duration_seconds": {"histogram", map[string][]string{
		"runtime": {"process"}, "op": nil, "result": {"ok"}}},
	"rouse_nats_connected":                {"gauge", map[string][]string{}},
	"rouse_event_lag_seconds":             {"histogram", map[string][]string{"subject": nil}},
	"rouse_config_last_reload_successful": {"gauge", map[string][]string{}},
	"rouse_build_info":                    {"gauge", map[string][]string{"version": nil, "goversion": nil, "revision": nil}},
}

// Every metric that is promised is there after one cold and one warm request,
// with the labels that are promised and no other.
func TestEveryPromisedMetricIsThere(t *testing.T) {
	n := usedNode(t)
	page := n.metrics()
	there := meters(t, page)
	for name, want := range promised {
		got := there[name]
		assert.Equal(t, want.kind, got.kind, name)
		assert.Equal(t, slices.Sorted(maps.Keys(want.labels)), slices.Sorted(maps.Keys(got.labels)), "labels of %s", name)
		for label, values := range want.labels {
			if values != nil {
				assert.Equal(t, values, got.labels[label], "%s of %s", label, name)
			}
		}
	}
	for _, line := range []string{
		`rouse_requests_total{outcome="held",workload="tool"} 1`,
		`rouse_requests_total{outcome="warm",workload="tool"} 1`,
		`rouse_added_latency_seconds_count{path="cold",workload="tool"} 1`,
		`rouse_added_latency_seconds_count{path="warm",workload="tool"} 1`,
		`rouse_added_latency_seconds_bucket{path="warm",workload="tool",le="2.5e-05"}`,
		`rouse_added_latency_seconds_bucket{path="cold",workload="tool",le="60"}`,
		`rouse_wake_duration_seconds_count{workload="tool"} 1`,
		`rouse_wakes_total{result="ready",trigger="request",workload="tool"} 1`,
		`rouse_workload_phase{phase="ready",workload="tool"} 1`,
		`rouse_workload_phase{phase="asleep",workload="tool"} 0`,
		`rouse_runtime_request_duration_seconds_count{op="start",result="ok",runtime="process"} 1`,
		`rouse_nats_connected 1`,
		`rouse_config_last_reload_successful 1`,
	} {
		assert.Contains(t, page, line)
	}
}

// usedNode has had a cold and a warm request, and both are in its metrics.
func usedNode(t *testing.T) *node {
	t.Helper()
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "")})
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	eventually(t, "the release and the warm request are in the metrics", func() bool {
		page := n.metrics()
		return strings.Contains(page, `rouse_wake_phase_seconds_count{phase="release",workload="tool"} 1`) &&
			strings.Contains(page, `rouse_requests_total{outcome="warm",workload="tool"} 1`)
	})
	return n
}

// metrics is the page that Prometheus reads.
func (n *node) metrics() string {
	n.t.Helper()
	resp, err := client.Get(n.admin + "/metrics")
	require.NoError(n.t, err)
	require.Equal(n.t, http.StatusOK, resp.StatusCode)
	return drainAll(resp)
}

var (
	sampled   = regexp.MustCompile(`^(\w+)(?:\{(.*)\})? \S+$`)
	labelled  = regexp.MustCompile(`(\w+)="((?:[^"\\]|\\.)*)"`)
	ofBuckets = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// meters reads a page in Prometheus' text format.
func meters(t *testing.T, page string) map[string]meter {
	t.Helper()
	there := map[string]meter{}
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			there[name] = meter{kind, map[string][]string{}}
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := sampled.FindStringSubmatch(line)
		require.NotNil(t, m, "a sample: %s", line)
		f, ok := there[m[1]]
		if !ok {
			f, ok = there[ofBuckets.ReplaceAllString(m[1], "")]
		}
		require.True(t, ok, "a sample of no meter: %s", line)
		f.add(t, m[2])
	}
	return there
}

func (f meter) add(t *testing.T, labels string) {
	t.Helper()
	for _, l := range labelled.FindAllStringSubmatch(labels, -1) {
		if l[1] == "le" && f.kind == "histogram" {
			continue
		}
		value, err := strconv.Unquote(`"` + l[2] + `"`)
		require.NoError(t, err)
		if at, known := slices.BinarySearch(f.labels[l[1]], value); !known {
			f.labels[l[1]] = slices.Insert(f.labels[l[1]], at, value)
		}
	}
}

// documented finds the metrics that a table begins its rows with.
var documented = regexp.MustCompile("(?m)^\\| `(rouse_\\w+)(?:\\{([\\w,]+)\\})?` \\| (counter|gauge|histogram)\\b")

// docs/metrics.md has every metric of Rouse's own as it is served, and none
// else. Most of those on NATS are in docs/nats.md.
func TestDocumentedMetricsAreThoseServed(t *testing.T) {
	there := meters(t, usedNode(t).metrics())
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = true
		got, served := there[m[1]]
		if !served {
			assert.Contains(t, onlyWhenUsed, m[1], "docs/metrics.md lists what is not served")
			continue
		}
		var labels []string
		if m[2] != "" {
			labels = strings.Split(m[2], ",")
		}
		assert.Equal(t, got.kind, m[3], m[1])
		assert.ElementsMatch(t, slices.Collect(maps.Keys(got.labels)), labels, "labels of %s", m[1])
	}
	for name := range there {
		if strings.HasPrefix(name, "rouse_") && !strings.HasPrefix(name, "rouse_nats_") {
			assert.True(t, listed[name], "docs/metrics.md lacks %s", name)
		}
	}
	for name := range promised {
		assert.True(t, listed[name], "docs/metrics.md lacks %s", name)
	}
}

// onlyWhenUsed are served once what they count is configured or has happened.
var onlyWhenUsed = []string{
	"rouse_sablier_calls_total", "rouse_webhook_deliveries_total", "rouse_trace_spans_total", "rouse_nats_errors_total",
}
