package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/internal/browsertest"
	"github.com/rouse-dev/rouse/workload"
)

func TestDashboardWakesAWorkloadAndKeepsItAwake(t *testing.T) {
	tab := browsertest.Open(t, nil)
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + processConfig(t, "tool", "    idle_timeout: 2s\n")})
	tab.Visit(n.admin + "/")
	button := func(name string) string { return fmt.Sprintf(`[aria-label=%q]`, name+": tool") }
	has := func(name string) string { return fmt.Sprintf(`!!document.querySelector(%q)`, button(name)) }
	tab.Until(has("Wake"))
	tab.Do(chromedp.Click(chromedp.CSS(button("Keep awake for an hour"))))
	tab.Until(has("Put to sleep") + " && " + has("Do not keep awake"))
	n.waitPhase("tool", "ready")
	time.Sleep(4 * time.Second) // twice its idle timeout
	n.waitPhase("tool", "ready")
	tab.Until(`document.querySelectorAll("#waterfall li").length === 1`)

	tab.Do(chromedp.Click(chromedp.CSS(button("Do not keep awake"))))
	tab.Until(has("Wake") + ` && document.querySelector("#rows .phase").textContent === "asleep"`)
	tab.Do(chromedp.Click(chromedp.CSS(button("Wake"))))
	tab.Until(has("Put to sleep"))
	tab.Do(chromedp.Click(chromedp.CSS(button("Put to sleep"))))
	tab.Until(has("Wake"))
	n.waitPhase("tool", "asleep")
	tab.Until(`document.querySelector("#tail").textContent.includes("slept")`)
	resp, err := client.Get(n.admin + "/api/v1/events?follow=false")
	require.NoError(t, err)
	assert.Regexp(t, `"freed_bytes":[1-9][0-9]{5,}`, drainAll(resp), "what the sleep gave back")
	complaints, _ := tab.Heard()
	assert.Empty(t, complaints)
}

// What 500 workloads and 1,000 events a second cost a node, with somebody who
// looks at the dashboard and without, in turn.
func TestDashboardOfABusyHouse(t *testing.T) {
	tab := browsertest.Open(t, nil)
	addr := freeAddr(t)
	var config strings.Builder
	fmt.Fprintf(&config, "nats: { listen: %q }\nworkloads:\n", addr)
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("w%03d", i)
		fmt.Fprintf(&config, "  - { name: %s, host: [%s.test], process: { command: [\"false\"] } }\n", names[i], names[i])
	}
	n := start(t, plan{role: "up", dir: t.TempDir(), program: plain(t), config: noDocker + config.String()})
	bus, err := events.Connect(t.Context(), events.Config{URL: "nats://" + addr, Name: "test", Role: "scaler"})
	require.NoError(t, err)
	defer bus.Close()

	ctx, stop := context.WithCancel(t.Context())
	var tellers sync.WaitGroup
	told := make([]int, 4)
	for k := range told {
		tellers.Go(func() {
			tick := time.NewTicker(4 * time.Millisecond) // four of them: 1,000 in a second
			defer tick.Stop()
			for i := k; ctx.Err() == nil; i += 4 {
				<-tick.C
				now := time.Now()
				w := workload.Wake{ID: fmt.Sprint("wake-", i/8), Workload: names[i/8%500], Trigger: workload.TriggerRequest,
					RequestedAt: now.Add(-time.Second), ReceivedAt: now.Add(-900 * time.Millisecond), StartedAt: now.Add(-500 * time.Millisecond), ReadyAt: now}
				if bus.RecordEvent(ctx, workload.Event{Workload: w.Workload, Kind: workload.EventReady, At: now, Generation: uint64(i), Actor: "test", Wake: &w}) == nil {
					told[k]++
				}
			}
		})
	}
	const window = 4 * time.Second
	measure := func() float64 {
		time.Sleep(time.Second)
		before, began := cpuOf(t, n.cmd.Process.Pid), time.Now()
		time.Sleep(window)
		return 100 * (cpuOf(t, n.cmd.Process.Pid) - before).Seconds() / time.Since(began).Seconds()
	}
	var alone, watched []float64
	began := time.Now()
	for range 3 {
		tab.Visit("about:blank")
		alone = append(alone, measure())
		tab.Visit(n.admin + "/")
		tab.Until(`document.querySelectorAll("#rows tr button").length >= 1000`)
		watched = append(watched, measure())
		asked := time.Now()
		assert.Equal(t, 500, browsertest.Eval[int](tab, `document.querySelectorAll("#rows tr").length`))
		t.Logf("the page answered within %v; the longest gap between its frames was %.0f ms", time.Since(asked),
			browsertest.Eval[float64](tab, `new Promise(done => { let last = performance.now(), most = 0, n = 0; const f = now => { most = Math.max(most, now - last); last = now; ++n < 120 ? requestAnimationFrame(f) : done(most); }; requestAnimationFrame(f); })`))
	}
	stop()
	tellers.Wait()
	rate := float64(told[0]+told[1]+told[2]+told[3]) / time.Since(began).Seconds()
	slices.Sort(alone)
	slices.Sort(watched)
	t.Logf("%.0f events/s: %.1f %% of a core without a dashboard, %.1f %% with one: it takes %.1f %%", rate, alone[1], watched[1], watched[1]-alone[1])
	assert.Greater(t, rate, 300.0, "there was something to show")
	assert.Less(t, watched[1], 3*alone[1]+10, "it takes no more than the events themselves")
}
