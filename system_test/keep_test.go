package system_test

import (
	"fmt"
	"net/http"
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
