package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func after(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// coldStart gives the events of one wake that came to readiness, each with
// the record as far as its teller knows it.
func coldStart(id, name string, start int) []workload.Event {
	w := workload.Wake{ID: id, Workload: name, Trigger: workload.TriggerRequest, Gateway: "gw",
		RequestedAt: after(start), PublishedAt: after(start + 1), ReceivedAt: after(start + 2), Generation: 1}
	var events []workload.Event
	tell := func(kind workload.EventKind, at int, actor string) {
		w := w
		events = append(events, workload.Event{Workload: name, Kind: kind, At: after(start + at), Actor: actor, Generation: 2, Wake: &w})
	}
	tell(workload.EventWoken, 3, "scaler")
	w.StartAt, w.StartedAt = after(start+4), after(start+100)
	tell(workload.EventStarted, 100, "scaler")
	w.ReadyAt = after(start + 250)
	tell(workload.EventReady, 250, "scaler")
	w.OpenedAt, w.ReleasedAt = after(start+251), after(start+260)
	tell(workload.EventReleased, 261, "gw")
	w.OpenedAt, w.ReleasedAt = after(start+253), after(start+290)
	tell(workload.EventReleased, 291, "gw2")
	return events
}

// failedStart gives the events of one wake that failed while starting.
func failedStart(id, name string, start int) []workload.Event {
	w := &workload.Wake{ID: id, Workload: name, Trigger: workload.TriggerAPI, RequestedAt: after(start), ReceivedAt: after(start + 2), StartAt: after(start + 3)}
	return []workload.Event{
		{Workload: name, Kind: workload.EventWoken, At: after(start + 2), Generation: 7, Wake: w},
		{Workload: name, Kind: workload.EventFailed, At: after(start + 53), Generation: 7, Wake: w,
			Reason: workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Log: []string{"no database"}}},
	}
}

func historyOf(t *testing.T, limit int, events []workload.Event) []api.Wake {
	t.Helper()
	h := api.NewHistory(limit, 0)
	for _, e := range events {
		h.Add(e)
	}
	wakes, err := h.Wakes(t.Context())
	require.NoError(t, err)
	return wakes
}

func TestHistoryPutsAColdStartTogether(t *testing.T) {
	wakes := historyOf(t, 0, coldStart("w1", "wiki", 0))
	require.Len(t, wakes, 1)
	w := wakes[0]
	assert.Equal(t, api.ResultReady, w.Result)
	assert.Equal(t, uint64(2), w.Generation)
	assert.Equal(t, "gw", w.Gateway)
	assert.Equal(t, []api.WakePhase{
		{workload.PhaseWake, after(0), 0.002},
		{workload.PhaseQueue, after(2), 0.002},
		{workload.PhaseStart, after(4), 0.096},
		{workload.PhaseProbe, after(100), 0.150},
		{workload.PhaseReady, after(250), 0.001},
		{workload.PhaseRelease, after(251), 0.039}, // to the last request of the last gateway
	}, w.Phases)
	assert.Equal(t, 39*time.Millisecond, w.Phases[5].Duration())
}

func TestHistoryShowsWhichStepAWakeFailedInAndWhy(t *testing.T) {
	w := historyOf(t, 0, failedStart("w1", "wiki", 0))[0]
	assert.Equal(t, api.ResultFailed, w.Result)
	assert.Equal(t, after(53), w.FailedAt)
	assert.Equal(t, 3, w.Reason.ExitCode)
	assert.Equal(t, []string{"no database"}, w.Reason.Log)
	assert.Equal(t, api.WakePhase{workload.PhaseStart, after(3), 0.050}, w.Phases[len(w.Phases)-1])
	assert.True(t, w.StartedAt.IsZero(), "the start never returned")
}

func TestHistoryTellsAWakeUnderWayFromOneThatEnded(t *testing.T) {
	events := coldStart("w1", "wiki", 0)
	assert.Equal(t, api.ResultWaking, historyOf(t, 0, events[:2])[0].Result)
	assert.Equal(t, api.ResultReady, historyOf(t, 0, events[:3])[0].Result)
	assert.Equal(t, api.ResultReady, historyOf(t, 0, events[3:])[0].Result, "a release alone tells of readiness")
}

