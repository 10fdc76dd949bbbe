package system_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The roles do their whole job on a NATS server of its own with the accounts
// that are shipped: each with the least rights.
func TestRolesRunWithTheShippedAccounts(t *testing.T) {
	t.Setenv("GATEWAY_PASSWORD", "g")
	t.Setenv("SCALER_PASSWORD", "s")
	opts, err := server.ProcessConfigFile("../deploy/nats/accounts.conf")
	require.NoError(t, err)
	opts.Host, opts.Port, opts.StoreDir, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, t.TempDir(), true, true
	nats, err := server.NewServer(opts)
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	require.True(t, nats.ReadyForConnections(patience))
	url := func(user, password string) string {
		return fmt.Sprintf("nats: { url: \"nats://%s:%s@%s\" }\n", user, password, nats.Addr())
	}

	start(t, plan{role: "scaler", dir: t.TempDir(), config: noDocker + url("scaler", "s") + processConfig(t, "tool", "    idle_timeout: 1s\n")})
	gateway := start(t, plan{role: "gateway", dir: t.TempDir(), config: url("gateway", "g")})
	waitRoute(t, gateway, "tool")
	a := gateway.get("tool.localhost", "/")
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.body)
	gateway.waitPhase("tool", "asleep")

	resp, err := client.Post(gateway.admin+"/api/v1/workloads/tool/wake?wait=20s", "", nil)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode, drainAll(resp))
	resp, err = client.Get(gateway.admin + "/api/v1/workloads/tool/logs?lines=5")
	require.NoError(t, err)
	assert.Contains(t, drainAll(resp), "listening")
	time.Sleep(2 * time.Second) // as long as a refused subscription takes to be told
	resp, err = client.Get(gateway.admin + "/readyz")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode, drainAll(resp))
}
