package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// A terminal is what a person sees of a command, and their Ctrl-C.
type terminal struct {
	transcript
	cmd   *exec.Cmd
	dir   string        // what it may leave something in
	ended chan struct{} // closed when it has
	err   error         // how it ended; read after ended is closed
}

// signal sends it to everything in the foreground, as Ctrl-C does.
func (x *terminal) signal(s syscall.Signal) { _ = syscall.Kill(-x.cmd.Process.Pid, s) }

// await reports that the command has ended in good time.
func (x *terminal) await() bool {
	select {
	case <-x.ended:
		return true
	case <-time.After(patience):
		return false
	}
}

// close ends what a failed test has left running.
func (x *terminal) close() {
	select {
	case <-x.ended:
		return
	default:
	}
	x.signal(syscall.SIGTERM)
	if !x.await() {
		x.signal(syscall.SIGKILL)
		<-x.ended
	}
}

// demo runs scripts/demo, which `make demo` runs once it has built.
func demo(t *testing.T, env ...string) (x *terminal, url string) {
	t.Helper()
	out, err := exec.Command("make", "-C", "..", "build").CombinedOutput()
	require.NoError(t, err, "%s", out)
	address := "127.0.0.1:" + freePort(t)
	x = &terminal{cmd: exec.Command("../scripts/demo"), dir: t.TempDir(), ended: make(chan struct{})}
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	x.cmd.Stdout, x.cmd.Stderr = &x.transcript, &x.transcript
	x.cmd.Env = append(os.Environ(), "TMPDIR="+x.dir,
		"ROUSE_LISTEN="+address, "ROUSE_ADMIN_LISTEN=127.0.0.1:"+freePort(t))
	x.cmd.Env = append(x.cmd.Env, env...)
	require.NoError(t, x.cmd.Start())
	go func() {
		x.err = x.cmd.Wait()
		close(x.ended)
	}()
	t.Cleanup(x.close)
	return x, "http://" + address
}

// tried asks the demo's workload as its text tells people to, then ends the
// demo.
func tried(t *testing.T, x *terminal, url string) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case <-x.ended:
			return true
		default:
		}
		answer, _, err := ask(t.Context(), url, "hello.localhost")
		return err == nil && answer.StatusCode == 200
	}, patience, 200*time.Millisecond, "%s", x)
	assert.Contains(t, x.String(), "curl -H 'Host: hello.localhost' "+url)
	x.signal(syscall.SIGINT)
	require.True(t, x.await(), "Ctrl-C did not end the demo:\n%s", x)
	require.NoError(t, x.err, "%s", x)
	left, err := os.ReadDir(x.dir)
	require.NoError(t, err)
	assert.Empty(t, left, "the demo leaves nothing behind")
}

func TestDemoWithProcesses(t *testing.T) {
	x, url := demo(t, "ROUSE_RUNTIME=process")
	tried(t, x, url)
}

func TestDemoWithDocker(t *testing.T) {
	engine := dockertest.Client(t)
	name := strings.ToLower(dockertest.Prefix(t))
	x, url := demo(t, "ROUSE_DOCKER_LABEL_PREFIX="+name, "ROUSE_DEMO_CONTAINER="+name)
	tried(t, x, url)
	list, err := engine.ContainerList(t.Context(), container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("name", name))})
	require.NoError(t, err)
	assert.Empty(t, list, "the container is removed")
}
