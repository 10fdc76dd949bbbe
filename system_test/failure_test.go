package system_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAStartThatFailsIsAnsweredWithItsExitCode(t *testing.T) {
	prefix := newPrefix(t)
	newBox(t, boxPlan{name: "broken", prefix: prefix, labels: []string{"hold-timeout=50s"},
		mimic: []string{"--startup", "1h", "--exit-after", "100ms", "--exit-code", "7"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	a := n.get("broken.localhost", "/")
	require.NoError(t, a.err)
	require.Equal(t, http.StatusBadGateway, a.status, a.body)
	assert.Equal(t, "application/problem+json", a.header.Get("Content-Type"))
	assert.Contains(t, a.body, "7", "the exit code is in the answer")
	assert.Less(t, a.took.Seconds(), 25.0, "long before the hold timeout")
	v, err := n.view("broken")
	require.NoError(t, err)
	assert.Equal(t, "failed", v.Phase)
	assertGateEmpty(t, n, "broken")
}

func TestAnUnhealthyContainerFailsTheWake(t *testing.T) {
	prefix := newPrefix(t)
	newBox(t, boxPlan{name: "sick", prefix: prefix, labels: []string{"ready=docker"},
		docker: []string{"--health-cmd", "none", "--health-interval", "1s", "--health-retries", "1", "--health-timeout", "1s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	a := n.get("sick.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusBadGateway, a.status, a.body)
	assert.Contains(t, a.body, "unhealthy")
}

func TestAWorkloadThatIsNeverReadyTimesOut(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "never", prefix: prefix, labels: []string{"wake-timeout=2s"}, mimic: []string{"--startup", "1h"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	a := n.get("never.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
	eventually(t, "the start was given up", func() bool { return !b.running() })
}

func TestTheWaitIsShorterThanTheWake(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "slow", prefix: prefix, labels: []string{"hold-timeout=500ms"}, mimic: []string{"--startup", "2s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	a := n.get("slow.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
	assert.NotEmpty(t, a.header.Get("Retry-After"))

	n.waitPhase("slow", "ready") // the wake goes on
	assert.Equal(t, http.StatusOK, n.get("slow.localhost", "/").status)
	assert.Equal(t, 1, b.starts())
}

// A bad label takes out its workload alone, and is said where people look.
func TestABadLabelTakesOutThatWorkloadOnly(t *testing.T) {
	prefix := newPrefix(t)
	newBox(t, boxPlan{name: "good", prefix: prefix})
	newBox(t, boxPlan{name: "bad", prefix: prefix, labels: []string{"idle-timeot=5m"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	assert.Equal(t, http.StatusOK, n.get("good.localhost", "/").status)
	assert.Equal(t, http.StatusNotFound, n.get("bad.localhost", "/").status)
	resp, err := client.Get(n.admin + "/api/v1/workloads")
	require.NoError(t, err)
	body := drainAll(resp)
	assert.Contains(t, body, "idle-timeot")
	assert.Contains(t, body, "idle-timeout", "the nearest known name")
	assert.Contains(t, n.log.String(), "idle-timeot")
}
