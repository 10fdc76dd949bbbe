package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

// standIn is an api.Backend that knows what its fields say.
type standIn struct {
	*api.History
	workloads []api.Workload
	problems  []workload.Problem
	checks    []api.Check
	lines     []string
	err       error // what acting on a workload answers
	wait      time.Duration
}

func (s *standIn) Workloads(context.Context) ([]api.Workload, error) { return s.workloads, nil }

func (s *standIn) Workload(_ context.Context, name string) (api.Workload, error) {
	for _, w := range s.workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return api.Workload{}, fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
}

func (s *standIn) Problems(context.Context) []workload.Problem { return s.problems }

func (s *standIn) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	s.wait = wait
	w, err := s.Workload(ctx, name)
	if err == nil {
		err = s.err
	}
	return w, err
}

func (s *standIn) Sleep(ctx context.Context, name string) error {
	_, err := s.Wake(ctx, name, 0)
	return err
}

func (s *standIn) Findings(context.Context) ([]api.Finding, error) { return nil, nil }

func (s *standIn) Keep(ctx context.Context, name string, span time.Duration) (until time.Time, err error) {
	if _, err = s.Wake(ctx, name, 0); err == nil && span > 0 {
		until = time.Now().Add(span)
	}
	return until, err
}

func (s *standIn) Logs(ctx context.Context, name string, lines int) ([]string, error) {
	_, err := s.Wake(ctx, name, 0)
	return s.lines[max(0, len(s.lines)-lines):], err
}

func (s *standIn) Ready(context.Context) []api.Check { return s.checks }

func (s *standIn) Config(context.Context) (any, error) { return nil, nil }

// result is what one invocation of the program left behind.
type result struct {
	code           int
	stdout, stderr string
}

// invoke runs the program in this process.
func invoke(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// cli serves a stand-in and gives a way to run the program against it.
func cli(t *testing.T, s *standIn) func(args ...string) result {
	t.Helper()
	if s.History == nil {
		s.History = api.NewHistory(0, 0)
	}
	return cliOf(t, s)
}

// cliOf is cli for any backend.
func cliOf(t *testing.T, s api.Backend) func(args ...string) result {
	t.Helper()
	quiet(t)
	server := httptest.NewServer(api.New(api.Config{}, s))
	t.Cleanup(server.Close)
	return func(args ...string) result { return invoke(t, append([]string{"--admin", server.URL}, args...)...) }
}

// quiet keeps what the person who runs the tests has set from reaching them.
func quiet(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "ROUSE_") {
			t.Setenv(name, value) // put back afterwards
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Chdir(t.TempDir())
}

func wiki() api.Workload {
	return api.Workload{
		Name: "wiki", Phase: workload.Ready, Since: time.Now().Add(-330 * time.Second), Hosts: []string{"wiki.example.com", "w.example.com"},
		InFlight: 2, ColdStarts: 3, Generation: 4, Node: "local", Runtime: "docker", Origin: "wiki (container)",
		Replicas: []api.Replica{{ID: "r1", Address: "10.0.0.2:80", InFlight: 2}},
	}
}

func blog() api.Workload {
	return api.Workload{Name: "blog", Phase: workload.Ready, Since: time.Now().Add(-50 * time.Hour), SleepsAt: time.Now().Add(90*time.Minute + 30*time.Second)}
}

func shop() api.Workload {
	return api.Workload{Name: "shop", Phase: workload.Failed, Reason: workload.Reason{
		Code: workload.ReasonExited, ExitCode: 3, Detail: "no \x1b[2Jdatabase", Log: []string{"connecting", "gave up"}},
		RetryAt: time.Now().Add(time.Minute)}
}

func TestStatusListsWorkloadsAndProblemsBelow(t *testing.T) {
	rouse := cli(t, &standIn{
		workloads: []api.Workload{blog(), shop(), wiki()},
		problems:  []workload.Problem{{Workload: "mail", Place: "mail (container)", Message: "two ports", Fix: "set rouse.port"}},
	})
	want := strings.TrimPrefix(`
NAME  PHASE   SINCE  IN-FLIGHT  QUEUED  SLEEPS-IN  COLD-STARTS  HOSTS
blog  ready   2d     0          0       1h30m      0            -
shop  failed  -      0          0       -          0            -
wiki  ready   5m     2          0       -          3            wiki.example.com,w.example.com

FAILED
  shop: exited with code 3: no [2Jdatabase

PROBLEMS
  mail: mail (container): two ports (set rouse.port)
`, "\n")
	for _, name := range []string{"status", "ls"} {
		got := rouse(name)
		assert.Equal(t, result{exitOK, want, ""}, got)
	}
}

func TestStatusOfOneShowsWhatTheTableHasNoRoomFor(t *testing.T) {
	rouse := cli(t, &standIn{workloads: []api.Workload{shop(), wiki()}})
	got := rouse("status", "wiki")
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "described in  wiki (container)\n")
	assert.Contains(t, got.stdout, "runs on       local (docker)\n")
	assert.Contains(t, got.stdout, "replica       r1 at 10.0.0.2:80, 2 in flight\n")
	got = rouse("status", "shop")
	assert.Contains(t, got.stdout, "reason      exited with code 3: no [2Jdatabase\n", "nothing that acts on a terminal")
	assert.Contains(t, got.stdout, "next start  not before ")
	assert.Contains(t, got.stdout, "log         gave up\n")
	got = rouse("status", "none")
	assert.Equal(t, result{exitNoWorkload, "", "rouse: no such workload: \"none\"\n"}, got)
}

