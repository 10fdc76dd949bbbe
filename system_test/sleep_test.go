package system_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnIdleContainerIsStoppedAndWokenAgain(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "idle", prefix: prefix, labels: []string{"idle-timeout=1s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	for round := 1; round <= 2; round++ {
		require.Equal(t, http.StatusOK, n.get("idle.localhost", "/").status)
		n.waitPhase("idle", "asleep")
		assert.False(t, b.running())
		assert.Equal(t, round, b.starts())
	}
}

func TestStreamsInFlightOutliveTheIdleTimeout(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "stream", prefix: prefix, labels: []string{"idle-timeout=1s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	sse, err := n.open(ctx, http.MethodGet, "stream.localhost", "/sse?every=200ms", nil)
	require.NoError(t, err)
	defer sse.Body.Close()
	require.Equal(t, http.StatusOK, sse.StatusCode)
	events := bufio.NewScanner(sse.Body)
	for seen := 0; seen < 20; { // 4 s of events: four idle timeouts
		require.True(t, events.Scan(), "the stream was cut: %v", events.Err())
		if strings.HasPrefix(events.Text(), "data:") {
			seen++
		}
	}
	require.Equal(t, 0, b.deaths())

	ws, _, err := websocket.Dial(ctx, n.traffic+"/ws", &websocket.DialOptions{Host: "stream.localhost"})
	require.NoError(t, err)
	defer ws.CloseNow()
	_ = sse.Body.Close()
	time.Sleep(4 * time.Second) // silent all the while
	require.NoError(t, ws.Write(ctx, websocket.MessageText, []byte("still there?")))
	_, msg, err := ws.Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, "still there?", string(msg))
	require.Equal(t, 0, b.deaths())

	require.NoError(t, ws.Close(websocket.StatusNormalClosure, ""))
	n.waitPhase("stream", "asleep")
	assert.Equal(t, 1, b.starts())
}

// Requests that do not count neither wake it nor keep it awake.
func TestNoWakeRequestsNeitherWakeNorKeepAwake(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "watched", prefix: prefix, labels: []string{"idle-timeout=2s", "no-wake=/healthz"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	asleep := n.get("watched.localhost", "/healthz")
	require.NoError(t, asleep.err)
	assert.Equal(t, http.StatusServiceUnavailable, asleep.status)
	assert.NotEmpty(t, asleep.header.Get("Retry-After"))
	assert.Equal(t, 0, b.starts())

	require.Equal(t, http.StatusOK, n.get("watched.localhost", "/").status)
	eventually(t, "it sleeps in spite of its monitor", func() bool {
		_ = n.get("watched.localhost", "/healthz")
		v, err := n.view("watched")
		return err == nil && v.Phase == "asleep"
	})
	assert.Equal(t, 1, b.starts())
}

// A request that arrives at any moment of a stop is answered by the workload:
// 200 rounds with containers that are stopped or paused, the request once a little before the sleep is asked for, once
// a little after, at moments spread over the whole stop.
func TestStopAndWakeRaceInBothOrders(t *testing.T) {
	const rounds, lanes = 200, 4
	prefix := newPrefix(t)
	stops := [lanes]string{"stop", "pause", "stop", "pause"}
	boxes := make([]*box, lanes)
	for i := range lanes {
		addr := freeAddr(t)
		boxes[i] = newBox(t, boxPlan{name: fmt.Sprintf("race%d", i), prefix: prefix,
			labels: []string{"port=" + portOf(addr), "stop=" + stops[i]},
			docker: []string{"--network", "host", "--env", "PORT=" + portOf(addr)},
			mimic:  []string{"--listen", addr}})
	}
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	var all sync.WaitGroup // beside each other whatever -parallel says: they mostly wait
	for lane := range lanes {
		all.Go(func() {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				name := fmt.Sprintf("race%d", lane)
				for round := range rounds / lanes {
					raceOnce(t, n, name, round)
				}
			})
		})
	}
	all.Wait()
	for i, b := range boxes {
		v, err := n.view(fmt.Sprintf("race%d", i))
		require.NoError(t, err)
		t.Logf("%s: %d wakes in %d rounds", stops[i], v.Generation, rounds/lanes)
		assert.GreaterOrEqual(t, v.Generation, uint64(3), "it really slept and woke")
		assert.LessOrEqual(t, v.Generation, uint64(2*rounds/lanes+1))
		if stops[i] == "stop" {
			assert.EqualValues(t, v.Generation, b.starts(), "one start for each wake")
		}
	}
}

func raceOnce(t *testing.T, n *node, name string, round int) {
	t.Helper()
	host := name + ".localhost"
	warm := n.get(host, "/")
	require.NoError(t, warm.err)
	require.Equal(t, http.StatusOK, warm.status, "round %d: %s", round, warm.body)

	offset := time.Duration(round) * 7 * time.Millisecond // 0 to 350 ms
	slept := make(chan struct{})
	ask := func() {
		defer close(slept)
		resp, err := client.Post(n.admin+"/api/v1/workloads/"+name+"/sleep", "", nil)
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	var raced answer
	if round%2 == 0 { // the sleep first
		go ask()
		time.Sleep(offset)
		raced = n.get(host, "/")
	} else { // the request first; it takes as long as offset
		done := make(chan answer, 1)
		go func() { done <- n.get(host, fmt.Sprintf("/delay/%d", offset.Milliseconds())) }()
		time.Sleep(offset / 2)
		go ask()
		raced = <-done
	}
	<-slept
	require.NoError(t, raced.err, "round %d", round)
	require.Equal(t, http.StatusOK, raced.status, "round %d: %s", round, raced.body)
}
