package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

func TestTopOfWhatIsNoTerminalIsPlainLinesOfWhatChanged(t *testing.T) {
	s := &standIn{workloads: []api.Workload{blog(), shop(), wiki()}}
	rouse := cli(t, s)
	got := rouse("top", "--every", "100ms", "-n", "3")
	assert.Equal(t, exitOK, got.code)
	lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
	require.Len(t, lines, 3, "nothing changed: %s", got.stdout)
	assert.Regexp(t, `^\d\d:\d\d:\d\d  shop                  failed    0 in flight, 0 queued  exited with code 3: no \[2Jdatabase$`, lines[0])
	assert.Regexp(t, `  wiki                  ready     2 in flight, 0 queued$`, lines[2])
	assert.NotContains(t, got.stdout, "\x1b")

	for line := range strings.Lines(rouse("top", "--every", "100ms", "-n", "2", "-o", "json").stdout) {
		var list api.WorkloadList
		require.NoError(t, json.Unmarshal([]byte(line), &list))
		assert.Len(t, list.Workloads, 3)
	}
	assert.Equal(t, exitUsage, rouse("top", "--every", "1ms").code)
	assert.Equal(t, exitUsage, rouse("top", "-n", "-1").code)
	assert.Equal(t, exitUnreachable, invoke(t, "top", "--admin", "127.0.0.1:1").code)
}

func TestTopLinesTellOfWhatIsGone(t *testing.T) {
	var out buffer
	v := &topLines{g: &globals{output: formatTable}, out: &out, before: map[string]string{}}
	require.NoError(t, v.changes([]api.Workload{wiki(), blog()}))
	w := wiki()
	w.InFlight = 3
	require.NoError(t, v.changes([]api.Workload{w}))
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[2], "3 in flight")
	assert.Regexp(t, `  blog +gone$`, lines[3])
}

func TestCutLineCountsNoColours(t *testing.T) {
	assert.Equal(t, "a\x1b[31mbc\x1b[0m", cutLine("a\x1b[31mbcdé\x1b[0mé", 3))
	assert.Equal(t, "éé", cutLine("éé", 5))
	assert.Empty(t, cutLine("abc", 0))
}

// A wakingBackend takes its time for a wake, and tells of it meanwhile.
type wakingBackend struct{ *standIn }

func wakingStandIn() *wakingBackend {
	s := &wakingBackend{&standIn{History: api.NewHistory(0, 0), workloads: []api.Workload{wiki()}}}
	s.Add(readyEvent("past"))
	return s
}

func (b *wakingBackend) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	now := time.Now()
	w := workload.Wake{ID: "now", Workload: name, RequestedAt: now, ReceivedAt: now}
	pause(ctx, 3*progressEvery)
	b.Add(workload.Event{Workload: name, Kind: workload.EventWoken, At: now, Wake: &w})
	w.StartAt = now
	pause(ctx, 3*progressEvery)
	b.Add(workload.Event{Workload: name, Kind: workload.EventWoken, At: now.Add(1), Wake: &w})
	pause(ctx, 3*progressEvery)
	return b.standIn.Wake(ctx, name, wait)
}

func TestProgressOfAWakeIsALineForEachStep(t *testing.T) {
	got := cliOf(t, wakingStandIn())("wake", "wiki", "--wait")
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, "wiki is ready\n", got.stdout)
	lines := strings.Split(strings.TrimSuffix(got.stderr, "\n"), "\n")
	require.Len(t, lines, 3, "no step twice: %s", got.stderr)
	for i, phase := range []workload.WakePhase{workload.PhaseWake, workload.PhaseQueue, workload.PhaseStart} {
		assert.Regexp(t, `^wiki: `+progressWords[phase]+`, \d\.\d s of about 0\.9 s$`, lines[i])
	}
	assert.Empty(t, cliOf(t, wakingStandIn())("wake", "wiki", "--wait", "-o", "json").stderr)
}
