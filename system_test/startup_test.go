package system_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Exit codes of the contract.
const (
	exitOK          = 0
	exitFailure     = 1
	exitConfig      = 3
	exitUnreachable = 4
)

// refuse runs a node that must not come up, and returns its code and output.
func refuse(t *testing.T, p plan) (int, string) {
	t.Helper()
	n := launch(t, p)
	select {
	case <-n.ended:
	case <-time.After(patience):
		t.Fatalf("%s came up, or hangs:\n%s", p.role, n.log.tail(50))
	}
	return n.cmd.ProcessState.ExitCode(), n.log.String()
}

// noDocker keeps a node away from the engine.
const noDocker = "docker: { host: \"\" }\n"

func processConfig(t *testing.T, name, extra string, mimic ...string) string {
	t.Helper()
	command := append([]string{binary(t, "loadtest"), "mimic", "--listen", "127.0.0.1:{port}"}, mimic...)
	for i, word := range command {
		command[i] = fmt.Sprintf("%q", word)
	}
	return fmt.Sprintf("workloads:\n  - name: %s\n    host: [%s.localhost]\n    process: { command: [%s] }\n%s",
		name, name, strings.Join(command, ", "), extra)
}

func TestEveryWrongLineIsNamedAtOnce(t *testing.T) {
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), config: noDocker + `
limits: { queue_bytes: lots }
defaults: { idle_timeot: 5m, hold_timeout: fast }
workloads:
  - name: a
    host: [x.localhost]
    process: { command: [true] }
  - name: c
    host: [y.localhost]
    port: 70000
    process: { command: [true] }
  - name: b
    host: [x.localhost]
    process: { command: [true] }
`})
	assert.Equal(t, exitConfig, code, out)
	for _, part := range []string{"queue_bytes", "idle_timeot", "idle_timeout", "hold_timeout", "70000", "x.localhost"} {
		assert.Contains(t, out, part)
	}
	assert.Regexp(t, `\.yaml:\d+:\d+`, out)
}

func TestAnEngineThatDoesNotAnswerIsNamed(t *testing.T) {
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), config: "docker: { host: \"unix:///nonexistent/docker.sock\" }\n"})
	assert.Equal(t, exitUnreachable, code, out)
	assert.Contains(t, out, "/nonexistent/docker.sock")
}

func TestANATSServerThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	var both sync.WaitGroup // beside each other whatever -parallel says: they wait
	for _, role := range []string{"gateway", "scaler"} {
		both.Go(func() {
			t.Run(role, func(t *testing.T) {
				code, out := refuse(t, plan{role: role, dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { url: %q }\n", "nats://me:secret@"+addr)})
				assert.Equal(t, exitUnreachable, code, out)
				assert.Contains(t, out, addr)
				assert.NotContains(t, out, "secret")
			})
		})
	}
	both.Wait()
}

func TestAPortInUseIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), env: []string{"ROUSE_LISTEN=" + l.Addr().String()}, config: noDocker})
	assert.Equal(t, exitFailure, code, out)
	assert.Contains(t, out, l.Addr().String())
	assert.Contains(t, out, "in use")
}

func TestAStoreThatCannotBeWrittenIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { store_dir: %q }\n", file)})
	assert.Equal(t, exitConfig, code, out)
	assert.Contains(t, out, file)
}

func TestAStoreInUseIsNotShared(t *testing.T) {
	store := fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir())
	start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + store})
	code, out := refuse(t, plan{role: "up", dir: t.TempDir(), config: noDocker + store})
	assert.Equal(t, exitFailure, code, out)
	assert.Contains(t, out, "in use")
}

func TestACleanEndIsCleanAndEndsItsProcesses(t *testing.T) {
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir()) + processConfig(t, "tool", "")})
	a := n.get("tool.localhost", "/")
	require.NoError(t, a.err)
	require.Equal(t, http.StatusOK, a.status, a.body)
	v, err := n.view("tool")
	require.NoError(t, err)
	require.Len(t, v.Replicas, 1)

	n.stop()
	assert.Equal(t, exitOK, n.cmd.ProcessState.ExitCode(), n.log.tail(30))
	_, err = net.DialTimeout("tcp", v.Replicas[0].Address, time.Second)
	assert.Error(t, err, "the process has ended with its node")
}

func TestAHeldRequestIsAnsweredThroughACleanEnd(t *testing.T) {
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir()) + processConfig(t, "late", "", "--startup", "1s")})
	done := make(chan answer, 1)
	go func() { done <- n.get("late.localhost", "/") }()
	eventually(t, "it is held", func() bool {
		v, err := n.view("late")
		return err == nil && v.Queued == 1
	})
	n.stop()
	a := <-done
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
}

// The same code, with processes in place of containers: a killed node's
// process is found again, not started twice.
func TestAProcessOutlivesAKilledNodeAndIsAdopted(t *testing.T) {
	p := plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { store_dir: %q }\n", t.TempDir()) + processConfig(t, "stay", "    idle_timeout: 2s\n")}
	n := start(t, p)
	first := n.get("stay.localhost", "/")
	require.NoError(t, first.err)
	require.Equal(t, http.StatusOK, first.status, first.body)
	before, err := n.view("stay")
	require.NoError(t, err)
	n.kill()

	n = start(t, p)
	n.waitPhase("stay", "ready")
	a := n.get("stay.localhost", "/")
	require.NoError(t, a.err)
	assert.Equal(t, http.StatusOK, a.status)
	assert.Empty(t, a.header.Get("Rouse-Cold-Start"))
	after, err := n.view("stay")
	require.NoError(t, err)
	assert.Equal(t, before.Replicas, after.Replicas)
	n.waitPhase("stay", "asleep")
}
