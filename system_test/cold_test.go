package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASleepingContainerAnswersItsFirstRequest(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "hello", prefix: prefix, mimic: []string{"--startup", "300ms"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})
	require.False(t, b.running())

	cold := n.get("hello.localhost", "/some/path?q=1")
	require.NoError(t, cold.err)
	require.Equal(t, http.StatusOK, cold.status, cold.body)
	assert.Equal(t, "?1", cold.header.Get("Rouse-Cold-Start"))
	timing := cold.header.Get("Server-Timing")
	for _, step := range []string{"queue;dur=", "wake;dur=", "start;dur=", "probe;dur=", "added;dur="} {
		assert.Contains(t, timing, step)
	}
	var seen struct{ Method, Path, Host string }
	require.NoError(t, json.Unmarshal([]byte(cold.body), &seen))
	assert.Equal(t, "GET", seen.Method)
	assert.True(t, strings.HasPrefix(seen.Path, "/some/path"), seen.Path)
	assert.Equal(t, "hello.localhost", seen.Host)

	warm := n.get("hello.localhost", "/")
	require.NoError(t, warm.err)
	assert.Equal(t, http.StatusOK, warm.status)
	assert.Empty(t, warm.header.Get("Rouse-Cold-Start"))
	assert.Equal(t, 1, b.starts())

	unknown := n.get("nobody.localhost", "/")
	require.NoError(t, unknown.err)
	assert.Equal(t, http.StatusNotFound, unknown.status)
	assert.Equal(t, "application/problem+json", unknown.header.Get("Content-Type"))
}

func TestAHeldBodyArrivesWhole(t *testing.T) {
	prefix := newPrefix(t)
	newBox(t, boxPlan{name: "echo", prefix: prefix})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	sent := bytes.Repeat([]byte("0123456789abcdef"), 512<<10/16) // 512 KiB
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := n.do(ctx, http.MethodPost, "echo.localhost", "/echo", bytes.NewReader(sent))
	require.NoError(t, got.err)
	require.Equal(t, http.StatusOK, got.status)
	assert.Equal(t, string(sent), got.body)
	assert.Equal(t, "?1", got.header.Get("Rouse-Cold-Start"))
}

func TestAThousandAtOnceAreOneStartAndAThousandAnswers(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "crowd", prefix: prefix, mimic: []string{"--startup", "2s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	answers := burst(n, "crowd.localhost", 1000)
	byStatus := count(t, answers)
	assert.Equal(t, map[int]int{http.StatusOK: 1000}, byStatus)
	assert.Equal(t, 1, b.starts())
	assertGateEmpty(t, n, "crowd")
}

func TestOverflowIsRefusedAndTheHeldAreAnswered(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "small", prefix: prefix, labels: []string{"queue-requests=100"}, mimic: []string{"--startup", "3s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	answers := burst(n, "small.localhost", 1000)
	assert.Equal(t, map[int]int{http.StatusOK: 100, http.StatusServiceUnavailable: 900}, count(t, answers))
	for _, a := range answers {
		if a.status == http.StatusServiceUnavailable {
			require.NotEmpty(t, a.header.Get("Retry-After"))
		}
	}
	assert.Equal(t, 1, b.starts())
	assertGateEmpty(t, n, "small")
}

func TestTheWakeOutlivesTheClientThatAskedForIt(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "left", prefix: prefix, mimic: []string{"--startup", "500ms"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	gone := n.do(ctx, http.MethodGet, "left.localhost", "/", nil)
	require.Error(t, gone.err)

	n.waitPhase("left", "ready")
	assertGateEmpty(t, n, "left")
	warm := n.get("left.localhost", "/")
	require.NoError(t, warm.err)
	assert.Equal(t, http.StatusOK, warm.status)
	assert.Empty(t, warm.header.Get("Rouse-Cold-Start"))
	assert.Equal(t, 1, b.starts())
	assert.Contains(t, n.log.String(), "499")
}

// burst sends n requests at once and waits for all.
func burst(n *node, host string, requests int) []answer {
	answers := make([]answer, requests)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = n.get(host, "/") })
	}
	wg.Wait()
	return answers
}

// count sums up the statuses; a request without an answer fails the test.
func count(t *testing.T, answers []answer) map[int]int {
	t.Helper()
	byStatus := map[int]int{}
	for _, a := range answers {
		require.NoError(t, a.err)
		byStatus[a.status]++
	}
	return byStatus
}

func assertGateEmpty(t *testing.T, n *node, name string) {
	t.Helper()
	eventually(t, "the gate of "+name+" is empty", func() bool {
		v, err := n.view(name)
		return err == nil && v.Queued == 0 && v.InFlight == 0
	})
}

// drainAll reads a body to its end.
func drainAll(resp *http.Response) string {
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}
