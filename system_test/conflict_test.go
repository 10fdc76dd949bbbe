package system_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// neverBoth looks at the engine until the test ends: the boxes never run together.
func neverBoth(t *testing.T, a, b *box) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			out, _ := exec.CommandContext(ctx, "docker", "inspect", "-f", "{{.State.Running}}", a.name, b.name).Output()
			assert.NotEqual(t, "true\ntrue\n", string(out), "both run")
			time.Sleep(50 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); watch.Wait() })
}

// Two models of one GPU, two gateways: whoever is asked for is awake, alone,
// nobody's request is cut, and a scaler that dies half-way is succeeded.
func TestWorkloadsThatConflictAreNeverAwakeTogether(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	llama := newBox(t, boxPlan{name: "llama", prefix: prefix, labels: []string{"conflicts-with=qwen"}, mimic: []string{"--startup", "300ms"}})
	qwen := newBox(t, boxPlan{name: "qwen", prefix: prefix, mimic: []string{"--startup", "300ms"}})
	neverBoth(t, llama, qwen)
	natsAddr := freeAddr(t)
	start(t, plan{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", natsAddr, t.TempDir())})
	url := fmt.Sprintf("nats: { url: %q }\n", "nats://"+natsAddr)
	scaler := start(t, plan{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)})
	g1 := start(t, plan{role: "gateway", dir: t.TempDir(), config: url})
	g2 := start(t, plan{role: "gateway", dir: t.TempDir(), config: url})
	for _, g := range []*node{g1, g2} {
		waitRoute(t, g, "llama")
		waitRoute(t, g, "qwen")
	}
	time.Sleep(4 * time.Second) // both are heard

	require.Equal(t, http.StatusOK, g1.get("llama.localhost", "/").status)
	began := time.Now()
	require.Equal(t, http.StatusOK, g2.get("qwen.localhost", "/").status)
	assert.Less(t, time.Since(began), 10*time.Second, "one that nobody uses makes way at once")
	assert.False(t, llama.running())

	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	stream, err := g1.open(ctx, http.MethodGet, "qwen.localhost", "/sse?every=200ms", nil)
	require.NoError(t, err)
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	held := make(chan answer, 1)
	go func() { held <- g2.get("llama.localhost", "/") }()
	eventually(t, "it says what it waits for", func() bool {
		v, err := g2.view("llama")
		return err == nil && v.Phase == "waking" && strings.Contains(fmt.Sprint(v.Reason), "until qwen sleeps")
	})
	scaler.kill()
	start(t, plan{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)})
	for seen := 0; seen < 60; { // 12 s: it is in use, and has to make way by now
		require.True(t, lines.Scan(), "the stream was cut: %v", lines.Err())
		if strings.HasPrefix(lines.Text(), "data:") {
			seen++
		}
	}
	require.Zero(t, llama.deaths()+qwen.deaths()-1, "only llama has slept so far")
	_ = stream.Body.Close()
	a := <-held
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.body)
	assert.False(t, qwen.running())

	// Both wanted all the time, at both gateways: each has its turns.
	until := time.Now().Add(25 * time.Second)
	var crowd sync.WaitGroup
	for i, host := range []string{"llama.localhost", "qwen.localhost", "llama.localhost", "qwen.localhost"} {
		g := []*node{g1, g2}[i/2]
		crowd.Go(func() {
			for time.Now().Before(until) {
				a := g.get(host, "/")
				if !assert.NoError(t, a.err) || !assert.Equal(t, http.StatusOK, a.status, a.body) {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	crowd.Wait()
	t.Logf("starts: llama %d, qwen %d", llama.starts(), qwen.starts())
	assert.Greater(t, llama.starts(), 2)
	assert.Greater(t, qwen.starts(), 1)
}
