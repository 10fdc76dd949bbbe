package system_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

var _ = register(
	fault{"engine's event stream cut every second, with containers killed meanwhile", false, boxUnheard},
	fault{"engine's event stream cut every second, a stream and long requests open", false, boxUnheardInUse},
	fault{"two scalers on one node, killed (kill -9) and started again in turn", false, boxTwoScalers},
	fault{"NATS and scaler killed (kill -9) at once, a stream and long requests open", false, boxHeldThroughout},
	fault{"all roles killed (kill -9) at once, a container in use", false, boxAllGone},
	fault{"all roles killed (kill -9) at once, in the middle of a container's start", false, boxAllGoneMidStart},
)

// boxUnheard has a container sleep, wake and die while the node hears of it
// late, or never and has to look.
func boxUnheard(t *testing.T, r *round) {
	prefix := newPrefix(t)
	wire := dockertest.NewWire(t)
	b := r.box(boxPlan{name: "unheard", prefix: prefix, labels: []string{"idle-timeout=1s"}, mimic: []string{"--delay", "30ms"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: fmt.Sprintf("docker: { label_prefix: %q, host: %q }\n", prefix, wire.Host())})
	r.serve(n, "unheard.localhost")
	r.load(boxLoad)
	r.answering()
	r.byHand(3)
	r.inject(func() {
		for i := range 6 {
			wire.Cut()
			if i%2 == 0 {
				docker(t, "kill", b.name) // it runs: it is asked for all the time
			}
			time.Sleep(200 * time.Millisecond)
			wire.Mend()
			time.Sleep(800 * time.Millisecond)
			r.answering()
		}
	})
	r.without(func() { n.waitPhase("unheard", "asleep") })
	r.settle()
	assert.Equal(t, 5, r.tally.Starts)
}

func boxUnheardInUse(t *testing.T, r *round) {
	prefix := newPrefix(t)
	wire := dockertest.NewWire(t)
	r.box(boxPlan{name: "inuse", prefix: prefix, labels: []string{"idle-timeout=1s"}})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: fmt.Sprintf("docker: { label_prefix: %q, host: %q }\n", prefix, wire.Host())})
	r.serve(n, "inuse.localhost", held)
	r.load(boxLoad)
	r.answering()
	r.without(func() { // the stream alone keeps it awake
		r.inject(func() {
			for range 5 {
				wire.Cut()
				time.Sleep(200 * time.Millisecond)
				wire.Mend()
				time.Sleep(800 * time.Millisecond)
			}
		})
	})
	r.settle()
	assert.Equal(t, 1, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

func boxTwoScalers(t *testing.T, r *round) {
	prefix := newPrefix(t)
	b := r.box(boxPlan{name: "shared", prefix: prefix, labels: []string{"idle-timeout=1s"}, mimic: []string{"--startup", "500ms"}})
	_, gateway, one, _, p := apart(t, prefix)
	two := start(t, p)
	r.serve(gateway, "shared.localhost")
	r.load(boxLoad)
	r.answering()
	sleepAndWake := func() {
		r.without(func() { gateway.waitPhase("shared", "asleep") })
		r.answering()
	}
	r.inject(one.kill)
	sleepAndWake()
	one = start(t, p)
	two.kill()
	sleepAndWake()
	r.without(func() { gateway.waitPhase("shared", "asleep") })
	eventually(t, "it is being started", b.running)
	one.kill()
	start(t, p)
	r.settle()
	assert.Equal(t, 4, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

// trio is the three roles, with all that is needed to start each again where
// it was.
type trio struct {
	t     *testing.T
	plans [3]plan // nats, scaler, gateway
	nodes [3]*node
}

func newTrio(t *testing.T, prefix string) *trio {
	t.Helper()
	addr := freeAddr(t)
	url := fmt.Sprintf("nats: { url: %q }\n", "nats://"+addr)
	x := &trio{t: t, plans: [3]plan{
		{role: "nats", dir: t.TempDir(), config: fmt.Sprintf("nats: { listen: %q, store_dir: %q }\n", addr, t.TempDir())},
		{role: "scaler", dir: t.TempDir(), config: url + dockerConfig(prefix)},
		{role: "gateway", dir: t.TempDir(), listen: freeAddr(t), config: url},
	}}
	x.start()
	return x
}

func (x *trio) start() { x.startFirst(len(x.plans)) }

// startFirst starts as many of the roles, in their order.
func (x *trio) startFirst(n int) {
	x.t.Helper()
	for i, p := range x.plans[:n] {
		x.nodes[i] = start(x.t, p)
	}
}

func (x *trio) kill() { x.killFirst(len(x.nodes)) }

func (x *trio) killFirst(n int) {
	for _, node := range x.nodes[:n] {
		node.kill()
	}
}

func (x *trio) gateway() *node { return x.nodes[2] }

// boxHeldThroughout takes away all but the gateway, twice, for longer than the
// idle timeout.
func boxHeldThroughout(t *testing.T, r *round) {
	prefix := newPrefix(t)
	r.box(boxPlan{name: "held", prefix: prefix, labels: []string{"idle-timeout=1s"}})
	x := newTrio(t, prefix)
	r.serve(x.gateway(), "held.localhost", held)
	r.load(boxLoad)
	r.answering()
	r.without(func() { // the stream alone keeps it awake
		r.inject(func() {
			for range 2 {
				x.killFirst(2)
				time.Sleep(2 * time.Second)
				x.startFirst(2)
				time.Sleep(2 * time.Second)
			}
		})
	})
	r.settle()
	assert.Equal(t, 1, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

func boxAllGone(t *testing.T, r *round) {
	prefix := newPrefix(t)
	r.box(boxPlan{name: "orphan", prefix: prefix})
	x := newTrio(t, prefix)
	r.serve(x.gateway(), "orphan.localhost")
	r.load(boxLoad)
	r.answering()
	r.inject(func() {
		x.kill()
		x.start()
		r.serve(x.gateway(), "orphan.localhost")
	})
	r.settle()
	assert.Equal(t, 1, r.tally.Starts, "what runs is adopted")
}

func boxAllGoneMidStart(t *testing.T, r *round) {
	prefix := newPrefix(t)
	b := r.box(boxPlan{name: "early", prefix: prefix, mimic: []string{"--startup", "3s"}})
	x := newTrio(t, prefix)
	r.serve(x.gateway(), "early.localhost")
	r.load(boxLoad)
	eventually(t, "it is being started", b.running)
	r.inject(func() {
		x.kill()
		x.start()
		r.serve(x.gateway(), "early.localhost")
	})
	r.settle()
	assert.Equal(t, 1, r.tally.Starts, "what is starting is gone on with")
}
