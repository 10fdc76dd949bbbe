package system_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var _ = register(
	fault{"container removed (docker rm -f), and created again", true, boxRemoved},
	fault{"container recreated as compose does, in use", true, boxRecreatedInUse},
	fault{"container recreated as compose does, asleep", false, boxRecreatedAsleep},
	fault{"container renamed in use, and again asleep", false, boxRenamed},
	fault{"two containers swap their addresses at a restart", false, boxesSwapped},
)

func boxRemoved(t *testing.T, r *round) {
	p := boxPlan{name: "removed", mimic: []string{"--delay", "30ms"}}
	_, b := underLoad(t, r, p)
	r.byHand(1)
	r.inject(func() {
		b.remove()
		time.Sleep(500 * time.Millisecond)
		p.prefix = b.prefix
		r.box(p)
	})
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
}

// composed is a plan of what compose has made.
func composed(name string) boxPlan {
	return boxPlan{name: name, mimic: []string{"--delay", "30ms"}, labels: []string{"idle-timeout=2s"}, docker: []string{
		"--label", "com.docker.compose.project=p", "--label", "com.docker.compose.service=" + name,
		"--label", "com.docker.compose.container-number=1", "--label", "com.docker.compose.oneoff=False"}}
}

// recreate takes the steps of compose.
func recreate(t *testing.T, r *round, old *box, p boxPlan, running bool) *box {
	t.Helper()
	id := strings.TrimSpace(docker(t, "inspect", "-f", "{{.Id}}", old.name))
	if running {
		docker(t, "stop", id)
	}
	docker(t, "rename", id, id[:12]+"_"+old.name)
	p.prefix = old.prefix
	b := r.box(p)
	if running {
		docker(t, "start", b.name)
	}
	docker(t, "rm", "-f", id)
	return b
}

// Requests that come while compose is at work wake the old container between
// its stop and its removal.
func boxRecreatedInUse(t *testing.T, r *round) {
	p := composed("composed")
	_, b := underLoad(t, r, p)
	r.byHand(2)          // its stop, and its removal
	r.startedByOthers(1) // the new one joins the old one
	r.inject(func() { b = recreate(t, r, b, p, true) })
	r.answering()
	assert.Equal(t, "running", b.state())
	r.settle()
}

func boxRecreatedAsleep(t *testing.T, r *round) {
	p := composed("recomposed")
	n, b := underLoad(t, r, p)
	r.without(func() {
		n.waitPhase(p.name, "asleep")
		r.inject(func() { b = recreate(t, r, b, p, false) })
	})
	r.answering()
	assert.Equal(t, "running", b.state())
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

func boxRenamed(t *testing.T, r *round) {
	n, b := underLoad(t, r, boxPlan{name: "renamed", labels: []string{"idle-timeout=1s"}})
	rename := func(to string) {
		r.inject(func() { docker(t, "rename", b.name, to) })
		b.name = to
		t.Cleanup(b.remove)
	}
	rename(b.name + "-once")
	r.answering()
	r.without(func() {
		n.waitPhase("renamed", "asleep")
		rename(b.name + "-twice")
	})
	r.settle()
	assert.Equal(t, 2, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

// address is where the engine says that a container can be reached.
func (b *box) address() string {
	b.t.Helper()
	return strings.TrimSpace(docker(b.t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", b.name))
}

// The first container to start gets the lowest address that is free. The
// ledgers show that no request reached the other one.
func boxesSwapped(t *testing.T, r *round) {
	prefix := newPrefix(t)
	subnet := newNetwork(t, prefix)
	var boxes []*box
	for _, name := range []string{"here", "there"} {
		boxes = append(boxes, r.box(boxPlan{name: name, prefix: prefix, docker: []string{"--network", subnet}}))
	}
	n := up(t, prefix, "")
	for _, name := range []string{"here", "there"} {
		r.serve(n, name+".localhost")
		require.Equal(t, 200, n.get(name+".localhost", "/").status) // one after the other
	}
	before := [2]string{boxes[0].address(), boxes[1].address()}
	r.load(boxLoad)
	r.answering()
	r.byHand(4)
	r.without(func() {
		docker(t, "kill", boxes[0].name, boxes[1].name)
		docker(t, "start", boxes[1].name, boxes[0].name)
	})
	assert.Equal(t, [2]string{before[1], before[0]}, [2]string{boxes[0].address(), boxes[1].address()}, "they swapped")
	r.answering()
	r.inject(func() { docker(t, "kill", boxes[0].name, boxes[1].name) }) // chance tells who gets which
	r.settle()
}

// newNetwork makes a network that has no other containers.
func newNetwork(t *testing.T, name string) string {
	t.Helper()
	docker(t, "network", "create", "--label", fmt.Sprintf("dev.rouse.test=%s", name), name)
	t.Cleanup(func() { docker(t, "network", "rm", name) })
	return name
}
