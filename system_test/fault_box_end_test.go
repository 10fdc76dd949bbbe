package system_test

import (
	"cmp"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ = register(
	fault{"container killed (docker kill)", true, boxKilled},
	fault{"container killed by the engine for its memory (OOM)", false, boxOutOfMemory},
	fault{"container ends by itself, in use", false, boxCrashes},
	fault{"container stopped by somebody (docker stop), and asked for while it drains", true, boxStopped},
	fault{"container paused by somebody (docker pause)", true, boxPaused},
	midStartFault("killed (docker kill)", "kill"),
	midStartFault("paused (docker pause)", "pause"),
	midStartFault("stopped (docker stop)", "stop"),
	fault{"container that sleeps paused is resumed by somebody, and killed while paused", false, boxFrozen},
	fault{"container with restart: always ends by itself, is killed, and sleeps", false, boxAlways},
)

// boxLoad is requests per second to containers.
const boxLoad = 40

// up starts a node of one process that looks at the boxes of the prefix.
func up(t *testing.T, prefix, extra string) *node {
	t.Helper()
	return start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix) + "access_log: { format: \"off\" }\n" + extra})
}

// underLoad makes a box, and a node that has requests for it answered.
func underLoad(t *testing.T, r *round, p boxPlan) (*node, *box) {
	t.Helper()
	p.prefix = newPrefix(t)
	b := r.box(p)
	n := up(t, p.prefix, "")
	r.serve(n, p.name+".localhost")
	r.load(cmp.Or(r.pace, boxLoad))
	r.answering()
	return n, b
}

func boxKilled(t *testing.T, r *round) {
	_, b := underLoad(t, r, boxPlan{name: "killed", mimic: []string{"--delay", "30ms"}})
	r.byHand(1)
	r.inject(func() { docker(t, "kill", b.name) })
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
}

// Whoever asks while the memory runs out has the kernel read the program in
// from the disk over and over before it kills it; a few do not hold that up.
func boxOutOfMemory(t *testing.T, r *round) {
	r.pace = 10
	n, _ := underLoad(t, r, boxPlan{name: "eater", docker: []string{"--memory", "64m", "--memory-swap", "64m"}})
	r.byHand(1)
	var a answer
	r.inject(func() { a = n.do(t.Context(), "POST", "eater.localhost", "/eat/256", nil) })
	require.NoError(t, a.err)
	assert.Equal(t, 502, a.status, a.body)
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
}

func boxCrashes(t *testing.T, r *round) {
	n, _ := underLoad(t, r, boxPlan{name: "crashing", mimic: []string{"--delay", "30ms"}})
	for range 3 {
		r.byHand(1)
		r.inject(func() { _ = n.do(t.Context(), "POST", "crashing.localhost", "/crash", nil) })
		r.answering()
	}
	r.settle()
	assert.Equal(t, 4, r.tally.Starts)
}

// While a container drains, the engine says to a start that it is running.
func boxStopped(t *testing.T, r *round) {
	n, b := underLoad(t, r, boxPlan{name: "stopped"})
	long := make(chan answer, 1)
	go func() { long <- n.do(t.Context(), "POST", "stopped.localhost", "/delay/2500", nil) }()
	time.Sleep(500 * time.Millisecond)
	r.byHand(1)
	r.inject(func() { docker(t, "stop", "--time", "20", b.name) })
	a := <-long
	require.NoError(t, a.err)
	assert.Equal(t, 200, a.status, "what was in flight is answered: %s", a.body)
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
}

// What is paused does not run: the next request resumes it, and what it had
// taken is answered then.
func boxPaused(t *testing.T, r *round) {
	_, b := underLoad(t, r, boxPlan{name: "paused", mimic: []string{"--delay", "30ms"}})
	for range 3 {
		r.inject(func() { docker(t, "pause", b.name) })
		r.answering()
	}
	assert.Equal(t, "running", b.state())
	r.settle()
	assert.Equal(t, 1, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

func boxFrozen(t *testing.T, r *round) {
	n, b := underLoad(t, r, boxPlan{name: "frozen", labels: []string{"stop=pause", "idle-timeout=1s"}})
	r.without(func() {
		n.waitPhase("frozen", "asleep")
		assert.Equal(t, "paused", b.state())
		r.inject(func() { docker(t, "unpause", b.name) })
		n.waitPhase("frozen", "ready")
		n.waitPhase("frozen", "asleep")
	})
	r.answering()
	r.without(func() {
		n.waitPhase("frozen", "asleep")
		r.inject(func() { docker(t, "kill", b.name) })
	})
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

// midStartFault does something to a container that has been started and is not
// ready yet. Who waits is told, or served by the next start.
func midStartFault(what, command string) fault {
	return fault{"container " + what + " in the middle of its start", false, func(t *testing.T, r *round) {
		prefix := newPrefix(t)
		b := r.box(boxPlan{name: "starting", prefix: prefix, mimic: []string{"--startup", "1500ms"}})
		n := up(t, prefix, "")
		r.serve(n, "starting.localhost")
		r.load(boxLoad)
		eventually(t, "it is being started", b.running)
		r.inject(func() { docker(t, command, b.name) })
		r.settle()
		assert.LessOrEqual(t, r.tally.Starts, 2)
	}}
}

func boxAlways(t *testing.T, r *round) {
	n, b := underLoad(t, r, boxPlan{name: "always", labels: []string{"idle-timeout=1s"},
		docker: []string{"--restart", "always"}, mimic: []string{"--delay", "30ms"}})
	r.byHand(2)
	r.inject(func() { _ = n.do(t.Context(), "POST", "always.localhost", "/crash", nil) }) // the engine starts it
	r.answering()
	r.inject(func() { docker(t, "kill", b.name) }) // the engine does not
	r.answering()
	r.without(func() {
		n.waitPhase("always", "asleep")
		time.Sleep(time.Second)
		assert.Equal(t, "exited", b.state(), "the policy does not fight the sleep")
	})
	r.settle()
}

// state is the engine's word for it.
func (b *box) state() string {
	b.t.Helper()
	return strings.TrimSpace(docker(b.t, "inspect", "-f", "{{.State.Status}}", b.name))
}

// remove takes the container away, whatever it does.
func (b *box) remove() {
	b.t.Helper()
	out, err := exec.Command("docker", "rm", "-f", b.name).CombinedOutput()
	require.NoError(b.t, err, string(out))
}
