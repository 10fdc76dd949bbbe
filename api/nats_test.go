package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestNATSIsPutTogetherFromTheMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	vecs := map[string]*prometheus.GaugeVec{}
	set := func(name string, value float64, labels ...string) {
		var names, values []string
		for i := 0; i < len(labels); i += 2 {
			names, values = append(names, labels[i]), append(values, labels[i+1])
		}
		if vecs[name] == nil {
			vecs[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name}, names)
			require.NoError(t, reg.Register(vecs[name]))
		}
		vecs[name].WithLabelValues(values...).Set(value)
	}
	set("rouse_nats_connected", 1)
	set("rouse_nats_store_free_bytes", 5e9)
	set("rouse_nats_dropped_messages_total", 2, "subject", "state")
	set("rouse_nats_dropped_messages_total", 3, "subject", "activity")
	for _, server := range []string{"a", "b"} { // who show the same
		set("jetstream_stream_total_messages", 7, "stream_name", "ROUSE_WAKES", "server_id", server, "stream_leader", "a")
		set("jetstream_stream_total_bytes", 700, "stream_name", "ROUSE_WAKES", "server_id", server, "stream_leader", "a")
	}
	set("jetstream_stream_total_bytes", 300, "stream_name", "ROUSE_EVENTS", "server_id", "a", "stream_leader", "a")
	set("rouse_nats_stream_last_message_age_seconds", 12.5, "stream_name", "ROUSE_EVENTS", "server_id", "a")
	set("rouse_nats_stream_silent", 1, "stream_name", "ROUSE_WAKES", "server_id", "a")
	set("jetstream_consumer_num_pending", 4, "stream_name", "ROUSE_WAKES", "consumer_name", "scaler-local")
	set("jetstream_consumer_num_redelivered", 1, "stream_name", "ROUSE_WAKES", "consumer_name", "scaler-local")

	got := decode[api.NATS](t, serve(api.Config{Gatherer: reg}, newFake(), httptest.NewRequest(http.MethodGet, "/api/v1/nats", nil)).Body)
	assert.Equal(t, api.NATS{
		Connected: true, Dropped: 5, StoreBytes: 1000, FreeBytes: 5e9,
		Streams: []api.NATSStream{
			{Name: "ROUSE_EVENTS", Bytes: 300, LastAgeSeconds: 12.5},
			{Name: "ROUSE_WAKES", Messages: 7, Bytes: 700, Leader: "a", Silent: true},
		},
		Consumers: []api.NATSConsumer{{Stream: "ROUSE_WAKES", Name: "scaler-local", Pending: 4, Redelivered: 1}},
	}, got)
	none := get(newFake(), "/api/v1/nats")
	require.Equal(t, http.StatusOK, none.Code)
	assert.Contains(t, none.Body.String(), `"streams":[]`)
}
