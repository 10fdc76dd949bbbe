package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
)

func listTellsWhatRunsOfKnownWorkloads(t *testing.T, f Fixture) {
	up, down, unknown := f.Workload(t), f.Workload(t), f.Workload(t)
	s := stage(t, f, up, down)
	i := s.start(up)
	s.start(unknown)
	all, err := s.rt.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	same(t, i, all[0])
	require.Empty(t, s.running(down))
	s.stop(unknown)
}

func aNewRuntimeAdoptsWhatRuns(t *testing.T, f Fixture) {
	if !f.Adopts {
		t.Skip("what this runtime starts ends with it")
	}
	w := f.Workload(t)
	first := stage(t, f, w).start(w)
	s := stage(t, f, w)
	running := s.running(w)
	require.Len(t, running, 1)
	same(t, first, running[0])
	same(t, first, s.start(w))
	s.stop(w)
	require.Empty(t, s.running(w))
	s.died(first)
}

func logsAreTheLastLinesOfTheLastStart(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	s.answers(s.start(w))
	logsSay(s, "listening", func() ([]string, error) { return s.rt.Logs(t.Context(), w, 10) })
	s.stop(w)
	logsSay(s, "draining", func() ([]string, error) { return s.rt.Logs(t.Context(), w, 10) })
	last, err := s.rt.Logs(t.Context(), w, 1)
	require.NoError(t, err)
	require.Len(t, last, 1)
	require.Contains(t, last[0], "draining")

	s.answers(s.start(w))
	lines := logsSay(s, "listening", func() ([]string, error) { return s.rt.Logs(t.Context(), w, 10) })
	require.NotContains(t, lines, "draining", "a line of an earlier start")
}

// logsSay waits for the word: a platform may hand logs over a little later.
func logsSay(s *stand, word string, read func() ([]string, error)) string {
	s.t.Helper()
	var text string
	eventually(s.t, func() error {
		lines, err := read()
		if err != nil {
			return err
		}
		if text = strings.Join(lines, "\n"); !strings.Contains(text, word) {
			return fmt.Errorf("no %q in the logs: %q", word, text)
		}
		return nil
	})
	return text
}

func anExitIsToldWithItsCode(t *testing.T, f Fixture) {
	w := f.Workload(t, "--exit-after", "300ms", "--exit-code", "7")
	s := stage(t, f, w)
	got, err := s.rt.Start(t.Context(), w)
	if err != nil { // it may end before the platform's start returns
		var failed *scaler.StartError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, 7, failed.Reason.ExitCode)
	}
	end := s.await(func(e scaler.Event) bool { return e.Kind == scaler.Died })
	require.Equal(t, w.Name, end.Workload)
	require.Equal(t, 7, end.ExitCode)
	require.False(t, end.OOM)
	if len(got) == 1 {
		require.Equal(t, got[0].ID, end.ID)
	}
	require.Empty(t, s.running(w))
}

func anEndFromOutsideIsToldAndMended(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	first := s.start(w)
	s.answers(first)
	f.Kill(t, w)
	s.died(first)
	require.Empty(t, s.running(w))
	second := s.start(w)
	require.NotEqual(t, first.ID, second.ID)
	s.answers(second)
}

func eventsComeInOrder(t *testing.T, f Fixture) {
	w := f.Workload(t)
	s := stage(t, f, w)
	var want []string
	for range 2 {
		i := s.start(w)
		s.stop(w)
		want = append(want, "started "+i.ID, "died "+i.ID)
	}
	eventually(t, func() error {
		var got []string
		for _, e := range s.heard() {
			if e.Kind == scaler.Started || e.Kind == scaler.Died {
				got = append(got, e.Kind.String()+" "+e.ID)
			}
		}
		if len(got) < len(want) {
			return fmt.Errorf("only %q so far", got)
		}
		require.Equal(t, want, got)
		return nil
	})
	require.Equal(t, scaler.Resynced, s.heard()[0].Kind)
}

func nothingIsToldOfUnknownWorkloads(t *testing.T, f Fixture) {
	known, unknown := f.Workload(t), f.Workload(t)
	s := stage(t, f, known)
	s.start(unknown)
	s.stop(unknown)
	s.died(s.startAndStop(known))
	for _, e := range s.heard() {
		require.NotEqual(t, unknown.Name, e.Workload)
	}
}

func watchEndsWithItsContext(t *testing.T, f Fixture) {
	rt := f.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	resynced := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- rt.Watch(ctx, func(scaler.Event) {
			select {
			case resynced <- struct{}{}:
			default:
			}
		})
	}()
	<-resynced
	cancel()
	err := <-ended
	require.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
}
