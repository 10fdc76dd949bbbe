package scaler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// samples gives counters by value and histograms by count, as
// name{label,label} in the order of the label names.
func samples(t *testing.T, g prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var values []string
			for _, l := range m.Label {
				values = append(values, l.GetValue())
			}
			key := f.GetName() + "{" + strings.Join(values, ",") + "}"
			got[key] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

func TestMetricsTellWhatHappened(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"), spec("bad"), spec("found"))
		w.engine.plan("bad").startErr = errors.New("no")
		time.Sleep(10 * time.Second)
		n.wake(t, "wiki")
		n.Wake(t.Context(), ask("bad"))
		w.engine.byHand("found")
		time.Sleep(20 * time.Second)
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		_, _ = n.Logs(t.Context(), "wiki", 1)

		got := samples(t, n.reg)
		for key, want := range map[string]float64{
			"rouse_wakes_total{ready,request,wiki}":      1,
			"rouse_wakes_total{start_error,request,bad}": 1,
			"rouse_wakes_total{ready,adopted,found}":     1,
			"rouse_wake_duration_seconds{wiki}":          1,
			"rouse_wake_phase_seconds{wake,wiki}":        1,
			"rouse_wake_phase_seconds{queue,wiki}":       1,
			"rouse_wake_phase_seconds{start,wiki}":       1,
			"rouse_wake_phase_seconds{probe,wiki}":       1,
		} {
			assert.Equal(t, want, got[key], key)
		}
		for _, op := range []string{"start,ok", "start,error", "stop,ok", "logs,ok", "list,ok"} {
			op, result, _ := strings.Cut(op, ",")
			assert.NotZero(t, got["rouse_runtime_request_duration_seconds{"+op+","+result+",fake}"], op)
		}
		assert.InDelta(t, 20, got["rouse_workload_running_seconds_total{wiki}"], 0.5)
		assert.InDelta(t, 10, got["rouse_workload_asleep_seconds_total{wiki}"], 0.5)
		assert.InDelta(t, 30, got["rouse_workload_asleep_seconds_total{bad}"], 0.5)

		n.Update([]workload.Workload{spec("bad")})
		for key := range samples(t, n.reg) {
			assert.NotContains(t, key, "wiki", "a workload that is gone leaves nothing")
		}
	})
}
