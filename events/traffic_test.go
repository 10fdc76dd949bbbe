package events_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestActivityReachesTheScalers(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("scaler")
	got := make(chan workload.Activity, 100)
	background(t, func(ctx context.Context) error {
		return b.FollowActivity(ctx, func(a workload.Activity, _ time.Time) { got <- a })
	})
	gateway := s.TCP("gw.1")
	sent := workload.Activity{Gateway: "gw.1", Loads: []workload.Load{{Workload: "wiki", InFlight: 2, Queued: 1, IdleMS: -1}}}
	eventually(t, patience, func() bool {
		require.NoError(t, gateway.PublishActivity(sent))
		return len(got) > 0
	}, "an activity arrives")
	assert.Equal(t, sent, <-got)
}

func TestLongActivityArrivesInParts(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	board := workload.NewBoard()
	heard := make(chan struct{}, 1000)
	background(t, func(ctx context.Context) error {
		return b.FollowActivity(ctx, func(a workload.Activity, at time.Time) {
			board.Hear(a, at)
			heard <- struct{}{}
		})
	})
	sent := workload.Activity{Gateway: "gw"}
	for i := range 20_000 { // in one piece it would be larger than the server takes
		sent.Loads = append(sent.Loads, workload.Load{Workload: fmt.Sprintf("a-rather-long-name-of-a-workload-%d", i), InFlight: 1})
	}
	eventually(t, patience, func() bool {
		require.NoError(t, b.PublishActivity(sent))
		return board.Use(sent.Loads[19_999].Workload, time.Now()).InFlight == 1
	}, "all of it arrives")
	assert.Equal(t, 1, board.Use(sent.Loads[0].Workload, time.Now()).InFlight)
}

// A scaler that starts learns what gateways said that it will never hear of
// again, and when.
func TestTheLastWordsOfAGatewayOutliveIt(t *testing.T) {
	s := eventstest.Start(t)
	gateway := s.TCP("gw")
	require.NoError(t, s.Bus("provisioner").Err())
	for i := range 30 {
		require.NoError(t, gateway.ReportActivity(t.Context(), workload.Activity{Gateway: "gw", Loads: []workload.Load{{Workload: "wiki", InFlight: i}}}))
	}
	said := time.Now()
	gateway.Close()
	time.Sleep(20 * time.Millisecond)

	b := s.Bus("scaler")
	assert.False(t, b.HearsGateways(), "nothing was read yet")
	board := workload.NewBoard()
	background(t, func(ctx context.Context) error { return b.FollowActivity(ctx, board.Hear) })
	eventually(t, patience, b.HearsGateways, "the past is read")
	now := said.Add(workload.Gone / 2)
	assert.Equal(t, []string{"gw"}, board.Alive(now))
	assert.Equal(t, 29, board.Use("wiki", now).InFlight)
	assert.WithinDuration(t, said, board.Use("wiki", said.Add(time.Hour)).LastUsed, 15*time.Millisecond, "when it was said, not when it was read")

	s.Restart()
	eventually(t, patience, b.HearsGateways, "after a reconnect it is read again")
}

func TestAReportThatCannotBeStoredIsAnError(t *testing.T) {
	s := eventstest.Start(t)
	gateway := s.TCP("gw")
	s.Stop()
	require.Error(t, gateway.ReportActivity(t.Context(), workload.Activity{Gateway: "gw"}))
}

// gate answers drains with its numbers and counts the questions.
func gate(t *testing.T, b *events.Bus, gateway string, inFlight int) <-chan string {
	t.Helper()
	asked := make(chan string, 1000)
	background(t, func(ctx context.Context) error {
		return b.ServeDrain(ctx, gateway, func(name string, revision uint64) workload.Drained {
			asked <- name + " " + strconv.FormatUint(revision, 10)
			return workload.Drained{InFlight: inFlight, Queued: 1}
		})
	})
	return asked
}

func TestDrainAsksEveryGateway(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("scaler")
	asked := gate(t, s.TCP("g1"), "g1", 0)
	gate(t, s.TCP("g.2"), "g.2", 3)
	gate(t, s.TCP("g3"), "g3", 0)
	drained, err := b.Drain(within(t, patience), "team/wiki", 7, []string{"g1", "g.2", "g3"})
	require.NoError(t, err)
	assert.Equal(t, []workload.Drained{
		{Gateway: "g.2", InFlight: 3, Queued: 1}, {Gateway: "g1", Queued: 1}, {Gateway: "g3", Queued: 1},
	}, drained)
	assert.Equal(t, "team/wiki 7", receive(t, asked, patience))

	eventually(t, patience, func() bool { // an answer may come after the grace
		drained, err = b.Drain(within(t, patience), "wiki", 7, []string{"g1"})
		return err == nil && len(drained) == 3
	}, "a gateway that nobody named is heard too")
}