func TestStatusOfAWorkloadThatABadLabelTookOutSaysSo(t *testing.T) {
	rouse := cli(t, &standIn{problems: []workload.Problem{{Workload: "mail", Place: "mail (container)", Message: "two ports"}}})
	got := rouse("status", "mail")
	assert.Equal(t, exitNoWorkload, got.code)
	assert.Contains(t, got.stderr, "mail (container): two ports")
}

func TestOutputFormatsHaveTheSameKeys(t *testing.T) {
	w := wiki()
	w.Since, w.Path, w.Hosts = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), "true", []string{}
	rouse := cli(t, &standIn{workloads: []api.Workload{w}})
	assert.Equal(t, strings.TrimPrefix(`
name: wiki
phase: ready
since: "2026-05-01T12:00:00Z"
hosts: []
path: "true"
replicas:
  - id: r1
    address: 10.0.0.2:80
    in_flight: 2
queued: 0
in_flight: 2
cold_starts: 3
generation: 4
node: local
runtime: docker
origin: wiki (container)
`, "\n"), rouse("status", "wiki", "-o", "yaml").stdout)
	assert.Equal(t, `{
  "name": "wiki",
  "phase": "ready",
  "since": "2026-05-01T12:00:00Z",
  "hosts": [],
  "path": "true",
  "replicas": [
    {
      "id": "r1",
      "address": "10.0.0.2:80",
      "in_flight": 2
    }
  ],
  "queued": 0,
  "in_flight": 2,
  "cold_starts": 3,
  "generation": 4,
  "node": "local",
  "runtime": "docker",
  "origin": "wiki (container)"
}
`, rouse("status", "wiki", "--output", "json").stdout)
	t.Setenv("ROUSE_OUTPUT", "json")
	assert.True(t, strings.HasPrefix(rouse("status").stdout, "{\n  \"workloads\": ["))
	assert.True(t, strings.HasPrefix(rouse("status", "-o", "table").stdout, "NAME"), "the flag is stronger")
	t.Setenv("ROUSE_OUTPUT", "xml")
	assert.Equal(t, exitUsage, rouse("status").code)
}

func TestWakeTellsTheCasesApart(t *testing.T) {
	for _, c := range []struct {
		err    error
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, []string{"wake", "wiki"}, exitOK, "wiki is ready\n", ""},
		{nil, []string{"wake", "none"}, exitNoWorkload, "", "no such workload"},
		{api.ErrNotReady, []string{"wake", "wiki", "--wait", "--timeout", "2s"}, exitNotReady, "", "not ready in time"},
		{fmt.Errorf("%w: exited with code 3", api.ErrFailed), []string{"wake", "shop", "--wait"}, exitFailure, "", "log: connecting\nlog: gave up\nrouse: the workload failed to start: exited with code 3\n"},
		{api.ErrUnavailable, []string{"wake", "wiki"}, exitUnreachable, "", "cannot be reached"},
	} {
		s := &standIn{workloads: []api.Workload{shop(), wiki()}, err: c.err}
		got := cli(t, s)(c.args...)
		assert.Equal(t, c.code, got.code, c.args)
		assert.Equal(t, c.stdout, got.stdout)
		assert.Contains(t, got.stderr, c.stderr)
	}
}

