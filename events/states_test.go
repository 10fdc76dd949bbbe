package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func TestStateIsReadAsItWasWritten(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	const name = "team/my app*"
	s, err := b.State(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, workload.State{Workload: name}, s, "never written: asleep")

	s.Phase, s.Generation, s.Since = workload.Ready, 3, time.Now().UTC()
	s.Replicas = []workload.Replica{{ID: "a", Address: "10.0.0.2:80"}}
	s.Wake = &workload.Wake{ID: "w", Workload: name, Traceparent: trace}
	written, err := b.PutState(t.Context(), s)
	require.NoError(t, err)
	assert.NotZero(t, written.Revision)
	read, err := b.State(t.Context(), name)
	require.NoError(t, err)
	assert.Equal(t, written, read)
}

func TestStateIsWrittenByCompareAndSetOnly(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	first, err := b.PutState(t.Context(), workload.State{Workload: "wiki", Phase: workload.Waking, Generation: 1})
	require.NoError(t, err)

	_, err = b.PutState(t.Context(), workload.State{Workload: "wiki", Generation: 9})
	require.ErrorIs(t, err, events.ErrConflict, "created twice")
	second := first
	second.Phase = workload.Ready
	second, err = b.PutState(t.Context(), second)
	require.NoError(t, err)
	_, err = b.PutState(t.Context(), first)
	require.ErrorIs(t, err, events.ErrConflict, "written on an old revision")

	read, err := b.State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.Equal(t, second, read)
}

func TestOneOfManyWritersWins(t *testing.T) {
	s := eventstest.Start(t)
	won := make(chan string, 100)
	var writers sync.WaitGroup
	for i := range 8 {
		b := s.TCP(fmt.Sprint("s", i))
		writers.Go(func() {
			_, err := b.PutState(t.Context(), workload.State{Workload: "wiki", Owner: fmt.Sprint(i)})
			if err == nil {
				won <- fmt.Sprint(i)
			} else if !errors.Is(err, events.ErrConflict) {
				t.Errorf("unexpected: %v", err)
			}
		})
	}
	writers.Wait()
	require.Len(t, won, 1)
	read, err := s.Bus("reader").State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.Equal(t, <-won, read.Owner)
}

func TestDeletedStateCanBeWrittenAgain(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	mustPut(t, b, workload.State{Workload: "wiki", Phase: workload.Ready, Generation: 4})
	kv, err := admin(t, s).KeyValue(t.Context(), "ROUSE_STATE")
	require.NoError(t, err)
	require.NoError(t, kv.Delete(t.Context(), "wiki"))

	read, err := b.State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.Equal(t, workload.State{Workload: "wiki", Revision: read.Revision}, read)
	_, err = b.PutState(t.Context(), read)
	require.NoError(t, err)
}

// muted is a Bus whose requests arrive and whose answers do not.
func muted(t *testing.T, s *eventstest.Server) (*events.Bus, *eventstest.Proxy) {
	t.Helper()
	p := eventstest.NewProxy(t, s.Addr())
	b := s.Connect(events.Config{URL: p.URL(), Name: "cut-off"})
	_, err := b.State(t.Context(), "warm-up") // its inbox is known to the server
	require.NoError(t, err)
	p.Mute()
	return b, p
}

func putInBackground(t *testing.T, b *events.Bus, s workload.State) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := b.PutState(context.WithoutCancel(t.Context()), s)
		result <- err
	}()
	return result
}

func TestWriteWhoseAnswerWasLostIsReadBack(t *testing.T) {
	s := eventstest.Start(t)
	b, p := muted(t, s)
	witness := s.Bus("witness")
	result := putInBackground(t, b, workload.State{Workload: "wiki", Owner: "me"})
	eventually(t, patience, func() bool {
		now, err := witness.State(t.Context(), "wiki")
		return err == nil && now.Owner == "me"
	}, "the write arrives")
	p.Cut()
	require.NoError(t, receive(t, result, patience), "it was stored, so it is a success")
	now, err := witness.State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.EqualValues(t, 1, now.Revision, "and it was stored once")
}

func TestWriteWhoseAnswerWasLostAndThatWasOvertakenIsAConflict(t *testing.T) {
	s := eventstest.Start(t)
	b, p := muted(t, s)
	witness := s.Bus("witness")
	result := putInBackground(t, b, workload.State{Workload: "wiki", Owner: "me"})
	eventually(t, patience, func() bool {
		now, err := witness.State(t.Context(), "wiki")
		return err == nil && now.Owner == "me"
	}, "the write arrives")
	mustPut(t, witness, workload.State{Workload: "wiki", Owner: "another"})
	p.Cut()
	require.ErrorIs(t, receive(t, result, patience), events.ErrConflict)
}

func TestWriteThatCannotBeConfirmedSaysSo(t *testing.T) {
	s := eventstest.Start(t)
	b, p := muted(t, s)
	result := putInBackground(t, b, workload.State{Workload: "wiki", Owner: "me"})
	witness := s.Bus("witness")
	eventually(t, patience, func() bool {
		now, err := witness.State(t.Context(), "wiki")
		return err == nil && now.Owner == "me"
	}, "the write arrives")
	p.Refuse()
	require.ErrorIs(t, receive(t, result, patience), events.ErrUnconfirmed)
}

func TestFollowerIsToldAllThatIsStoredAndThenEachChange(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	const many = 600 // more than two pages
	for i := range many {
		_, err := b.PutState(t.Context(), workload.State{Workload: fmt.Sprint("w", i), Generation: 1})
		require.NoError(t, err)
	}
	v := follow(t, b)
	eventually(t, patience, func() bool { return len(v.all()) == many }, "all are handed over")

	s := mustPut(t, b, workload.State{Workload: "w7", Phase: workload.Ready, Generation: 2})
	eventually(t, patience, func() bool { return v.of("w7").Revision == s.Revision }, "the change arrives")
	assert.Equal(t, s, v.of("w7"))
	assert.Zero(t, v.timesReset())
}

