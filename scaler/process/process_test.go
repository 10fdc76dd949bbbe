//go:build linux

package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/process"
	"github.com/rouse-dev/rouse/scaler/runtimetest"
	"github.com/rouse-dev/rouse/workload"
)

// helperMode turns this test program into the program of a workload.
const helperMode = "ROUSE_TEST_NEVER_SEEN_BY_A_WORKLOAD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperMode); dir != "" {
		abandon(dir)
	}
	goleak.VerifyTestMain(m)
}

// abandon starts a workload and dies of SIGKILL, as a scaler may.
func abandon(dir string) {
	rt, err := process.New(process.Config{Dir: dir})
	if err == nil {
		_, err = rt.Start(context.Background(), sleeper("orphan", "sleep 300 & exec sleep 300"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

var count atomic.Int64

func TestContract(t *testing.T) {
	program := filepath.Join(t.TempDir(), "loadtest")
	out, err := exec.Command("go", "build", "-o", program, "../../cmd/loadtest").CombinedOutput()
	require.NoError(t, err, "build the sample workload: %s", out)
	runtimetest.Run(t, func(t *testing.T) runtimetest.Fixture {
		dir := t.TempDir()
		return runtimetest.Fixture{
			New: func(t *testing.T) scaler.Runtime { return open(t, dir) },
			Workload: func(_ *testing.T, flags ...string) workload.Workload {
				command := append([]string{program, "mimic", "--listen", "127.0.0.1:{port}"}, flags...)
				return spec(fmt.Sprintf("mimic-%d", count.Add(1)), command...)
			},
			Missing: func(*testing.T) workload.Workload { return spec("missing", "./no-such-program") },
			Kill: func(t *testing.T, w workload.Workload) {
				require.NoError(t, syscall.Kill(recordOf(t, dir, w.Name).PID, syscall.SIGKILL))
			},
			Adopts: true,
			Pauses: true,
		}
	})
}

// open makes a runtime that ends everything at the end of the test.
func open(t *testing.T, dir string) *process.Runtime {
	t.Helper()
	rt, err := process.New(process.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		require.NoError(t, rt.Close(ctx))
	})
	return rt
}

func spec(name string, command ...string) workload.Workload {
	return workload.Workload{Name: name, Runtime: "process", StopTimeout: 5 * time.Second, Stop: workload.StopStop, Process: &workload.Process{Command: command}}
}

// sleeper is a workload that runs a script.
func sleeper(name, script string) workload.Workload { return spec(name, "/bin/sh", "-c", script) }

type record struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Port  int    `json:"port"`
}

func recordOf(t *testing.T, dir, name string) record {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name+".json"))
	require.NoError(t, err)
	var rec record
	require.NoError(t, json.Unmarshal(data, &rec))
	return rec
}

