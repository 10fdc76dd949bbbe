package events_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/events/series"
	"github.com/rouse-dev/rouse/workload"
)

// gathered gives the value of every series: its name, and of its labels the
// values of those that are asked for.
func gathered(t *testing.T, reg prometheus.Gatherer, labels ...string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := f.GetName()
			for _, l := range m.GetLabel() {
				for _, want := range labels {
					if l.GetName() == want {
						key += " " + l.GetValue()
					}
				}
			}
			all[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return all
}

func monitored(t *testing.T, m *events.Monitor) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(series.NewCollector(m.Snapshot)))
	return reg
}

func nodes(names ...string) func() []string { return func() []string { return names } }

func TestMonitorTellsWhatAClientMayKnow(t *testing.T) {
	s := eventstest.Start(t)
	b := s.TCP("scaler")
	handed := make(chan struct{}, 10)
	serve(t, b, "n", func(ctx context.Context, w workload.Wake) events.Verdict {
		handed <- struct{}{}
		<-ctx.Done()
		return events.Done()
	})
	publish(t, b, "n", "a")
	publish(t, b, "n", "b")
	receive(t, handed, patience)
	receive(t, handed, patience)

	s.TCP("away") // its consumer is there, and nobody asks
	_, err := admin(t, s).CreateConsumer(t.Context(), "ROUSE_WAKES", jetstream.ConsumerConfig{
		Durable: "scaler-m", FilterSubject: "rouse.v1.wake.m.*", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 5,
	})
	require.NoError(t, err)
	publish(t, b, "m", "c")

	all := gathered(t, monitored(t, b.Monitor("rouse/n", nodes("n", "m", "n", "none"))), "server_id", "stream_name", "consumer_name")
	for key, want := range map[string]float64{
		"jetstream_consumer_num_pending scaler-n rouse/n ROUSE_WAKES":      0,
		"jetstream_consumer_num_ack_pending scaler-n rouse/n ROUSE_WAKES":  2,
		"jetstream_consumer_num_redelivered scaler-n rouse/n ROUSE_WAKES":  0,
		"jetstream_consumer_num_pending scaler-m rouse/n ROUSE_WAKES":      1,
		"jetstream_consumer_num_waiting scaler-m rouse/n ROUSE_WAKES":      0,
		"rouse_nats_consumer_max_ack_pending scaler-m rouse/n ROUSE_WAKES": 5,
		"jetstream_stream_total_messages rouse/n ROUSE_WAKES":              3,
		"jetstream_stream_limit_messages rouse/n ROUSE_WAKES":              100_000,
		"rouse_nats_stream_silent rouse/n ROUSE_WAKES":                     0,
		"jetstream_server_total_streams rouse/n":                           6,
		"jetstream_server_total_consumers rouse/n":                         2,
		"jetstream_account_max_storage rouse/n":                            -1,
	} {
		assert.Contains(t, all, key)
		assert.InDelta(t, want, all[key], 0, key)
	}
	assert.Positive(t, all["jetstream_consumer_num_waiting scaler-n rouse/n ROUSE_WAKES"])
	assert.Contains(t, all, "rouse_nats_stream_last_message_age_seconds rouse/n ROUSE_WAKES")
	assert.NotContains(t, all, "rouse_nats_stream_last_message_age_seconds rouse/n ROUSE_EVENTS", "it never had one")
	for key := range all {
		assert.NotContains(t, key, "gnatsd_", "only the server knows that")
		assert.NotContains(t, key, "jetstream_server_total_messages")
	}
}

func TestManyScrapesCostFewRequests(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("scaler")
	many := make([]string, 100)
	for i := range many {
		many[i] = "n" + strings.Repeat("x", i)
	}
	reg := monitored(t, b.Monitor("rouse/n", nodes(many...)))

	user, password := s.Credentials()
	witness, err := nats.Connect(s.URL(), nats.UserInfo(user, password))
	require.NoError(t, err)
	t.Cleanup(witness.Close)
	heard, err := witness.SubscribeSync("$JS.API.>")
	require.NoError(t, err)
	require.NoError(t, witness.Flush())
	begun := time.Now()
	for range 100 {
		gathered(t, reg)
	}
	rounds := 1 + int(time.Since(begun)/(5*time.Second))
	require.NoError(t, witness.Flush())
	n, _, err := heard.Pending()
	require.NoError(t, err)
	assert.LessOrEqual(t, n, rounds*(1+6+20), "each 5 s at most")
	assert.GreaterOrEqual(t, n, 1+6+20)
}

