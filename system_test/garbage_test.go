package system_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Garbage in place of everything that is stored of a workload: it is served
// all the same, also by a program that starts on it, and what is stored is
// readable again.
func TestGarbageInTheStoreKeepsNoWorkloadFromBeingServed(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { listen: %q }\n", addr) + processConfig(t, "tool", "")}
	n := start(t, p)
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	before := n.waitPhase("tool", "ready")
	spoil(t, addr)
	assert.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status, "a gateway goes on with what it knew")
	n.kill()

	n = start(t, p)
	spoil(t, addr)
	a := n.get("tool.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	after := n.waitPhase("tool", "ready")
	assert.Greater(t, after.Generation, before.Generation, "generations never go back")
	assert.Contains(t, n.log.String(), "nats message skipped")
}

func spoil(t *testing.T, addr string) {
	t.Helper()
	nc, err := nats.Connect("nats://" + addr)
	require.NoError(t, err)
	defer nc.Close()
	for _, key := range []string{"$KV.ROUSE_STATE.tool", "$KV.ROUSE_WORKLOADS.tool", "$KV.ROUSE_PROBLEMS.local", "rouse.v1.event.tool.ready"} {
		_, err := nc.Request(key, []byte("garbage"), patience)
		require.NoError(t, err)
	}
}
