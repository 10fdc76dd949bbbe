package events_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// serve hands wakes to h in the background.
func serve(t *testing.T, b *events.Bus, node string, h func(context.Context, workload.Wake) events.Verdict) (stop func()) {
	t.Helper()
	return background(t, func(ctx context.Context) error { return b.ServeWakes(ctx, node, 4, h) })
}

// wakesOf collects wakes and calls them done.
func wakesOf(t *testing.T, b *events.Bus, node string) <-chan workload.Wake {
	t.Helper()
	got := make(chan workload.Wake, 1000)
	serve(t, b, node, func(_ context.Context, w workload.Wake) events.Verdict {
		got <- w
		return events.Done()
	})
	return got
}

func publish(t *testing.T, b *events.Bus, node, name string) {
	t.Helper()
	require.NoError(t, b.PublishWake(t.Context(), node, workload.Wake{ID: "w", Workload: name}))
}

func TestWakeArrivesAsItWasSent(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	got := wakesOf(t, b, "node.1")
	sent := workload.Wake{
		ID: "w1", Workload: "team/my app*", Trigger: workload.TriggerRequest, Gateway: "g1",
		Generation: 7, Unreachable: true, Traceparent: trace, RequestedAt: time.Now().Add(-time.Second).UTC(),
	}
	require.NoError(t, b.PublishWake(t.Context(), "node.1", sent))
	w := receive(t, got, patience)
	assert.False(t, w.PublishedAt.IsZero())
	w.PublishedAt = time.Time{}
	assert.Equal(t, sent, w)
}

func TestWakesOfOneWorkloadAreOneWhilePending(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	for range 50 {
		publish(t, b, "n", "wiki")
	}
	publish(t, b, "n", "blog")
	publish(t, b, "other", "wiki")
	got := wakesOf(t, b, "n")
	names := []string{receive(t, got, patience).Workload, receive(t, got, patience).Workload}
	assert.ElementsMatch(t, []string{"wiki", "blog"}, names)

	// Done with, the next one counts at once: there is no window that
	// swallows it.
	eventually(t, patience, func() bool {
		publish(t, b, "n", "wiki")
		select {
		case w := <-got:
			return assert.Equal(t, "wiki", w.Workload)
		default:
			return false
		}
	}, "a later wake is delivered")
}

func TestWakeInWorkKeepsOthersOut(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	events.SetAckWait(b, 300*time.Millisecond)
	var calls atomic.Int32
	begun, finish := make(chan struct{}), make(chan struct{})
	serve(t, b, "n", func(context.Context, workload.Wake) events.Verdict {
		if calls.Add(1) == 1 {
			close(begun)
		}
		<-finish
		return events.Done()
	})
	publish(t, b, "n", "wiki")
	receive(t, begun, patience)
	// Far longer than the server would wait without signs of work.
	for end := time.Now().Add(3 * 300 * time.Millisecond); time.Now().Before(end); {
		publish(t, b, "n", "wiki")
	}
	assert.EqualValues(t, 1, calls.Load())
	close(finish)
}

func TestLaterBringsTheWakeBack(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	var calls atomic.Int32
	done := make(chan struct{})
	serve(t, b, "n", func(context.Context, workload.Wake) events.Verdict {
		if calls.Add(1) < 3 {
			return events.Later(10 * time.Millisecond)
		}
		close(done)
		return events.Done()
	})
	publish(t, b, "n", "wiki")
	receive(t, done, prompt)
}

func TestPermanentEndsTheWakeAndMakesRoomForTheNext(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	calls := make(chan struct{}, 100)
	serve(t, b, "n", func(context.Context, workload.Wake) events.Verdict {
		calls <- struct{}{}
		return events.Permanent("no such container")
	})
	publish(t, b, "n", "wiki")
	receive(t, calls, patience)
	eventually(t, patience, func() bool {
		publish(t, b, "n", "wiki")
		return len(calls) > 0
	}, "the next wake is delivered")
}

func TestWakesOfManyWorkloadsRunAtOnce(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	begun, finish := make(chan string, 4), make(chan struct{})
	serve(t, b, "n", func(_ context.Context, w workload.Wake) events.Verdict {
		begun <- w.Workload
		<-finish
		return events.Done()
	})
	for _, name := range []string{"a", "b", "c", "d"} {
		publish(t, b, "n", name)
	}
	for range 4 {
		receive(t, begun, patience)
	}
	close(finish)
}

func TestScalerThatLeavesHandsItsWakeOver(t *testing.T) {
	s := eventstest.Start(t)
	first, second := s.Bus("s1"), s.Bus("s2")
	for _, b := range []*events.Bus{first, second} {
		events.SetAckWait(b, time.Hour) // only a hand-over can bring it back
	}
	begun := make(chan struct{})
	stop := serve(t, first, "n", func(ctx context.Context, _ workload.Wake) events.Verdict {
		close(begun)
		<-ctx.Done()
		return events.Later(time.Hour)
	})
	publish(t, first, "n", "wiki")
	receive(t, begun, patience)
	got := wakesOf(t, second, "n")
	stop()
	receive(t, got, prompt)
}