func TestFollowerMissesNoLastValueOver(t *testing.T) {
	for name, trouble := range map[string]func(*eventstest.Server, *eventstest.Proxy){
		"restarts":  func(s *eventstest.Server, _ *eventstest.Proxy) { s.Restart() },
		"cut lines": func(_ *eventstest.Server, p *eventstest.Proxy) { p.Cut() },
		"both":      func(s *eventstest.Server, p *eventstest.Proxy) { p.Refuse(); s.Restart(); p.Admit() },
	} {
		t.Run(name, func(t *testing.T) {
			s := eventstest.Start(t)
			p := eventstest.NewProxy(t, s.Addr())
			followers := []*view{
				follow(t, s.Bus("in-process")),
				follow(t, s.Connect(events.Config{URL: p.URL(), Name: "far"})),
			}
			writer := s.TCP("writer")
			last := writeThrough(t, writer, func() { trouble(s, p) })
			for _, v := range followers {
				for name, want := range last {
					eventually(t, patience, func() bool { return v.of(name).Revision == want.Revision }, name)
					assert.Equal(t, want, v.of(name))
				}
				assert.Zero(t, v.timesReset(), "the store is the same")
			}
		})
	}
}

// writeThrough writes without pause while trouble comes three times, and
// returns the last state of each workload.
func writeThrough(t *testing.T, b *events.Bus, trouble func()) map[string]workload.State {
	t.Helper()
	last := map[string]workload.State{}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range 3 {
			trouble()
		}
	}()
	for i := uint64(1); ; i++ {
		name := fmt.Sprint("w", i%10)
		last[name] = mustPut(t, b, workload.State{Workload: name, Generation: i})
		select {
		case <-over:
			if i > 50 {
				return last
			}
		default:
		}
	}
}

func TestFollowerBeginsAnewWithANewStore(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *eventstest.Server){
		"wiped":   func(_ *testing.T, s *eventstest.Server) { s.Wipe() },
		"deleted": func(t *testing.T, s *eventstest.Server) { deleteStream(t, s, "KV_ROUSE_STATE") },
	} {
		t.Run(name, func(t *testing.T) {
			s := eventstest.Start(t)
			b := s.Bus("rouse")
			v := follow(t, b)
			for i := range 20 {
				mustPut(t, b, workload.State{Workload: "wiki", Generation: uint64(i)})
			}
			eventually(t, patience, func() bool { return v.of("wiki").Generation == 19 }, "the old one is known")

			lose(t, s)
			want := mustPut(t, b, workload.State{Workload: "wiki", Phase: workload.Ready, Generation: 100})
			assert.Less(t, want.Revision, uint64(20), "revisions began again")
			eventually(t, patience, func() bool { return v.of("wiki").Generation == 100 }, "the new one is known")
			assert.Equal(t, 1, v.timesReset())
		})
	}
}

func TestFollowerSkipsWhatItCannotRead(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	kv, err := admin(t, s).KeyValue(t.Context(), "ROUSE_STATE")
	require.NoError(t, err)
	for key, body := range map[string]string{"a": "{", "b=zz": "{}", "c": `{"phase":"dancing"}`, "d": "[]"} {
		_, err := kv.PutString(t.Context(), key, body)
		require.NoError(t, err)
	}
	v := follow(t, b)
	good := &nats.Msg{Subject: "$KV.ROUSE_STATE.wiki", Header: nats.Header{"ce-type": {"dev.rouse.state.v1"}}, Data: []byte(`{"phase":"ready","generation":2,"unknown":[1]}`)}
	_, err = admin(t, s).PublishMsg(t.Context(), good)
	require.NoError(t, err)
	eventually(t, patience, func() bool { return v.of("wiki").Phase == workload.Ready }, "the good one arrives")
	assert.Len(t, v.all(), 1)
	_, err = b.State(t.Context(), "a")
	require.Error(t, err)
}

func TestFollowerThatIsTooSlowCatchesUp(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	gate := make(chan struct{})
	v := &view{states: map[string]workload.State{}}
	background(t, func(ctx context.Context) error {
		return b.FollowStates(ctx, func(s workload.State) {
			<-gate
			v.observe(s)
		}, nil)
	})
	last := workload.State{Workload: "wiki"}
	var err error
	for i := range 6000 { // more than may wait for a follower
		last.Generation = uint64(i)
		last, err = b.PutState(t.Context(), last)
		require.NoError(t, err)
	}
	close(gate)
	eventually(t, patience, func() bool { return v.of("wiki").Revision == last.Revision }, "the last value arrives")
}

func TestStateWithAnEndlessLogIsStored(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = strings.Repeat("\x1b", 100) + fmt.Sprint(i)
	}
	s, err := b.PutState(t.Context(), workload.State{Workload: "wiki", Phase: workload.Failed, Reason: workload.Reason{
		Code: workload.ReasonExited, Detail: strings.Repeat("x", 1<<20), Log: lines,
	}})
	require.NoError(t, err)
	assert.Len(t, lines, 1000, "what was handed in is left as it is")
	read, err := b.State(t.Context(), "wiki")
	require.NoError(t, err)
	assert.Equal(t, s, read)
	assert.True(t, strings.HasSuffix(read.Reason.Log[len(read.Reason.Log)-1], "999"), "the last lines are kept")

	_, err = b.PutState(t.Context(), workload.State{Workload: "one", Reason: workload.Reason{Log: []string{strings.Repeat("x", 1<<20)}}})
	require.NoError(t, err)
}
