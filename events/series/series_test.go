package series_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events/series"
)

// shown gives the first series of each name.
func shown(t *testing.T, s series.Snapshot) map[string]*dto.Metric {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(series.NewCollector(func() series.Snapshot { return s })))
	families, err := reg.Gather()
	require.NoError(t, err)
	all := map[string]*dto.Metric{}
	for _, f := range families {
		all[f.GetName()] = f.GetMetric()[0]
	}
	return all
}

func TestWhatIsNotKnownHasNoSeries(t *testing.T) {
	assert.Empty(t, shown(t, series.Snapshot{}))
	all := shown(t, series.Snapshot{Totals: &series.Totals{Messages: -1}})
	assert.Len(t, all, 6)
	assert.NotContains(t, all, "jetstream_server_total_messages")
}

func TestAServerThatIsNotWellIsOne(t *testing.T) {
	all := shown(t, series.Snapshot{Health: "unavailable"})
	assert.InDelta(t, 1, all["gnatsd_healthz_status"].GetGauge().GetValue(), 0)
	assert.InDelta(t, 0, all["gnatsd_healthz_status_value"].GetGauge().GetValue(), 0)
	assert.Equal(t, "unavailable", all["gnatsd_healthz_status_value"].GetLabel()[1].GetValue())
}

func TestOfVarzNumbersAndAFewTextsAreShown(t *testing.T) {
	all := shown(t, series.Snapshot{Varz: map[string]any{
		"mem": 5.0, "start": "2026-01-01T00:00:00.5Z", "version": "2.15.3", "git_commit": "abc",
		"auth_required": true, "connect_urls": []any{"a"}, "tags": nil, "odd-name!": 1.0,
		"jetstream":      map[string]any{"stats": map[string]any{"storage": 7.0, "on": true}},
		"http_req_stats": map[string]any{"/varz": 1.0},
	}})
	values := map[string]float64{}
	for name, m := range all {
		values[name] = m.GetGauge().GetValue()
	}
	assert.Equal(t, map[string]float64{
		"gnatsd_varz_mem": 5, "gnatsd_varz_start": 1767225600500, "gnatsd_varz_version": 1, "gnatsd_varz_jetstream_stats_storage": 7,
	}, values)
	assert.Equal(t, "2.15.3", all["gnatsd_varz_version"].GetLabel()[1].GetValue())
}

func TestSince(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	before, after := now.Add(-time.Second), now.Add(time.Second)
	assert.Negative(t, series.Since(now, nil))
	assert.Negative(t, series.Since(now, &time.Time{}))
	assert.Equal(t, time.Second, series.Since(now, &before))
	assert.Zero(t, series.Since(now, &after), "two clocks may differ")
}