func TestDrainNamesWhoIsSilent(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("scaler")
	gate(t, b, "g1", 2)
	eventually(t, patience, func() bool {
		_, err := b.Drain(within(t, patience), "wiki", 1, []string{"g1"})
		return err == nil
	}, "g1 answers")
	drained, err := b.Drain(within(t, 300*time.Millisecond), "wiki", 1, []string{"g1", "dead", "cut-off"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no answer from cut-off, dead")
	assert.Equal(t, []workload.Drained{{Gateway: "g1", InFlight: 2, Queued: 1}}, drained)
}

func TestDrainAsksAgainUntilAGatewayIsBack(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("scaler")
	type result struct {
		drained []workload.Drained
		err     error
	}
	done := make(chan result, 1)
	ctx := within(t, patience)
	go func() {
		drained, err := b.Drain(ctx, "wiki", 1, []string{"late"})
		done <- result{drained, err}
	}()
	gate(t, b, "late", 0)
	r := receive(t, done, patience)
	require.NoError(t, r.err)
	assert.Len(t, r.drained, 1)
}

func TestDrainWithoutGatewaysIsEmpty(t *testing.T) {
	b := eventstest.Start(t).Bus("scaler")
	drained, err := b.Drain(within(t, patience), "wiki", 1, nil)
	require.NoError(t, err)
	assert.Empty(t, drained)
}

func TestAskingANodeWithoutScalerFailsAtOnce(t *testing.T) {
	b := eventstest.Start(t).Bus("gateway")
	require.ErrorIs(t, b.AskSleep(within(t, patience), "n", "wiki"), events.ErrNoScaler)
	_, err := b.AskLogs(within(t, patience), "n", "wiki", 10)
	require.ErrorIs(t, err, events.ErrNoScaler)
}

func TestScalerAnswersForItsNode(t *testing.T) {
	s := eventstest.Start(t)
	scaler, b := s.TCP("scaler"), s.Bus("gateway")
	background(t, func(ctx context.Context) error {
		return scaler.ServeSleep(ctx, "n.1", func(ctx context.Context, name string) error {
			switch name {
			case "busy":
				<-ctx.Done() // as long as the asker waits, and no longer
				return fmt.Errorf("sleep: %w", &events.AskError{Code: "in_use", Message: "3 requests in flight"})
			case "broken":
				return errors.New("engine is gone")
			}
			return nil
		})
	})
	background(t, func(ctx context.Context) error {
		return scaler.ServeLogs(ctx, "n.1", func(_ context.Context, name string, lines int) ([]string, error) {
			return []string{name, strconv.Itoa(lines)}, nil
		})
	})
	eventually(t, patience, func() bool { return b.AskSleep(t.Context(), "n.1", "team/wiki") == nil }, "it sleeps")
	require.ErrorIs(t, b.AskSleep(t.Context(), "n2", "wiki"), events.ErrNoScaler)

	var said *events.AskError
	require.ErrorAs(t, b.AskSleep(within(t, time.Second), "n.1", "busy"), &said)
	assert.Equal(t, events.AskError{Code: "in_use", Message: "sleep: 3 requests in flight"}, *said)
	require.ErrorAs(t, b.AskSleep(t.Context(), "n.1", "broken"), &said)
	assert.Equal(t, events.AskError{Message: "engine is gone"}, *said)

	eventually(t, patience, func() bool {
		lines, err := b.AskLogs(t.Context(), "n.1", "team/wiki", 20)
		return err == nil && assert.Equal(t, []string{"team/wiki", "20"}, lines)
	}, "logs arrive")
}

func record(t *testing.T, b *events.Bus, name string, kind workload.EventKind, generation uint64) {
	t.Helper()
	require.NoError(t, b.RecordEvent(t.Context(), workload.Event{
		Workload: name, Kind: kind, Generation: generation, At: time.Now().UTC(), Actor: "s1",
	}))
}

func generations(es []workload.Event) []uint64 {
	var gs []uint64
	for _, e := range es {
		gs = append(gs, e.Generation)
	}
	return gs
}

func TestHistoryIsReadByFilter(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	all, err := b.Events(t.Context(), events.EventFilter{})
	require.NoError(t, err)
	assert.Empty(t, all)
	for i := range uint64(300) {
		record(t, b, "wiki", workload.EventWoken, 3*i)
		record(t, b, "wiki", workload.EventReady, 3*i+1)
		record(t, b, "blog.2", workload.EventReady, 3*i+2)
	}
	for name, tc := range map[string]struct {
		filter events.EventFilter
		count  int
		last   uint64
	}{
		"all":             {events.EventFilter{}, 900, 899},
		"last":            {events.EventFilter{Last: 5}, 5, 899},
		"more than all":   {events.EventFilter{Last: 5000}, 900, 899},
		"one workload":    {events.EventFilter{Workload: "blog.2"}, 300, 899},
		"last of one":     {events.EventFilter{Workload: "wiki", Last: 290}, 290, 898},
		"one kind":        {events.EventFilter{Kinds: []workload.EventKind{workload.EventReady}, Last: 7}, 7, 899},
		"two kinds":       {events.EventFilter{Workload: "wiki", Kinds: []workload.EventKind{workload.EventReady, workload.EventFailed}}, 300, 898},
		"no such kind":    {events.EventFilter{Kinds: []workload.EventKind{workload.EventSlept}, Last: 3}, 0, 0},
		"since long ago":  {events.EventFilter{Since: time.Now().Add(-time.Hour), Last: 10}, 10, 899},
		"since later":     {events.EventFilter{Since: time.Now().Add(time.Hour)}, 0, 0},
		"nothing of past": {events.EventFilter{Last: -1}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := b.Events(t.Context(), tc.filter)
			require.NoError(t, err)
			require.Len(t, got, tc.count)
			if tc.count > 0 {
				assert.Equal(t, tc.last, got[tc.count-1].Generation)
				assert.IsIncreasing(t, generations(got))
			}
		})
	}
}

func TestHistoryIsFollowedOnceAndInOrderOverRestarts(t *testing.T) {
	s := eventstest.Start(t)
	p := eventstest.NewProxy(t, s.Addr())
	follower := s.Connect(events.Config{URL: p.URL(), Name: "dashboard"})
	b := s.Bus("scaler")
	for i := range uint64(10) {
		record(t, b, "wiki", workload.EventReady, i)
	}
	got := make(chan workload.Event, 1000)
	background(t, func(ctx context.Context) error {
		return follower.FollowEvents(ctx, events.EventFilter{Workload: "wiki", Last: 4}, func(e workload.Event) { got <- e })
	})
	for want := uint64(6); want < 10; want++ {
		require.Equal(t, want, receive(t, got, patience).Generation)
	}
	next := uint64(10)
	for round := range 3 {
		for range 20 {
			eventually(t, patience, func() bool {
				return b.RecordEvent(t.Context(), workload.Event{Workload: "wiki", Kind: workload.EventReady, Generation: next}) == nil
			}, "recorded")
			record(t, b, "blog", workload.EventReady, next)
			next++
		}
		if round == 0 {
			p.Cut()
		} else {
			s.Restart()
			eventually(t, patience, b.Connected, "connected again")
		}
	}
	for want := uint64(10); want < next; want++ {
		require.Equal(t, want, receive(t, got, patience).Generation)
	}
	assert.Empty(t, got)
}

func TestMetricsTellConnectionAndLag(t *testing.T) {
	s := eventstest.Start(t)
	registry := prometheus.NewRegistry()
	b := s.Connect(events.Config{Server: s, Name: "g", Registerer: registry})
	s.Connect(events.Config{Server: s, Name: "s", Registerer: registry}) // two may share one
	metric := func(name string) *dto.Metric {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == name {
				return f.GetMetric()[0]
			}
		}
		return nil
	}
	connected := func() float64 { return metric("rouse_nats_connected").GetGauge().GetValue() }
	assert.EqualValues(t, 1, connected())
	got := wakesOf(t, b, "n")
	publish(t, b, "n", "wiki")
	receive(t, got, patience)
	lag := metric("rouse_event_lag_seconds")
	assert.EqualValues(t, 1, lag.GetHistogram().GetSampleCount())
	assert.Equal(t, "wake", lag.GetLabel()[0].GetValue())
	s.Stop()
	eventually(t, patience, func() bool { return connected() == 0 && !b.Connected() }, "the loss shows")
	require.ErrorIs(t, b.Err(), events.ErrDisconnected)
	s.Resume()
	eventually(t, patience, func() bool { return connected() == 1 && b.Err() == nil }, "and so does the return")
}
