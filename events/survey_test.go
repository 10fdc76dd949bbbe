package events_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func peer(s events.Survey, role, name string) (events.SurveyedPeer, bool) {
	i := slices.IndexFunc(s.Peers, func(p events.SurveyedPeer) bool { return p.Role == role && p.Name == name })
	if i < 0 {
		return events.SurveyedPeer{}, false
	}
	return s.Peers[i], true
}

func TestASurveyTellsWhoIsThere(t *testing.T) {
	server := eventstest.Start(t)
	scaler := server.Bus("scaler")
	gateway := server.Bus("gateway")
	require.NoError(t, scaler.PutWorkload(t.Context(), workload.Workload{Name: "web", Node: "n"}))
	require.NoError(t, gateway.ReportActivity(t.Context(), workload.Activity{Gateway: "gw"}))
	require.NoError(t, gateway.ReportActivity(t.Context(), workload.Activity{Gateway: "gone", Leaving: true}))

	s, err := scaler.Survey(t.Context())
	require.NoError(t, err)
	assert.True(t, s.Told)
	assert.Less(t, s.Offset.Abs(), time.Second)
	assert.Len(t, s.Streams, 6)
	for _, stream := range s.Streams {
		assert.False(t, stream.Missing, stream.Name)
		assert.False(t, stream.Headless, stream.Name)
	}
	got, ok := peer(s, "gateway", "gw")
	require.True(t, ok, "%+v", s.Peers)
	assert.Less(t, got.Offset.Abs(), time.Second)
	assert.Less(t, got.Age, time.Minute)
	assert.False(t, got.Left)
	got, _ = peer(s, "gateway", "gone")
	assert.True(t, got.Left)
	_, ok = peer(s, "rouse", "scaler")
	assert.True(t, ok, "who described the workload: %+v", s.Peers)
	assert.Equal(t, map[string]int{"n": 0}, s.Nodes, "nobody asks for its wakes")

	go func() {
		_ = scaler.ServeWakes(t.Context(), "n", 1, func(ctx context.Context, _ workload.Wake) events.Verdict { return events.Done() })
	}()
	require.Eventually(t, func() bool {
		s, err := gateway.Survey(t.Context())
		return err == nil && s.Nodes["n"] == 1
	}, 20*time.Second, 10*time.Millisecond, "now one does")
}

func TestASurveyTellsWhoseClockIsWrong(t *testing.T) {
	server := eventstest.Start(t)
	bus := server.Bus("scaler")
	_, err := admin(t, server).PublishMsg(t.Context(), &nats.Msg{
		Subject: "rouse.v1.activity.early", Data: []byte(`{"gateway":"early"}`),
		Header: nats.Header{"ce-source": {"/rouse/gateway/early"}, "ce-time": {time.Now().Add(time.Hour).Format(time.RFC3339Nano)}},
	})
	require.NoError(t, err)
	_, err = admin(t, server).PublishMsg(t.Context(), &nats.Msg{Subject: "rouse.v1.activity.strange", Data: []byte("{")})
	require.NoError(t, err)
	s, err := bus.Survey(t.Context())
	require.NoError(t, err)
	got, ok := peer(s, "gateway", "early")
	require.True(t, ok)
	assert.InDelta(t, 1, got.Offset.Hours(), 0.01)
	_, ok = peer(s, "gateway", "strange")
	assert.False(t, ok, "nothing can be told of it")
}

// What a scaler and a gateway may ask differs, and neither is refused as a whole.
func TestASurveyNeedsNoMoreRightsThanARoleHas(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"), role(t, "scaler"))
	s.Bus("provisioner")
	gateway, scaler := as(t, s, "gateway", "g"), as(t, s, "scaler", "s")
	require.NoError(t, scaler.PutWorkload(t.Context(), workload.Workload{Name: "web", Node: "n"}))
	got, err := scaler.Survey(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"n": 0}, got.Nodes)
	got, err = gateway.Survey(t.Context())
	require.NoError(t, err)
	assert.Nil(t, got.Nodes)
	assert.Len(t, got.Streams, 6)
}

func TestASurveyTellsOfAStreamThatIsMissing(t *testing.T) {
	server := eventstest.Start(t)
	bus := server.Bus("scaler")
	require.NoError(t, admin(t, server).DeleteStream(t.Context(), "ROUSE_WAKES"))
	s, err := bus.Survey(t.Context())
	require.NoError(t, err)
	for _, stream := range s.Streams {
		assert.Equal(t, stream.Name == "ROUSE_WAKES", stream.Missing, stream.Name)
	}
}
