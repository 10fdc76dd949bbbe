package system_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What somebody has kept awake stays so whatever happens to the scaler, until
// it is ended.
func TestAWorkloadIsKeptAwakeAcrossTheDeathOfItsScaler(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "kept", prefix: prefix, labels: []string{"idle-timeout=1s"}})
	natsAddr := freeAddr(t)
	start(t, plan{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", natsAddr, t.TempDir())})
	url := fmt.Sprintf("nats: { url: %q }\n", "nats://"+natsAddr)
	scaler := start(t, plan{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)})
	g := start(t, plan{role: "gateway", dir: t.TempDir(), config: url})
	waitRoute(t, g, "kept")
	keep := func(span string) {
		resp, err := client.Post(g.admin+"/api/v1/workloads/kept/keep?for="+span, "", nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	keep("1h")
	g.waitPhase("kept", "ready")
	scaler.kill()
	start(t, plan{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)})
	for range 8 { // of which it may not sleep for three, since gateways are to be heard
		time.Sleep(time.Second)
		require.True(t, b.running())
	}
	keep("0")
	g.waitPhase("kept", "asleep")
	assert.Equal(t, 1, b.starts())
}

// What is throttled goes on running, and answers at full speed once it is
// asked for.
func TestAThrottledContainerIsWokenWithoutAStart(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "slow", prefix: prefix, labels: []string{"idle-timeout=1s", "stop=throttle"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})
	quota := func() string {
		return strings.TrimSpace(docker(t, "inspect", "-f", "{{.HostConfig.CpuQuota}}", b.name))
	}
	for round := range 3 {
		begun := time.Now()
		require.Equal(t, http.StatusOK, n.get("slow.localhost", "/").status)
		t.Logf("answered after %s", time.Since(begun))
		if round > 0 {
			assert.Equal(t, "-1", quota())
		}
		n.waitPhase("slow", "asleep")
		assert.True(t, b.running())
		assert.Equal(t, "5000", quota())
	}
	assert.Equal(t, 1, b.starts())
	n.stop()
	n = start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})
	require.Equal(t, http.StatusOK, n.get("slow.localhost", "/").status)
	assert.Equal(t, "-1", quota(), "the next scaler knows it by its mark")
	assert.Equal(t, 1, b.starts())
}
