package events_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func TestManyRolesProvisionAServerThatJustStarted(t *testing.T) {
	s := eventstest.Start(t)
	s.Stop()
	s.Resume()
	var roles sync.WaitGroup
	for i := range 10 {
		b, err := events.Connect(t.Context(), events.Config{Server: s, Name: fmt.Sprint(i)})
		require.NoError(t, err)
		t.Cleanup(b.Close)
		roles.Go(func() { assert.NoError(t, b.Provision(within(t, patience))) })
	}
	roles.Wait()
	_, err := s.Bus("rouse").State(t.Context(), "wiki")
	require.NoError(t, err)
}

func TestProvisionBringsStreamsUpToDateAndKeepsWhatIsInThem(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	want := mustPut(t, b, workload.State{Workload: "wiki", Phase: workload.Ready})
	js := admin(t, s)
	stream, err := js.Stream(t.Context(), "KV_ROUSE_STATE")
	require.NoError(t, err)
	wrong := stream.CachedInfo().Config
	wrong.RePublish, wrong.Description, wrong.MaxBytes = nil, "as an older one made it", 1<<30
	_, err = js.UpdateStream(t.Context(), wrong)
	require.NoError(t, err)

	require.NoError(t, b.Provision(t.Context()))
	stream, err = js.Stream(t.Context(), "KV_ROUSE_STATE")
	require.NoError(t, err)
	assert.NotNil(t, stream.CachedInfo().Config.RePublish)
	assert.EqualValues(t, 1<<30, stream.CachedInfo().Config.MaxBytes, "what an operator set stays")
	read, err := b.State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.Equal(t, want, read)
}

func TestStreamsAreAsDesigned(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	wakesOf(t, b, "node.1")
	js := admin(t, s)
	config := func(name string) jetstream.StreamConfig {
		stream, err := js.Stream(t.Context(), name)
		require.NoError(t, err)
		c := stream.CachedInfo().Config
		assert.Equal(t, jetstream.FileStorage, c.Storage, name)
		assert.Equal(t, 1, c.Replicas, name)
		return c
	}
	wakes := config("ROUSE_WAKES")
	assert.Equal(t, jetstream.WorkQueuePolicy, wakes.Retention)
	assert.EqualValues(t, 1, wakes.MaxMsgsPerSubject)
	assert.True(t, wakes.DiscardNewPerSubject)
	assert.Equal(t, jetstream.DiscardNew, wakes.Discard)
	assert.Equal(t, 2*time.Minute, wakes.MaxAge)
	assert.EqualValues(t, -1, wakes.MaxBytes)
	assert.Equal(t, "rouse.v1.state.>", config("KV_ROUSE_STATE").RePublish.Destination)
	assert.Equal(t, "rouse.v1.workload.>", config("KV_ROUSE_WORKLOADS").RePublish.Destination)
	history := config("ROUSE_EVENTS")
	assert.Equal(t, 7*24*time.Hour, history.MaxAge)
	assert.EqualValues(t, 100_000, history.MaxMsgs)

	eventually(t, patience, func() bool {
		consumer, err := js.Consumer(t.Context(), "ROUSE_WAKES", "scaler-node=2E1")
		if err != nil {
			return false
		}
		c := consumer.CachedInfo().Config
		return assert.Equal(t, 5*time.Second, c.AckWait) && assert.Equal(t, -1, c.MaxDeliver) &&
			assert.Empty(t, c.BackOff) && assert.Equal(t, 4, c.MaxAckPending)
	}, "the consumer is made")
}

func TestMessagesAreCloudEventsWithATrace(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Connect(events.Config{Server: s, Name: "gw 1", Role: "gateway"})
	require.NoError(t, b.PublishWake(t.Context(), "n", workload.Wake{Workload: "wiki", Traceparent: trace}))
	_, err := b.PutState(t.Context(), workload.State{Workload: "wiki", Wake: &workload.Wake{Traceparent: "evil\r\nheader: x"}})
	require.NoError(t, err)
	js := admin(t, s)
	last := func(stream, subject string) *jetstream.RawStreamMsg {
		in, err := js.Stream(t.Context(), stream)
		require.NoError(t, err)
		msg, err := in.GetLastMsgForSubject(t.Context(), subject)
		require.NoError(t, err)
		return msg
	}
	h := last("ROUSE_WAKES", "rouse.v1.wake.n.wiki").Header
	at, err := time.Parse(time.RFC3339Nano, h["ce-time"][0])
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), at, time.Minute)
	assert.NotEmpty(t, h["ce-id"][0])
	for name, want := range map[string]string{
		"ce-specversion": "1.0", "ce-type": "dev.rouse.wake.v1", "ce-source": "/rouse/gateway/gw%201",
		"ce-subject": "wiki", "ce-datacontenttype": "application/json", "traceparent": trace,
	} {
		assert.Equal(t, []string{want}, h[name], name)
	}
	h = last("KV_ROUSE_STATE", "$KV.ROUSE_STATE.wiki").Header
	assert.Equal(t, []string{"dev.rouse.state.v1"}, h["ce-type"])
	assert.NotContains(t, h, "traceparent", "what is not one is not passed on")
}