// The order in which events arrive, and how often, must not matter.
func TestHistoryIsTheSameForAnyOrderOfEvents(t *testing.T) {
	var events []workload.Event
	for i := range 8 {
		events = append(events, coldStart(fmt.Sprint("ok", i), fmt.Sprint("wiki", i%3), 1000*i)...)
		events = append(events, failedStart(fmt.Sprint("bad", i), fmt.Sprint("wiki", i%3), 1000*i+500)...)
		// A scaler that took the start over tells other times, and another end.
		taken := failedStart(fmt.Sprint("ok", i), fmt.Sprint("wiki", i%3), 1000*i+90)
		taken[1].Actor, taken[1].At = "scaler2", taken[1].At.In(time.FixedZone("here", 3600))
		events = append(events, taken...)
	}
	for _, limit := range []int{0, 5} {
		want := historyOf(t, limit, events)
		require.NotEmpty(t, want)
		for seed := range uint64(200) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			mixed := append([]workload.Event{}, events...)
			for range rnd.IntN(20) {
				mixed = append(mixed, events[rnd.IntN(len(events))])
			}
			rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			require.Equal(t, want, historyOf(t, limit, mixed), "limit %d, seed %d", limit, seed)
		}
	}
}

func TestHistoryKeepsTheNewestAndCountsThemAll(t *testing.T) {
	h := api.NewHistory(3, 10)
	for i := range 10 {
		for _, e := range coldStart(fmt.Sprint("w", i), "wiki", 1000*i) {
			h.Add(e)
		}
	}
	for _, e := range coldStart("w0", "wiki", 0) { // told again, long forgotten
		h.Add(e)
	}
	for _, e := range failedStart("bad", "wiki", 20_000) {
		h.Add(e)
	}
	wakes, _ := h.Wakes(t.Context())
	require.Len(t, wakes, 3)
	assert.Equal(t, []string{"bad", "w9", "w8"}, []string{wakes[0].ID, wakes[1].ID, wakes[2].ID})
	assert.Equal(t, 10, h.ColdStarts("wiki"), "a failed one is no cold start, and none counts twice")
	assert.Zero(t, h.ColdStarts("blog"))
	_, err := h.WakeByID(t.Context(), "w0")
	assert.ErrorIs(t, err, api.ErrNoWake)
}

func TestHistoryTakesEventsWithoutAWake(t *testing.T) {
	h := api.NewHistory(0, 0)
	h.Add(workload.Event{Workload: "wiki", Kind: workload.EventSlept, At: noon})
	h.Add(workload.Event{Workload: "wiki", Kind: workload.EventAdopted, At: noon, Wake: &workload.Wake{}})
	wakes, _ := h.Wakes(t.Context())
	assert.Empty(t, wakes)
	assert.Len(t, collect(t, h, api.EventQuery{Last: 10}), 2)
}

// collect gives the events that q finds now.
func collect(t *testing.T, h *api.History, q api.EventQuery) []api.Event {
	t.Helper()
	var got []api.Event
	require.NoError(t, h.Events(t.Context(), q, func(e api.Event) error {
		got = append(got, e)
		return nil
	}))
	return got
}

func slept(name string, ms int) workload.Event {
	return workload.Event{Workload: name, Kind: workload.EventSlept, At: after(ms)}
}

func times(events []api.Event) []int {
	ms := []int{}
	for _, e := range events {
		ms = append(ms, int(e.At.Sub(noon)/time.Millisecond))
	}
	return ms
}