func start(t *testing.T, rt *process.Runtime, w workload.Workload) scaler.Instance {
	t.Helper()
	got, err := rt.Start(t.Context(), w)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

// logsOf waits until the workload has written so many lines.
func logsOf(t *testing.T, rt *process.Runtime, w workload.Workload, n int) []string {
	t.Helper()
	var lines []string
	require.Eventually(t, func() bool {
		var err error
		lines, err = rt.Logs(t.Context(), w, 100)
		return err == nil && len(lines) >= n
	}, 10*time.Second, 2*time.Millisecond)
	return lines
}

func alive(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(data, []byte(") Z "))
}

// members lists the processes of a group, but not those that have ended and
// wait for whoever inherited them.
func members(t *testing.T, group string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var found []string
	for _, path := range paths {
		data, _ := os.ReadFile(path) // it may have ended meanwhile
		_, rest, _ := strings.Cut(string(data), ") ")
		if fields := strings.Fields(rest); len(fields) > 3 && fields[2] == group && fields[0] != "Z" {
			found = append(found, path)
		}
	}
	return found
}

func TestThePortIsInArgumentsAndEnvironment(t *testing.T) {
	t.Setenv("ROUSE_NATS_CREDS", "secret")
	t.Setenv("INHERITED", "yes")
	rt := open(t, t.TempDir())
	w := spec("env", "/bin/sh", "-c", `echo "$0 $PORT $INHERITED $OWN [$ROUSE_NATS_CREDS] $PWD"; exec sleep 300`, "a{port}b{port}")
	w.Process.Env, w.Process.Dir = []string{"OWN=mine"}, "/"
	i := start(t, rt, w)
	host, port, err := net.SplitHostPort(i.Address)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	want := fmt.Sprintf("a%sb%s %s yes mine [] /", port, port, port)
	require.Equal(t, []string{want}, logsOf(t, rt, w, 1), "the scaler's own settings stay its own")
}

func TestAGivenPortIsUsedUnlessItIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	rt := open(t, t.TempDir())
	w := sleeper("fixed", "exec sleep 300")
	w.Port = l.Addr().(*net.TCPAddr).Port
	_, err = rt.Start(t.Context(), w)
	var failed *scaler.StartError
	require.ErrorAs(t, err, &failed, "or what listens there would be taken for the workload")
	require.Equal(t, workload.ReasonStartError, failed.Reason.Code)
	require.Contains(t, failed.Reason.Detail, "in use")

	require.NoError(t, l.Close())
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", w.Port), start(t, rt, w).Address)
	other := sleeper("other", "exec sleep 300")
	other.Port = w.Port
	_, err = rt.Start(t.Context(), other)
	require.ErrorContains(t, err, "belongs to another workload")
	require.NoError(t, rt.Stop(t.Context(), w))
	start(t, rt, other)
}

func TestWhatCannotBeStartedSaysWhy(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, []byte("text"), 0o600))
	rt := open(t, t.TempDir())
	noDir, noCommand := spec("c", "true"), spec("d")
	noDir.Process.Dir, noCommand.Process = "/no/such/dir", nil
	for _, c := range []struct {
		w      workload.Workload
		code   workload.ReasonCode
		detail string
	}{
		{spec("a", "no-such-program-in-path"), workload.ReasonNotFound, "no such program"},
		{spec("b", plain), workload.ReasonStartError, "refused to start"},
		{noDir, workload.ReasonNotFound, "no such directory"},
		{noCommand, workload.ReasonNotFound, "no command"},
	} {
		_, err := rt.Start(t.Context(), c.w)
		var failed *scaler.StartError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, c.code, failed.Reason.Code)
		require.Contains(t, failed.Reason.Detail, c.detail)
	}
}

func TestAStopEndsTheWholeGroup(t *testing.T) {
	rt := open(t, t.TempDir())
	for _, script := range []string{
		"sleep 300 & echo $!; wait", // both end when asked
		"(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 300; done) & wait", // the child is deaf
	} {
		w := sleeper("group", script)
		w.StopTimeout = 200 * time.Millisecond
		i := start(t, rt, w)
		child, err := strconv.Atoi(logsOf(t, rt, w, 1)[0])
		require.NoError(t, err)
		require.True(t, alive(child))
		require.NoError(t, rt.Stop(t.Context(), w))
		require.False(t, alive(child), "a child of it is left")
		leader, _, _ := strings.Cut(i.ID, "@")
		require.Empty(t, members(t, leader))
	}
}

func TestAnEndByItselfEndsTheRestOfTheGroup(t *testing.T) {
	dir := t.TempDir()
	rt := open(t, dir)
	w := sleeper("group", "sleep 300 & echo $!; exit 3")
	events := watch(t, rt, w)
	start(t, rt, w)
	died := await(t, events, scaler.Died)
	require.Equal(t, 3, died.ExitCode)
	child := atoi(t, logsOf(t, rt, w, 1)[0])
	require.Eventually(t, func() bool { return !alive(child) }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "group.json"))
		return os.IsNotExist(err)
	}, 10*time.Second, time.Millisecond, "its record is left")
}

func TestASignalIsToldAsAShellTellsIt(t *testing.T) {
	rt := open(t, t.TempDir())
	w := sleeper("signal", "kill -SEGV $$; sleep 300")
	events := watch(t, rt, w)
	start(t, rt, w)
	require.Equal(t, 128+int(syscall.SIGSEGV), await(t, events, scaler.Died).ExitCode)
}

