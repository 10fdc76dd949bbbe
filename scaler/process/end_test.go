//go:build linux

package process_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler/process"
	"github.com/rouse-dev/rouse/workload"
)

func TestDetachLeavesItRunningAndCloseEndsIt(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	w := sleeper("kept", "exec sleep 300")
	i := start(t, first, w)
	pid := recordOf(t, dir, "kept").PID
	first.Detach()
	require.True(t, alive(pid))
	_, err := first.Start(t.Context(), sleeper("new", "exec sleep 300"))
	require.ErrorIs(t, err, process.ErrClosed)

	second := open(t, dir)
	require.Equal(t, i, start(t, second, w))
	require.NoError(t, second.Close(t.Context()))
	require.False(t, alive(pid))
}

func TestCloseKillsWhatDoesNotEndInTime(t *testing.T) {
	dir := t.TempDir()
	rt := open(t, dir)
	w := sleeper("deaf", "trap '' TERM; echo deaf; while :; do sleep 1; done")
	w.StopTimeout = time.Hour
	start(t, rt, w)
	logsOf(t, rt, w, 1)
	pid := recordOf(t, dir, "deaf").PID
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, rt.Close(ctx))
	require.False(t, alive(pid))
}

func TestAPauseThatSomebodyElseMadeIsSeenAndEnded(t *testing.T) {
	dir := t.TempDir()
	rt := open(t, dir)
	w := sleeper("frozen", "exec sleep 300")
	rt.Update([]workload.Workload{w})
	first := start(t, rt, w)
	pid := recordOf(t, dir, "frozen").PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		list, err := rt.List(t.Context())
		return err == nil && len(list) == 1 && list[0].Paused
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, first, start(t, rt, w))
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	require.NoError(t, rt.Stop(t.Context(), w), "a frozen process ends too")
	require.False(t, alive(pid))
}

func TestLogsAreThoseOfTheLastStartAndOldOnesArePutAside(t *testing.T) {
	dir := t.TempDir()
	rt := open(t, dir)
	w := sleeper("log", `printf 'one\ntwo\r\nthree \377 no newline'`)
	lines, err := rt.Logs(t.Context(), w, 5)
	require.NoError(t, err)
	require.Empty(t, lines, "it never started")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "log.log"), bytes.Repeat([]byte("old line\n"), 1<<20), 0o600))
	start(t, rt, w)
	require.Equal(t, []string{"one", "two", "three \uFFFD no newline"}, logsOf(t, rt, w, 3))
	require.FileExists(t, filepath.Join(dir, "log.log.old"))
	lines, err = rt.Logs(t.Context(), w, 2)
	require.NoError(t, err)
	require.Len(t, lines, 2)
	lines, err = rt.Logs(t.Context(), w, -1)
	require.NoError(t, err)
	require.Empty(t, lines)

	require.NoError(t, rt.Stop(t.Context(), w))
	w = sleeper("log", "echo again; exec sleep 300")
	start(t, rt, w)
	require.Equal(t, []string{"again"}, logsOf(t, rt, w, 1))
	require.FileExists(t, filepath.Join(dir, "log.log"), "a small log goes on")
}
