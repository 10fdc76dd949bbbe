package system_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apart starts the three roles as processes of their own.
func apart(t *testing.T, prefix string) (nats, gateway, scaler *node, natsPlan, scalerPlan plan) {
	t.Helper()
	addr := freeAddr(t)
	natsPlan = plan{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", addr, t.TempDir())}
	nats = start(t, natsPlan)
	url := fmt.Sprintf("nats: { url: %q }\n", "nats://"+addr)
	scalerPlan = plan{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)}
	scaler = start(t, scalerPlan)
	gateway = start(t, plan{role: "gateway", dir: t.TempDir(), config: url})
	return nats, gateway, scaler, natsPlan, scalerPlan
}

func TestAScalerKilledMidStartIsFinishedByTheNext(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "orphan", prefix: prefix, mimic: []string{"--startup", "2s"}})
	_, gateway, scaler, _, scalerPlan := apart(t, prefix)
	waitRoute(t, gateway, "orphan")

	done := make(chan answer, 1)
	go func() { done <- gateway.get("orphan.localhost", "/") }()
	eventually(t, "the container was started", b.running)
	scaler.kill()
	start(t, scalerPlan)

	a := <-done
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Equal(t, 1, b.starts())
	assert.Equal(t, 0, b.deaths())
}

func TestAScalerKilledBeforeTheStartIsReplaced(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "early", prefix: prefix})
	_, gateway, scaler, _, scalerPlan := apart(t, prefix)
	waitRoute(t, gateway, "early")

	scaler.kill()
	done := make(chan answer, 1)
	go func() { done <- gateway.get("early.localhost", "/") }()
	eventually(t, "the request is held", func() bool {
		v, err := gateway.view("early")
		return err == nil && v.Queued == 1
	})
	start(t, scalerPlan)
	a := <-done
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Equal(t, 1, b.starts())
}

func TestARestartOfEverythingAdoptsWhatIsInUse(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "inuse", prefix: prefix, labels: []string{"idle-timeout=3s"}})
	p := plan{role: "up", dir: t.TempDir()}
	p.config = dockerConfig(prefix) + fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir())
	n := start(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	sse, err := n.open(ctx, http.MethodGet, "inuse.localhost", "/sse?every=100ms", nil)
	require.NoError(t, err)
	require.True(t, bufio.NewScanner(sse.Body).Scan())
	started := b.startedAt()
	n.kill()
	_ = sse.Body.Close()

	n = start(t, p)
	eventually(t, "it is known to run", func() bool {
		v, err := n.view("inuse")
		return err == nil && v.Phase == "ready"
	})
	a := n.get("inuse.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status)
	assert.Empty(t, a.header.Get("Rouse-Cold-Start"))
	assert.Equal(t, started, b.startedAt())
	assert.Equal(t, 0, b.deaths())

	n.waitPhase("inuse", "asleep") // and only then, idle, it sleeps
	assert.Equal(t, 1, b.starts())
	assert.Equal(t, 1, b.deaths())
}

func TestAwakeWorkloadsAnswerWithoutNATS(t *testing.T) {
	prefix := newPrefix(t)
	b := newBox(t, boxPlan{name: "awake", prefix: prefix, labels: []string{"idle-timeout=2s"}})
	other := newBox(t, boxPlan{name: "asleep", prefix: prefix, labels: []string{"hold-timeout=2s"}})
	nats, gateway, scaler, natsPlan, _ := apart(t, prefix)
	waitRoute(t, gateway, "awake")
	waitRoute(t, gateway, "asleep")
	require.Equal(t, http.StatusOK, gateway.get("awake.localhost", "/").status)

	nats.kill()
	for range 50 { // 5 s: more than two idle timeouts
		a := gateway.get("awake.localhost", "/")
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status, a.body)
		time.Sleep(100 * time.Millisecond)
	}
	assert.Equal(t, 0, b.deaths(), "nothing is put to sleep while the gateways are not heard")
	cold := gateway.get("asleep.localhost", "/")
	require.NoError(t, cold.err)
	assert.Equal(t, http.StatusServiceUnavailable, cold.status, cold.body)
	assert.NotEmpty(t, cold.header.Get("Retry-After"))
	resp, err := client.Get(scaler.admin + "/readyz")
	require.NoError(t, err)
	_ = drainAll(resp)
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)

	start(t, natsPlan) // on its old address and store
	eventually(t, "the sleeping one is woken", func() bool {
		return gateway.get("asleep.localhost", "/").status == http.StatusOK
	})
	assert.Equal(t, 1, other.starts())
	gateway.waitPhase("awake", "asleep")
	assert.Equal(t, 1, b.starts())
}

// A container that is recreated while it sleeps, in the steps that compose
// takes, is never without a route, and the new one is woken.
func TestAContainerRecreatedWhileAsleepIsWoken(t *testing.T) {
	prefix := newPrefix(t)
	p := boxPlan{name: "again", prefix: prefix}
	old := newBox(t, p)
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	id := strings.TrimSpace(docker(t, "inspect", "-f", "{{.Id}}", old.name))
	docker(t, "rename", old.name, id[:12]+"_"+old.name)
	b := newBox(t, p)
	docker(t, "rm", id)
	a := n.get("again.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Equal(t, 1, b.starts())
}

// waitRoute waits until the gateway knows the workload.
func waitRoute(t *testing.T, gateway *node, name string) {
	t.Helper()
	eventually(t, "the gateway knows "+name, func() bool {
		_, err := gateway.view(name)
		return err == nil
	})
}
