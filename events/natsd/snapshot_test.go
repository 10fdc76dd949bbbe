package natsd_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/events/series"
)

// scrape gives each series of a name by its labels.
func scrape(t *testing.T, s *natsd.Server) map[string][]sample {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(series.NewCollector(s.Snapshot)))
	families, err := reg.Gather()
	require.NoError(t, err)
	all := map[string][]sample{}
	for _, f := range families {
		assert.Equal(t, dto.MetricType_GAUGE, f.GetType(), f.GetName())
		for _, m := range f.GetMetric() {
			one := sample{value: m.GetGauge().GetValue(), labels: map[string]string{}}
			for _, l := range m.GetLabel() {
				one.labels[l.GetName()] = l.GetValue()
			}
			all[f.GetName()] = append(all[f.GetName()], one)
		}
	}
	return all
}

type sample struct {
	value  float64
	labels map[string]string
}

// one gives the only series of a name.
func one(t *testing.T, all map[string][]sample, name string) sample {
	t.Helper()
	require.Len(t, all[name], 1, name)
	return all[name][0]
}

func TestSnapshotHasWhatDashboardsAskFor(t *testing.T) {
	s := start(t, natsd.Options{Name: "box"})
	nc, err := dial(t, "", nats.InProcessServer(s))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}, MaxMsgs: 100, MaxBytes: 1 << 20})
	require.NoError(t, err)
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
		Durable: "billing", Description: "writes bills", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 7, AckWait: 50 * time.Millisecond,
	})
	require.NoError(t, err)

	before := scrape(t, s)
	assert.NotContains(t, before, "jetstream_consumer_last_delivery_seconds", "it was never")
	assert.NotContains(t, before, "rouse_nats_stream_last_message_age_seconds")

	for range 3 {
		_, err := js.Publish(t.Context(), "orders.new", []byte("x"))
		require.NoError(t, err)
	}
	for range 2 { // the second one is the first again
		batch, err := consumer.Fetch(1, jetstream.FetchMaxWait(5*time.Second))
		require.NoError(t, err)
		<-batch.Messages()
		time.Sleep(60 * time.Millisecond)
	}

	all := scrape(t, s)
	labels := map[string]string{
		"server_id": "box", "server_name": "box", "cluster": "", "domain": "", "meta_leader": "", "is_meta_leader": "true",
		"account": "$G", "account_name": "$G", "account_id": "$G",
		"stream_name": "ORDERS", "stream_leader": "box", "is_stream_leader": "true", "stream_raft_group": "",
		"consumer_name": "billing", "consumer_leader": "", "is_consumer_leader": "true", "consumer_desc": "writes bills",
	}
	for name, want := range map[string]float64{
		"jetstream_consumer_num_pending": 2, "jetstream_consumer_num_ack_pending": 1, "jetstream_consumer_num_redelivered": 1,
		"jetstream_consumer_delivered_consumer_seq": 2, "jetstream_consumer_delivered_stream_seq": 1,
		"jetstream_consumer_ack_floor_stream_seq": 0, "jetstream_consumer_ack_floor_consumer_seq": 0,
	} {
		got := one(t, all, name)
		assert.InDelta(t, want, got.value, 0, name)
		assert.Equal(t, labels, got.labels, name)
	}
	assert.InDelta(t, 7, one(t, all, "rouse_nats_consumer_max_ack_pending").value, 0)
	assert.Contains(t, all, "jetstream_consumer_num_waiting")
	assert.Contains(t, all, "jetstream_consumer_last_delivery_seconds")

	for _, of := range []string{"consumer_name", "consumer_leader", "is_consumer_leader", "consumer_desc"} {
		delete(labels, of)
	}
	for name, want := range map[string]float64{
		"jetstream_stream_total_messages": 3, "jetstream_stream_first_seq": 1, "jetstream_stream_last_seq": 3,
		"jetstream_stream_consumer_count": 1, "jetstream_stream_subject_count": 1,
		"jetstream_stream_limit_messages": 100, "jetstream_stream_limit_bytes": 1 << 20,
	} {
		got := one(t, all, name)
		assert.InDelta(t, want, got.value, 0, name)
		assert.Equal(t, labels, got.labels, name)
	}
	assert.Positive(t, one(t, all, "jetstream_stream_total_bytes").value)
	assert.Less(t, one(t, all, "rouse_nats_stream_last_message_age_seconds").value, 60.0)

	for name, want := range map[string]float64{
		"jetstream_server_jetstream_disabled": 0, "jetstream_server_total_streams": 1, "jetstream_server_total_consumers": 1, "jetstream_server_total_messages": 3,
		"gnatsd_healthz_status": 0, "gnatsd_varz_connections": 1, "gnatsd_varz_slow_consumers": 0, "gnatsd_varz_http_port": 0,
		"gnatsd_varz_slow_consumer_stats_clients": 0,
	} {
		assert.InDelta(t, want, one(t, all, name).value, 0, name)
	}
	for _, name := range []string{
		"gnatsd_varz_cpu", "gnatsd_varz_mem", "gnatsd_varz_in_msgs", "gnatsd_varz_out_msgs", "gnatsd_varz_in_bytes", "gnatsd_varz_out_bytes",
		"gnatsd_varz_subscriptions", "gnatsd_varz_jetstream_stats_storage", "gnatsd_varz_jetstream_config_max_storage",
		"gnatsd_varz_jetstream_stats_memory", "gnatsd_varz_jetstream_config_max_memory", "gnatsd_varz_jetstream_stats_api_errors",
		"jetstream_server_max_memory", "jetstream_server_max_storage", "jetstream_server_total_message_bytes",
		"jetstream_account_storage_used", "jetstream_account_max_storage", "jetstream_account_memory_used", "jetstream_account_max_memory",
	} {
		assert.Equal(t, "box", one(t, all, name).labels["server_id"], name)
	}
	assert.Equal(t, "box", one(t, all, "gnatsd_varz_server_name").labels["value"])
	assert.Greater(t, one(t, all, "gnatsd_varz_start").value, 1e12, "milliseconds")
}

func TestManyStreamsOfOthersAreShownInPart(t *testing.T) {
	s := start(t, natsd.Options{})
	nc, err := dial(t, "", nats.InProcessServer(s))
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for i := range 205 {
		name := "S" + time.Duration(i).String()
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
	}
	all := scrape(t, s)
	assert.Len(t, all["jetstream_stream_total_messages"], 200)
	assert.InDelta(t, 205, one(t, all, "jetstream_server_total_streams").value, 0, "and all are counted")
}

func TestSnapshotOfAnEndedServerIsEmpty(t *testing.T) {
	s := start(t, natsd.Options{})
	s.Shutdown()
	assert.Empty(t, scrape(t, s))
}

func BenchmarkSnapshot(b *testing.B) {
	s, err := natsd.Start(b.Context(), natsd.Options{StoreDir: b.TempDir()})
	require.NoError(b, err)
	defer s.Shutdown()
	nc, err := nats.Connect("", nats.InProcessServer(s))
	require.NoError(b, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	for _, name := range []string{"A", "B", "C", "D", "E", "F"} {
		_, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: name})
		require.NoError(b, err)
	}
	reg := prometheus.NewRegistry()
	require.NoError(b, reg.Register(series.NewCollector(s.Snapshot)))
	for b.Loop() {
		_, err := reg.Gather()
		require.NoError(b, err)
	}
}
