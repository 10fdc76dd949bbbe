package system_test

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// sablierBox creates a container that has labels of Sablier alone.
func sablierBox(t *testing.T, name string, labels ...string) {
	t.Helper()
	args := []string{"create", "--name", name, "--label", dockertest.RunLabel()}
	for _, l := range labels {
		args = append(args, "--label", "sablier."+l)
	}
	docker(t, append(args, dockertest.Image(t), "mimic", "--listen", ":8080", "--startup", "200ms")...)
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", name).Run() })
}

// callSablier asks as a proxy plugin does.
func callSablier(t *testing.T, base, query string) (status int, state, body string) {
	t.Helper()
	resp, err := client.Get(base + "/api/strategies/" + query)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("X-Sablier-Session-Status"), string(text)
}

func TestContainersOfSablierAreWokenByItsAPIAndSleepAfterTheirSession(t *testing.T) {
	prefix := newPrefix(t)
	one, two, stranger := prefix+"-one", prefix+"-two", prefix+"-stranger"
	sablierBox(t, one, "enable=true", "group="+prefix, "anti-affinity=games")
	sablierBox(t, two, "enable=true", "group="+prefix+",other", "ready-after=100ms")
	sablierBox(t, stranger, "group="+prefix)
	addr := freeAddr(t)
	n := start(t, plan{
		role: "up", dir: t.TempDir(), args: []string{"--compat", "sablier"},
		config: dockerConfig(prefix) + fmt.Sprintf("sablier: { listen: %q }\n", addr),
	})
	base := "http://" + addr

	resp, err := client.Get(base + "/health")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	status, state, _ := callSablier(t, base, "dynamic?names="+stranger)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Empty(t, state)

	var callers sync.WaitGroup
	ends := make([]time.Time, 100)
	for i := range ends {
		callers.Go(func() {
			status, state, body := callSablier(t, base, "blocking?group="+prefix+"&session_duration=3s&timeout=55s")
			ends[i] = time.Now()
			assert.Equal(t, http.StatusOK, status, body)
			assert.Equal(t, "ready", state)
			assert.Contains(t, body, one)
			assert.Contains(t, body, two)
		})
	}
	callers.Wait()
	slices.SortFunc(ends, time.Time.Compare)
	t.Logf("%d callers of one cold group were answered within %v of each other", len(ends), ends[len(ends)-1].Sub(ends[0]))
	for _, name := range []string{one, two} {
		assert.EqualValues(t, 1, n.waitPhase(name, "ready").Generation, "one start, whoever called")
	}
	status, state, _ = callSablier(t, base, "dynamic?names="+two+"&session_duration=3s&theme=ghost")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "ready", state)

	list, err := client.Get(n.admin + "/api/v1/workloads")
	require.NoError(t, err)
	defer list.Body.Close()
	text, err := io.ReadAll(list.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "sablier.anti-affinity is not honoured")
	assert.False(t, strings.Contains(string(text), stranger), "it did not opt in")

	for _, name := range []string{one, two} { // after 3 s, and not after defaults.idle_timeout
		assert.EqualValues(t, 1, n.waitPhase(name, "asleep").Generation)
	}
	require.Equal(t, "created", strings.TrimSpace(docker(t, "inspect", "-f", "{{.State.Status}}", stranger)))
}
