package runtimetest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

func stopEndsIt(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	i := s.start(w)
	before := s.answers(i)
	s.stop(w)
	require.Empty(t, s.running(w))
	// Another may have the address by now.
	if after, err := get(i.Address, "/"); err == nil {
		require.NotEqual(t, before.ListeningAt, after.ListeningAt)
	}
	s.died(i)
}

func stopOfWhatDoesNotRunIsNoError(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	s.stop(w)
	s.start(w)
	s.stop(w)
	s.stop(w)
	s.stop(f.Missing(t))
}

func stopKillsWhatDoesNotEnd(t *testing.T, f Fixture) {
	w := f.Workload(t, "--ignore-sigterm")
	w.StopTimeout = time.Second
	s := stage(t, f, w)
	i := s.start(w)
	s.answers(i)
	s.stop(w)
	require.Empty(t, s.running(w))
	require.False(t, s.died(i).OOM)
}

// weighTellsWhatItTakes is for runtimes that are Weighers.
func weighTellsWhatItTakes(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	scales, ok := s.rt.(scaler.Weigher)
	if !ok {
		t.Skip("it does not weigh")
	}
	weigh := func() int64 {
		bytes, err := scales.Weigh(t.Context(), w)
		require.NoError(t, err)
		return bytes
	}
	require.Zero(t, weigh())
	s.answers(s.start(w))
	require.Greater(t, weigh(), int64(256<<10), "a program in Go")
	require.Less(t, weigh(), int64(1<<30))
	s.stop(w)
	require.Zero(t, weigh())
}

func startAfterStopIsANewStart(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	first := s.start(w)
	before := s.answers(first)
	s.stop(w)
	second := s.start(w)
	require.NotEqual(t, first.ID, second.ID)
	require.NotEqual(t, before.ListeningAt, s.answers(second).ListeningAt)
	running := s.running(w)
	require.Len(t, running, 1)
	same(t, second, running[0])
}

func pauseFreezesAndStartResumes(t *testing.T, f Fixture) {
	if !f.Pauses {
		t.Skip("this runtime does not pause")
	}
	w := f.Workload(t)
	w.Stop = workload.StopPause
	s := stage(t, f, w)
	first := s.start(w)
	before := s.answers(first)
	s.stop(w)
	s.died(first)
	require.Empty(t, s.running(w))
	all, err := s.rt.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.True(t, all[0].Paused)
	s.stop(w)

	resumed := s.start(w)
	require.False(t, resumed.Paused)
	require.Equal(t, before.ListeningAt, s.answers(resumed).ListeningAt, "it was started anew")
	eventually(t, func() error {
		started := 0
		for _, e := range s.heard() {
			if e.Kind == scaler.Started {
				started++
			}
		}
		if started < 2 {
			return errors.New("the resumption was not told")
		}
		return nil
	})
}
