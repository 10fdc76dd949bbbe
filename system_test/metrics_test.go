package system_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every metric that is promised is there after one cold and one warm request.
func TestEveryPromisedMetricIsThere(t *testing.T) {
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "")})
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	var page string
	eventually(t, "the release is in the metrics", func() bool {
		resp, err := client.Get(n.admin + "/metrics")
		require.NoError(t, err)
		page = drainAll(resp)
		return strings.Contains(page, `rouse_wake_phase_seconds_count{phase="release",workload="tool"} 1`)
	})
	for _, line := range []string{
		`rouse_requests_total{outcome="held",workload="tool"} 1`,
		`rouse_requests_total{outcome="warm",workload="tool"} 1`,
		`rouse_added_latency_seconds_count{path="cold",workload="tool"} 1`,
		`rouse_added_latency_seconds_count{path="warm",workload="tool"} 1`,
		`rouse_added_latency_seconds_bucket{path="warm",workload="tool",le="2.5e-05"}`,
		`rouse_wake_duration_seconds_count{workload="tool"} 1`,
		`rouse_wake_phase_seconds_count{phase="wake",workload="tool"} 1`,
		`rouse_wake_phase_seconds_count{phase="queue",workload="tool"} 1`,
		`rouse_wake_phase_seconds_count{phase="start",workload="tool"} 1`,
		`rouse_wake_phase_seconds_count{phase="probe",workload="tool"} 1`,
		`rouse_wake_phase_seconds_count{phase="ready",workload="tool"} 1`,
		`rouse_wakes_total{result="ready",trigger="request",workload="tool"} 1`,
		`rouse_queue_requests{workload="tool"} 0`,
		`rouse_queue_rejected_total{`,
		`rouse_in_flight_requests{workload="tool"} 0`,
		`rouse_workload_phase{phase="ready",workload="tool"} 1`,
		`rouse_workload_phase{phase="asleep",workload="tool"} 0`,
		`rouse_workload_running_seconds_total{workload="tool"}`,
		`rouse_workload_asleep_seconds_total{workload="tool"}`,
		`rouse_runtime_request_duration_seconds_count{op="start",result="ok",runtime="process"} 1`,
		`rouse_nats_connected 1`,
		`rouse_event_lag_seconds`,
		`rouse_config_last_reload_successful 1`,
		`rouse_build_info{`,
	} {
		assert.Contains(t, page, line)
	}
}
