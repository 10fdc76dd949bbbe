package runtimetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

func startReturnsWhatAnswers(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	i := s.start(w)
	require.Equal(t, w.Name, i.Workload)
	require.NotEmpty(t, i.ID)
	require.False(t, i.StartedAt.IsZero())
	require.False(t, i.Paused)
	s.answers(i)
}

func startOfWhatRunsReturnsItAsItIs(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	first := s.start(w)
	before := s.answers(first)
	second := s.start(w)
	same(t, first, second)
	require.Equal(t, before.ListeningAt, s.answers(second).ListeningAt)
}

func concurrentStartsAreOneStart(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	const callers = 4
	var got [callers][]scaler.Instance
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			var err error
			got[i], err = s.rt.Start(t.Context(), w)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, instances := range got {
		require.Len(t, instances, 1)
		require.Equal(t, got[0][0].ID, instances[0].ID)
	}
	require.Len(t, s.running(w), 1)
}

func workloadsStartAndStopInParallel(t *testing.T, f Fixture) {
	ws := []workload.Workload{f.Workload(t), f.Workload(t)}
	s := stage(t, f, ws...)
	started := make([]scaler.Instance, len(ws))
	var wg sync.WaitGroup
	for i, w := range ws {
		wg.Go(func() {
			got, err := s.rt.Start(t.Context(), w)
			if assert.NoError(t, err) && assert.Len(t, got, 1) {
				started[i] = got[0]
			}
		})
	}
	wg.Wait()
	for i, w := range ws {
		require.Equal(t, w.Name, started[i].Workload)
		s.answers(started[i])
	}
	for _, w := range ws {
		wg.Go(func() { assert.NoError(t, s.rt.Stop(t.Context(), w)) })
	}
	wg.Wait()
	for _, w := range ws {
		require.Empty(t, s.running(w))
	}
}

func startOfWhatIsMissingSaysSo(t *testing.T, f Fixture) {
	w := f.Missing(t)
	s := stage(t, f, w)
	got, err := s.rt.Start(t.Context(), w)
	require.Empty(t, got)
	var failed *scaler.StartError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, workload.ReasonNotFound, failed.Reason.Code)
	require.NotEmpty(t, failed.Reason.Detail)
}

func startWithAnEndedContextSaysSo(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.rt.Start(ctx, w)
	require.ErrorIs(t, err, context.Canceled)
	s.answers(s.start(w))
}

// A request in flight keeps the first start from ending before the stop is
// given up; the start that follows must not take it for its own.
func startAfterAnUnfinishedStopIsANewStart(t *testing.T, f Fixture) {
	w := f.Workload(t)
	w.StopTimeout = 10 * time.Second
	s := stage(t, f, w)
	first := s.start(w)
	before := s.answers(first)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		_, _ = get(first.Address, "/delay/1500")
	}()
	time.Sleep(100 * time.Millisecond) // it has to be in flight
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.rt.Stop(ctx, w), context.DeadlineExceeded)

	second := s.start(w)
	<-answered
	require.NotEqual(t, first.ID, second.ID)
	require.NotEqual(t, before.ListeningAt, s.answers(second).ListeningAt)
}
