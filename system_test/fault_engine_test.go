package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/enginetest"
)

var _ = register(
	fault{name: "engine restarted, its containers end with it", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{})
		l.begin()
		r.inject(l.restart)
		r.byHand(1)
		r.settle()
	}},
	fault{name: "engine restarted, its containers live on (live-restore)", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{LiveRestore: true})
		l.begin()
		r.inject(l.restart)
		r.settle()
	}},
	fault{name: "engine killed (kill -9), its containers end when it is back", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{})
		l.begin()
		r.inject(l.kill)
		r.byHand(1)
		r.settle()
	}},
	fault{name: "engine killed (kill -9), its containers live on (live-restore)", quick: true, round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{LiveRestore: true})
		l.begin()
		r.inject(l.kill)
		r.settle()
	}},
	fault{name: "container dies while the engine is down", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{LiveRestore: true})
		l.begin()
		r.inject(func() {
			pid := l.pid()
			l.Engine.Kill()
			require.NoError(t, pid.Kill())
			r.byHand(1)
			time.Sleep(time.Second)
			l.Resume()
		})
		r.settle()
	}},
	fault{name: "engine hangs (SIGSTOP), and a container dies meanwhile", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{LiveRestore: true})
		l.begin()
		r.inject(func() {
			pid := l.pid()
			l.Freeze()
			require.NoError(t, pid.Kill())
			r.byHand(1)
			time.Sleep(away)
			l.Thaw()
		})
		r.settle()
	}},
	fault{name: "engine hangs (SIGSTOP) for longer than idle_timeout", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{LiveRestore: true})
		l.begin()
		r.inject(func() {
			l.Freeze()
			time.Sleep(away)
			l.Thaw()
		})
		r.settle()
	}},
	fault{name: "engine away for long while a container is asked for", round: func(t *testing.T, r *round) {
		l := newLodge(t, r, enginetest.Options{})
		l.node.get("lodger.localhost", "/healthz")
		l.Docker("stop", "lodger")
		r.byHand(1)
		l.Stop()
		r.load(siteLoad)
		r.inject(func() {
			time.Sleep(3 * away)
			l.Resume()
		})
		r.settle()
	}},
)

// A lodge is an engine of its own with one container, and the node that looks
// after it.
type lodge struct {
	*enginetest.Engine
	t     *testing.T
	round *round
	node  *node
}

func newLodge(t *testing.T, r *round, o enginetest.Options) *lodge {
	t.Helper()
	l := &lodge{Engine: enginetest.Start(t, o), t: t, round: r}
	prefix := newPrefix(t)
	file := r.ledger("lodger")
	args := []string{"create", "--name", "lodger", "--volume", filepath.Dir(file) + ":/ledger"}
	for _, label := range []string{"enable=true", "name=lodger", "host=lodger.localhost", "port=8080", "idle-timeout=3s"} {
		args = append(args, "--label", prefix+"."+label)
	}
	l.Docker(append(args, l.Image(), "mimic", "--listen", ":8080", "--ledger", "/ledger/"+filepath.Base(file))...)
	l.node = start(t, plan{role: "up", dir: t.TempDir(), config: fmt.Sprintf("docker: { host: %q, label_prefix: %q }\n", l.Host(), prefix)})
	r.serve(l.node, "lodger.localhost")
	return l
}

// begin lets the load begin, and waits until the container is in use.
func (l *lodge) begin() {
	l.t.Helper()
	l.round.load(siteLoad)
	l.node.waitPhase("lodger", "ready")
}

func (l *lodge) restart() { l.Stop(); l.Resume() }

func (l *lodge) kill() { l.Kill(); l.Resume() }

// pid is the container's process.
func (l *lodge) pid() *os.Process {
	l.t.Helper()
	var pid int
	_, err := fmt.Sscan(l.Docker("inspect", "-f", "{{.State.Pid}}", "lodger"), &pid)
	require.NoError(l.t, err)
	p, err := os.FindProcess(pid)
	require.NoError(l.t, err)
	return p
}