func TestScalerThatDiesLeavesItsWakeToAnother(t *testing.T) {
	s := eventstest.Start(t)
	p := eventstest.NewProxy(t, s.Addr())
	dying := s.Connect(events.Config{URL: p.URL(), Name: "s1"})
	heir := s.Bus("s2")
	for _, b := range []*events.Bus{dying, heir} {
		events.SetAckWait(b, 300*time.Millisecond)
	}
	begun, finish := make(chan struct{}), make(chan struct{})
	serve(t, dying, "n", func(context.Context, workload.Wake) events.Verdict {
		close(begun)
		<-finish
		return events.Done()
	})
	publish(t, heir, "n", "wiki")
	receive(t, begun, patience)
	p.Refuse() // its process may live, but the server hears nothing of it
	receive(t, wakesOf(t, heir, "n"), patience)
	close(finish)
}

// hurts are what a wake consumer has to survive. Each returns once the
// server takes wakes again.
var hurts = map[string]func(*testing.T, *eventstest.Server){
	"restart":        func(_ *testing.T, s *eventstest.Server) { s.Restart() },
	"two restarts":   func(_ *testing.T, s *eventstest.Server) { s.Restart(); s.Restart() },
	"store lost":     func(_ *testing.T, s *eventstest.Server) { s.Wipe() },
	"stream deleted": func(t *testing.T, s *eventstest.Server) { deleteStream(t, s, "ROUSE_WAKES") },
	"consumer lost":  deleteConsumer,
}

func deleteStream(t *testing.T, s *eventstest.Server, name string) {
	t.Helper()
	require.NoError(t, admin(t, s).DeleteStream(t.Context(), name))
}

func deleteConsumer(t *testing.T, s *eventstest.Server) {
	t.Helper()
	require.NoError(t, admin(t, s).DeleteConsumer(t.Context(), "ROUSE_WAKES", "scaler-n"))
}

func TestWakesGoOnAfter(t *testing.T) {
	for name, hurt := range hurts {
		for kind, connect := range map[string]func(*eventstest.Server, string) *events.Bus{
			"in process": (*eventstest.Server).Bus, "over tcp": (*eventstest.Server).TCP,
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				s := eventstest.Start(t)
				b := connect(s, "rouse")
				got := wakesOf(t, b, "n")
				publish(t, b, "n", "before")
				receive(t, got, patience)

				hurt(t, s)
				begun := time.Now()
				eventually(t, patience, func() bool {
					return b.PublishWake(t.Context(), "n", workload.Wake{Workload: "after"}) == nil
				}, "a wake is stored again")
				// Twice the heartbeat, and some for a busy machine: a
				// consumer that stands still takes 10 to 30 s.
				for receive(t, got, 5*time.Second).Workload != "after" {
					// an acknowledgement was lost: the old one came again
				}
				t.Logf("delivered %s after the server was back", time.Since(begun))
			})
		}
	}
}

func TestServingWakesBeforeAnybodyProvisioned(t *testing.T) {
	s := eventstest.Start(t)
	early, err := events.Connect(t.Context(), events.Config{Server: s, Name: "s1"})
	require.NoError(t, err)
	t.Cleanup(early.Close)
	got := wakesOf(t, early, "n")
	require.ErrorIs(t, early.PublishWake(t.Context(), "n", workload.Wake{Workload: "wiki"}), events.ErrNoStream)

	publish(t, s.Bus("s2"), "n", "wiki")
	receive(t, got, patience)
}

func TestMalformedWakeIsDroppedAndHarmsNoOther(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	got := wakesOf(t, b, "n")
	js := admin(t, s)
	for subject, body := range map[string]string{
		"rouse.v1.wake.n.wiki":   "{",
		"rouse.v1.wake.n.wi=ki":  "{}",
		"rouse.v1.wake.n.blog":   `{"workload":"wiki","from_the_future":{"x":1}}`,
		"rouse.v1.wake.n.number": `{"generation":"seven"}`,
	} {
		_, err := js.Publish(t.Context(), subject, []byte(body))
		require.NoError(t, err)
	}
	assert.Equal(t, "blog", receive(t, got, patience).Workload, "the subject decides, unknown fields are ignored")
	eventually(t, patience, func() bool {
		stream, err := js.Stream(t.Context(), "ROUSE_WAKES")
		return err == nil && stream.CachedInfo().State.Msgs == 0
	}, "all are gone from the stream")
	assert.Empty(t, got)
}