func TestWakeWaitsOnlyWhenAsked(t *testing.T) {
	s := &standIn{workloads: []api.Workload{wiki()}}
	rouse := cli(t, s)
	rouse("wake", "wiki", "--timeout", "7s")
	assert.Zero(t, s.wait)
	rouse("wake", "wiki", "--wait", "--timeout", "7s")
	assert.Equal(t, 7*time.Second, s.wait)
}

func TestSleepIsRefusedWhileInUse(t *testing.T) {
	s := &standIn{workloads: []api.Workload{{Name: "wiki", Reason: workload.Reason{Code: workload.ReasonAsked}}}}
	rouse := cli(t, s)
	assert.Equal(t, result{exitOK, "wiki is asleep (asked)\n", ""}, rouse("sleep", "wiki"))
	assert.Equal(t, exitNoWorkload, rouse("sleep", "none").code)
	s.err = fmt.Errorf("%w: 2 in flight", api.ErrInUse)
	assert.Equal(t, result{exitRefused, "", "rouse: the workload is in use: 2 in flight\n"}, rouse("sleep", "wiki"))
}

func TestKeepTellsUntilWhen(t *testing.T) {
	rouse := cli(t, &standIn{workloads: []api.Workload{wiki()}})
	assert.Contains(t, rouse("keep", "wiki", "1h").stdout, "wiki is kept awake until ")
	assert.Equal(t, result{exitOK, "wiki is no longer kept awake\n", ""}, rouse("keep", "wiki", "0"))
	assert.Equal(t, exitNoWorkload, rouse("keep", "none", "1h").code)
	for _, bad := range []string{"soon", "25h"} {
		got := rouse("keep", "wiki", bad)
		assert.Equal(t, exitUsage, got.code)
		assert.Contains(t, got.stderr, "is not a time from 0 to 24h")
	}
}

func TestLogsGoToStdoutAsTheyAre(t *testing.T) {
	s := &standIn{workloads: []api.Workload{wiki()}, lines: []string{"one", "\x1b[31mtwo"}}
	rouse := cli(t, s)
	assert.Equal(t, result{exitOK, "one\n\x1b[31mtwo\n", ""}, rouse("logs", "wiki"))
	assert.Equal(t, "\x1b[31mtwo\n", rouse("logs", "wiki", "-n", "1").stdout)
	assert.Equal(t, exitNoWorkload, rouse("logs", "none").code)
	assert.Equal(t, exitUsage, rouse("logs", "wiki", "-n", "-1").code)
}

func TestHealthTellsNotReadyFromUnreachable(t *testing.T) {
	s := &standIn{}
	rouse := cli(t, s)
	assert.Equal(t, result{exitOK, "ok\n", ""}, rouse("health"))
	s.checks = []api.Check{{Name: "nats", OK: true, Detail: "embedded"}, {Name: "docker", Detail: "event stream lost"}}
	assert.Equal(t, result{exitFailure, "CHECK   OK   DETAIL\nnats    yes  embedded\ndocker  no   event stream lost\n", "rouse: not ready: docker\n"}, rouse("health"))
	assert.Equal(t, exitOK, rouse("health", "--live").code)
	for _, args := range [][]string{{"health"}, {"health", "--live"}, {"status"}, {"wake", "x"}, {"events"}, {"events", "-f"}, {"explain", "x"}, {"logs", "x"}, {"sleep", "x"}, {"keep", "x", "1h"}} {
		got := invoke(t, append([]string{"--admin", "127.0.0.1:1"}, args...)...)
		assert.Equal(t, exitUnreachable, got.code, args)
		assert.Contains(t, got.stderr, "cannot reach Rouse at http://127.0.0.1:1")
		assert.Contains(t, got.stderr, "--admin")
		assert.Empty(t, got.stdout)
	}
}

func TestVersionNamesTheBuild(t *testing.T) {
	quiet(t)
	got := invoke(t, "version")
	assert.Equal(t, exitOK, got.code)
	assert.Regexp(t, `^rouse \S+ \(revision .*, go1\.\S+, \w+/\w+\)\n$`, got.stdout)
	assert.Contains(t, invoke(t, "version", "-o", "json").stdout, `"platform"`)
	assert.Regexp(t, `^rouse \S+\n$`, invoke(t, "--version").stdout)
}
