package events_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

// serveEvents serves a queue in the background and tells what it was handed.
func serveEvents(t *testing.T, b *events.Bus, q events.EventQueue) (got chan events.Recorded, stop func()) {
	t.Helper()
	got = make(chan events.Recorded, 100)
	stop = background(t, func(ctx context.Context) error {
		return b.ServeEvents(ctx, q, func(_ context.Context, e events.Recorded) events.Verdict {
			got <- e
			return events.Done()
		})
	})
	return got, stop
}

// recordThrough records through trouble.
func recordThrough(t *testing.T, b *events.Bus, e workload.Event) {
	t.Helper()
	eventually(t, patience, func() bool { return b.RecordEvent(t.Context(), e) == nil }, "event is recorded")
}

func TestQueueHandsOutWhatItChoosesInOrder(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("one")
	record(t, b, "wiki", workload.EventReady, 1) // before it began
	begin := time.Now()
	got, _ := serveEvents(t, b, events.EventQueue{
		Name: "https://x y", From: begin, Workloads: []string{"wiki", "a.b"}, Kinds: []workload.EventKind{workload.EventReady, workload.EventSlept},
	})
	for generation := range uint64(20) {
		record(t, b, "shop", workload.EventReady, generation)
		record(t, b, "a.b", workload.EventSlept, 100+generation)
		record(t, b, "wiki", workload.EventWoken, generation)
		record(t, b, "wiki", workload.EventReady, 100+generation)
	}
	ids := map[string]bool{}
	for generation := uint64(100); generation < 120; generation++ {
		for _, want := range []string{"a.b slept", "wiki ready"} {
			e := receive(t, got, patience)
			assert.Equal(t, want, fmt.Sprint(e.Workload, " ", e.Kind))
			assert.Equal(t, generation, e.Generation)
			assert.WithinRange(t, e.At, begin.Add(-time.Second), time.Now().Add(time.Second))
			assert.False(t, ids[e.ID], "an id of its own")
			ids[e.ID] = true
		}
	}
	assert.Empty(t, got)
}

// What one process did not bring to an end, the next is handed with the same
// ID, and all that came meanwhile.
func TestQueueGoesOnWhereItWasLeft(t *testing.T) {
	for name, end := range map[string]func(*eventstest.Server){
		"another process": func(*eventstest.Server) {},
		"server restarts": func(s *eventstest.Server) { s.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			s := eventstest.Start(t)
			first, second := s.Bus("first"), s.Bus("second")
			q := events.EventQueue{Name: "q", From: time.Now()}
			held := make(chan events.Recorded, 1)
			stop := background(t, func(ctx context.Context) error {
				return first.ServeEvents(ctx, q, func(ctx context.Context, e events.Recorded) events.Verdict {
					held <- e
					<-ctx.Done()
					return events.Later(time.Hour)
				})
			})
			record(t, second, "wiki", workload.EventReady, 1)
			begun := receive(t, held, patience)
			record(t, second, "wiki", workload.EventSlept, 2)
			stop()
			end(s)
			recordThrough(t, second, workload.Event{Workload: "wiki", Kind: workload.EventReady, Generation: 3})

			q.From = time.Now() // it is not new
			got, _ := serveEvents(t, second, q)
			again := receive(t, got, patience)
			assert.Equal(t, begun.ID, again.ID)
			assert.Equal(t, uint64(1), again.Generation)
			for _, generation := range []uint64{2, 3} {
				assert.Equal(t, generation, receive(t, got, patience).Generation)
			}
			assert.Empty(t, got)
		})
	}
}

// Of two processes that serve a queue, one at a time has an event in hand.
func TestQueueIsServedByOneProcessAtATime(t *testing.T) {
	s := eventstest.Start(t)
	var inHand, most, done atomic.Int64
	q := events.EventQueue{Name: "q", From: time.Now()}
	for _, name := range []string{"one", "two", "three"} {
		b := s.Bus(name)
		background(t, func(ctx context.Context) error {
			return b.ServeEvents(ctx, q, func(context.Context, events.Recorded) events.Verdict {
				most.Store(max(most.Load(), inHand.Add(1)))
				time.Sleep(time.Millisecond)
				inHand.Add(-1)
				done.Add(1)
				return events.Done()
			})
		})
	}
	b := s.Bus("four")
	for generation := range uint64(50) {
		record(t, b, "wiki", workload.EventReady, generation)
	}
	eventually(t, patience, func() bool { return done.Load() == 50 }, "all are handed out, each once")
	assert.Equal(t, int64(1), most.Load())
}

// A changed choice applies to the queue that there is, and a lost store begins
// it anew.
func TestQueueIsMadeAsItShouldBe(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("one")
	q := events.EventQueue{Name: "q", From: time.Now(), Kinds: []workload.EventKind{workload.EventReady}}
	got, stop := serveEvents(t, b, q)
	record(t, b, "wiki", workload.EventReady, 1)
	assert.Equal(t, uint64(1), receive(t, got, patience).Generation)
	stop()

	q.Kinds = nil
	got, _ = serveEvents(t, b, q)
	record(t, b, "wiki", workload.EventSlept, 2)
	assert.Equal(t, uint64(2), receive(t, got, patience).Generation)

	s.Wipe()
	recordThrough(t, b, workload.Event{Workload: "wiki", Kind: workload.EventSlept, Generation: 3})
	assert.Equal(t, uint64(3), receive(t, got, patience).Generation)
}

func TestQueueSkipsWhatCannotBeRead(t *testing.T) {
	s := eventstest.Start(t)
	b, js := s.Bus("one"), admin(t, s)
	got, _ := serveEvents(t, b, events.EventQueue{Name: "q", From: time.Now()})
	sound := nats.Header{"ce-type": {"dev.rouse.event.v1"}, "ce-id": {"a-1"}}
	with := func(key, value string) nats.Header {
		h := nats.Header{}
		for k, v := range sound {
			h[k] = v
		}
		h[key] = []string{value}
		return h
	}
	for _, m := range []*nats.Msg{
		{Header: sound, Data: []byte("{")},
		{Header: sound, Data: []byte("null")},
		{Header: with("ce-type", "dev.rouse.event.v2"), Data: []byte("{}")},
		{Header: with("ce-id", "a.b"), Data: []byte("{}")},
		{Header: with("ce-id", ""), Data: []byte("{}")},
		{Header: with("Nats-Sequence", "7"), Data: []byte("{}")},
		{Data: []byte("{}")},
		{Header: sound, Data: []byte(`{"generation":5}`)},
	} {
		m.Subject = "rouse.v1.event.wiki.ready"
		_, err := js.PublishMsg(t.Context(), m)
		require.NoError(t, err)
	}
	e := receive(t, got, patience)
	assert.Equal(t, "a-1", e.ID)
	assert.Equal(t, uint64(5), e.Generation)
	assert.Empty(t, got)
}