func TestWhatAKilledScalerLeftIsAdopted(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperMode+"="+dir)
	out, err := cmd.CombinedOutput()
	require.Equal(t, "signal: killed", fmt.Sprint(err), "%s", out)

	rt := open(t, dir)
	w := sleeper("orphan", "unused")
	rec := recordOf(t, dir, w.Name)
	events := watch(t, rt, w)
	list, err := rt.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, fmt.Sprintf("%d@%d", rec.PID, rec.Start), list[0].ID)
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", rec.Port), list[0].Address)
	require.Equal(t, list[0], start(t, rt, w))

	require.NoError(t, syscall.Kill(rec.PID, syscall.SIGKILL))
	died := await(t, events, scaler.Died)
	require.Equal(t, list[0].ID, died.ID)
	require.NotZero(t, died.ExitCode)
	require.NoError(t, rt.Stop(t.Context(), w))
	require.Empty(t, members(t, strconv.Itoa(rec.PID)), "the rest of its group is left")
}

func TestWhatAScalerLeftBeforeItsRecordIsAdopted(t *testing.T) {
	dir := t.TempDir()
	w := sleeper("lost", "exec sleep 300")
	first := open(t, dir)
	want := start(t, first, w)
	path := filepath.Join(dir, "lost.json")
	require.NoError(t, os.Remove(path))
	other := open(t, t.TempDir()) // whose it is not
	other.Update([]workload.Workload{w})
	list, err := other.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)

	second := open(t, dir)
	second.Update([]workload.Workload{w})
	list, err = second.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, want.ID, list[0].ID)
	require.Equal(t, want.Address, list[0].Address)
	require.NoError(t, second.Stop(t.Context(), w))
}

// The record names a process that runs, with the number it had at another
// time: that process is somebody else's.
func TestAReusedNumberIsNotBelieved(t *testing.T) {
	for what, spoil := range map[string]func(map[string]any){
		"start": func(rec map[string]any) { rec["start"] = 1 },
		"boot":  func(rec map[string]any) { rec["boot"] = "another" },
		"name":  func(rec map[string]any) { rec["workload"] = "another" },
		"pid":   func(rec map[string]any) { rec["pid"] = 1 },
	} {
		dir := t.TempDir()
		first := open(t, dir)
		w := sleeper("reused", "exec sleep 300")
		start(t, first, w)
		path := filepath.Join(dir, "reused.json")
		original, err := os.ReadFile(path)
		require.NoError(t, err)
		var rec map[string]any
		require.NoError(t, json.Unmarshal(original, &rec))
		pid := int(rec["pid"].(float64))
		spoil(rec)
		spoiled, err := json.Marshal(rec)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, spoiled, 0o600))

		second := open(t, dir)
		second.Update([]workload.Workload{w})
		list, err := second.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, list, what)
		require.NoError(t, second.Stop(t.Context(), w))
		require.True(t, alive(pid), what+": a process of somebody else was ended")
	}
}

func TestABrokenRecordIsNoObstacle(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.json"), []byte(`{"pid":`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w.json.new"), []byte(`{`), 0o600))
	rt := open(t, dir)
	start(t, rt, sleeper("w", "exec sleep 300"))
}

// watch collects the events of one workload until the test ends.
func watch(t *testing.T, rt *process.Runtime, w workload.Workload) <-chan scaler.Event {
	t.Helper()
	rt.Update([]workload.Workload{w})
	ctx, cancel := context.WithCancel(context.Background())
	events, done := make(chan scaler.Event, 100), make(chan struct{})
	go func() {
		defer close(done)
		_ = rt.Watch(ctx, func(e scaler.Event) { events <- e })
	}()
	t.Cleanup(func() { cancel(); <-done })
	await(t, events, scaler.Resynced)
	return events
}

func await(t *testing.T, events <-chan scaler.Event, kind scaler.EventKind) scaler.Event {
	t.Helper()
	for {
		select {
		case e := <-events:
			if e.Kind == kind {
				return e
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no %s", kind)
		}
	}
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