func TestEventsGivesTheLastOnesAndResumesBehindAnID(t *testing.T) {
	h := api.NewHistory(0, 4)
	for i := range 20 { // the ring keeps between 4 and 8
		h.Add(slept([]string{"wiki", "blog"}[i%2], i))
		h.Add(slept([]string{"wiki", "blog"}[i%2], i)) // told twice
	}
	assert.Equal(t, []int{18, 19}, times(collect(t, h, api.EventQuery{Last: 2})))
	assert.Equal(t, []int{17, 19}, times(collect(t, h, api.EventQuery{Last: 2, Workload: "blog"})))
	assert.Empty(t, collect(t, h, api.EventQuery{}))
	assert.Empty(t, collect(t, h, api.EventQuery{Last: 5, Workload: "none"}))
	all := collect(t, h, api.EventQuery{Last: 100})
	assert.GreaterOrEqual(t, len(all), 4)
	assert.LessOrEqual(t, len(all), 8)
	assert.Equal(t, []int{18, 19}, times(collect(t, h, api.EventQuery{After: all[len(all)-3].ID, Last: 1})))
	other := api.NewHistory(0, 4)
	other.Add(slept("wiki", 0))
	foreign := collect(t, other, api.EventQuery{Last: 1})[0].ID
	for _, id := range []string{foreign, "x", all[0].ID + "9999"} {
		assert.Equal(t, []int{19}, times(collect(t, h, api.EventQuery{After: id, Last: 1})), "an unknown ID counts as none")
	}
}

func TestEventsFollowsUntilTheContextEnds(t *testing.T) {
	h := api.NewHistory(0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	got, ended := make(chan api.Event), make(chan error, 1)
	go func() {
		ended <- h.Events(ctx, api.EventQuery{Workload: "wiki", Last: 1000, Follow: true}, func(e api.Event) error { got <- e; return nil })
	}()
	for i := range 100 {
		h.Add(slept("blog", i))
		h.Add(slept("wiki", i))
		e := <-got
		require.Equal(t, "wiki", e.Workload)
		require.Equal(t, after(i), e.At)
	}
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
}

func TestEventsEndsWithTheErrorOfItsHandler(t *testing.T) {
	h := api.NewHistory(0, 0)
	h.Add(slept("wiki", 0))
	boom := fmt.Errorf("boom")
	assert.Equal(t, boom, h.Events(t.Context(), api.EventQuery{Last: 1, Follow: true}, func(api.Event) error { return boom }))
}

// A follower that falls behind must not hold up the one who adds, and goes on
// with what is still kept.
func TestEventsSlowFollowerMissesTheOldestOnly(t *testing.T) {
	h := api.NewHistory(0, 4)
	h.Add(slept("wiki", 0))
	var got []api.Event
	stop := fmt.Errorf("seen enough")
	err := h.Events(t.Context(), api.EventQuery{Last: 1, Follow: true}, func(e api.Event) error {
		if got = append(got, e); len(got) == 1 {
			for i := range 50 {
				h.Add(slept("wiki", i+1))
			}
		}
		if e.At.Equal(after(50)) {
			return stop
		}
		return nil
	})
	require.Equal(t, stop, err)
	assert.Less(t, len(got), 12)
	assert.Equal(t, []int{47, 48, 49, 50}, times(got[len(got)-4:]))
}

func TestHistoryIsSafeForConcurrentUse(t *testing.T) {
	h := api.NewHistory(10, 20)
	ctx, cancel := context.WithCancel(t.Context())
	var followers, adders sync.WaitGroup
	for range 4 {
		followers.Go(func() {
			_ = h.Events(ctx, api.EventQuery{Last: 5, Follow: true}, func(e api.Event) error {
				_, _ = h.WakeByID(ctx, e.ID)
				_, _ = h.Wakes(ctx)
				return nil
			})
		})
		adders.Go(func() {
			for i := range 100 {
				for _, e := range coldStart(fmt.Sprint("w", i), "wiki", 1000*i) {
					h.Add(e)
				}
				h.ColdStarts("wiki")
			}
		})
	}
	adders.Wait()
	cancel()
	followers.Wait()
	wakes, _ := h.Wakes(ctx)
	assert.Len(t, wakes, 10)
	assert.Equal(t, "w99", wakes[0].ID)
}

func BenchmarkHistoryAdd(b *testing.B) {
	b.ReportAllocs()
	h := api.NewHistory(0, 0)
	for i := 0; b.Loop(); i++ {
		for _, e := range coldStart(fmt.Sprint("w", i), "wiki", 1000*i) {
			h.Add(e)
		}
	}
}