func TestMonitorOfAServerThatIsAwayOrDumbIsBounded(t *testing.T) {
	s := eventstest.Start(t)
	proxy := eventstest.NewProxy(t, s.Addr())
	b := s.Connect(events.Config{URL: proxy.URL(), Name: "scaler"})
	names := []string{"ROUSE_WAKES", "ROUSE_EVENTS", "ROUSE_ACTIVITY", "KV_ROUSE_STATE", "KV_ROUSE_WORKLOADS", "KV_ROUSE_PROBLEMS"}

	proxy.Mute()
	begun := time.Now()
	got := b.Monitor("x", nodes("n")).Snapshot()
	assert.Less(t, time.Since(begun), prompt)
	assert.ElementsMatch(t, names, got.Silent)
	assert.Nil(t, got.Totals)

	s.Stop()
	eventually(t, patience, func() bool { return !b.Connected() }, "the loss is noticed")
	begun = time.Now()
	all := gathered(t, monitored(t, b.Monitor("x", nodes("n"))), "stream_name")
	assert.Less(t, time.Since(begun), prompt)
	assert.Len(t, all, len(names), "nothing but that they are silent")
	for _, name := range names {
		assert.InDelta(t, 1, all["rouse_nats_stream_silent "+name], 0)
	}
}

func TestMonitorOfARoleWithFewRightsHarmsNothing(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"), role(t, "scaler"))
	require.NoError(t, as(t, s, "scaler", "s").Provision(within(t, patience)))
	gateway := as(t, s, "gateway", "g")
	got := gateway.Monitor("x", nodes("n")).Snapshot()
	assert.Empty(t, got.Silent)
	require.Len(t, got.Streams, 6)
	assert.Empty(t, got.Streams[0].Readers, "a gateway may not know")
	assert.NoError(t, gateway.Err(), "and is well all the same")
}

func TestWhatAConnectionCarriesIsCounted(t *testing.T) {
	s := eventstest.Start(t)
	reg := prometheus.NewPedanticRegistry()
	b := s.Connect(events.Config{URL: s.URL(), Name: "a", Registerer: reg})
	other := s.Connect(events.Config{URL: s.URL(), Name: "b", Registerer: reg})
	s.Restart()
	eventually(t, patience, func() bool { return b.Connected() && other.Connected() }, "both are back")
	mustPut(t, b, workload.State{Workload: "wiki"})
	all := gathered(t, reg)
	assert.InDelta(t, 2, all["rouse_nats_reconnects_total"], 0)
	assert.Greater(t, all["rouse_nats_sent_messages_total"], 10.0)
	assert.Greater(t, all["rouse_nats_received_bytes_total"], 1000.0)

	b.Close()
	other.Close()
	after := gathered(t, reg)
	assert.InDelta(t, 2, after["rouse_nats_reconnects_total"], 0, "what has ended counts on")
	assert.GreaterOrEqual(t, after["rouse_nats_sent_messages_total"], all["rouse_nats_sent_messages_total"])
}

// A handler that does not come after drops messages here, of which the server
// knows nothing.
func TestMessagesDroppedHereAreCounted(t *testing.T) {
	s := eventstest.Start(t)
	reg := prometheus.NewPedanticRegistry()
	b := s.Connect(events.Config{URL: s.URL(), Name: "scaler", Registerer: reg})
	gateway := s.Bus("gateway")
	held, release := make(chan struct{}, 1), make(chan struct{})
	stop := background(t, func(ctx context.Context) error {
		return b.ServeDrain(ctx, "g", func(string, uint64) workload.Drained {
			select {
			case held <- struct{}{}:
			default:
			}
			<-release
			return workload.Drained{}
		})
	})
	eventually(t, patience, func() bool {
		go func() { _, _ = gateway.Drain(within(t, 50*time.Millisecond), "wiki", 1, nil) }()
		select {
		case <-held:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	}, "the handler is held up")

	user, password := s.Credentials()
	witness, err := nats.Connect(s.URL(), nats.UserInfo(user, password))
	require.NoError(t, err)
	t.Cleanup(witness.Close)
	for range 5000 {
		require.NoError(t, witness.Publish("rouse.v1.drain.wiki", nil))
	}
	require.NoError(t, witness.Flush())
	eventually(t, patience, func() bool {
		return gathered(t, reg, "subject")["rouse_nats_dropped_messages_total drain"] >= 5000-4096
	}, "drops are seen")
	before := gathered(t, reg, "subject")
	assert.InDelta(t, 4096, before["rouse_nats_waiting_messages drain"], 0)
	assert.Positive(t, gathered(t, reg, "kind")["rouse_nats_errors_total slow_consumer"])
	close(release)
	stop()
	assert.GreaterOrEqual(t, gathered(t, reg, "subject")["rouse_nats_dropped_messages_total drain"], before["rouse_nats_dropped_messages_total drain"], "and not forgotten")
}

func TestAdvisoriesBecomeTrouble(t *testing.T) {
	s := eventstest.Start(t)
	reg := prometheus.NewPedanticRegistry()
	b := s.Connect(events.Config{Server: s, Name: "scaler", Registerer: reg})
	background(t, b.FollowAdvisories)
	js := admin(t, s)
	assert.Empty(t, b.Trouble())

	// Of another application: none of our business.
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER"})
	require.NoError(t, err)

	consumer, err := js.CreateConsumer(t.Context(), "ROUSE_EVENTS", jetstream.ConsumerConfig{
		Durable: "spy", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 1, AckWait: 50 * time.Millisecond,
	})
	require.NoError(t, err)
	eventually(t, patience, func() bool { // again, if nobody listened yet
		require.NoError(t, b.RecordEvent(t.Context(), workload.Event{Workload: "wiki", Kind: "ready"}))
		batch, err := consumer.FetchNoWait(1)
		if err == nil {
			<-batch.Messages()
		}
		return len(b.Trouble()) == 1
	}, "it is told")
	got := b.Trouble()[0]
	assert.Equal(t, workload.ProblemNATS, got.Kind)
	assert.Equal(t, "nats consumer spy of ROUSE_EVENTS", got.Place)
	assert.Contains(t, got.Message, "delivered 1 times without an answer")

	require.NoError(t, js.DeleteStream(t.Context(), "OTHER"))
	require.NoError(t, js.DeleteStream(t.Context(), "ROUSE_ACTIVITY"))
	eventually(t, patience, func() bool { return len(b.Trouble()) == 2 }, "it is told")
	places := []string{b.Trouble()[0].Place, b.Trouble()[1].Place} // the newest first: the consumer may be told of once more
	assert.Contains(t, places, "nats stream ROUSE_ACTIVITY")
	all := gathered(t, reg, "kind", "stream_name")
	assert.InDelta(t, 1, all["rouse_nats_advisories_total stream_deleted ROUSE_ACTIVITY"], 0)
	assert.Positive(t, all["rouse_nats_advisories_total consumer_max_deliveries ROUSE_EVENTS"])
}

func TestWhoMayNotHearAdvisoriesIsWellAllTheSame(t *testing.T) {
	few := role(t, "gateway")
	few.Subscribe = []string{"rouse.v1.state.>", "_INBOX_gateway.>"}
	s := eventstest.Start(t, few)
	b := as(t, s, "gateway", "g")
	require.ErrorIs(t, b.FollowAdvisories(within(t, patience)), events.ErrDenied)
	_, err := b.State(t.Context(), "wiki") // whatever is told of the others comes before its answer
	require.ErrorIs(t, err, events.ErrNoStream)
	assert.NoError(t, b.Err())
}

func TestAClusterThatLosesItsQuorumIsTrouble(t *testing.T) {
	if testing.Short() {
		t.Skip("a server takes 10 s to be sure")
	}
	c := eventstest.StartCluster(t, 3)
	b, err := events.Connect(within(t, patience), events.Config{URL: c.URL(), Name: "scaler", Replicas: 3})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	require.NoError(t, b.Provision(within(t, 2*patience)))
	background(t, b.FollowAdvisories)
	got := b.Monitor("x", nodes()).Snapshot()
	require.Empty(t, got.Silent)
	assert.NotEmpty(t, got.Streams[0].Leader)
	assert.NotEmpty(t, got.Streams[0].RaftGroup)
	assert.Equal(t, "test", got.Server.Cluster)

	c.StopMost()
	lost := func() (places []string) {
		for _, p := range b.Trouble() {
			if strings.Contains(p.Message, "more than half") {
				places = append(places, p.Place)
			}
		}
		return places
	}
	eventually(t, 3*patience, func() bool { return len(lost()) >= 6 }, "all streams have lost it")
	assert.Contains(t, lost(), "nats stream KV_ROUSE_STATE")
	assert.NotEmpty(t, b.Monitor("x", nodes()).Snapshot().Silent)

	c.Resume(t)
	eventually(t, 3*patience, func() bool { return len(lost()) == 0 }, "they have a leader again")
	eventually(t, patience, func() bool { return len(b.Monitor("x", nodes()).Snapshot().Silent) == 0 }, "they answer again")
}
