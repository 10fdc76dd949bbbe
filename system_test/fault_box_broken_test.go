package system_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

var _ = register(
	fault{"crash loop: exits before it is ready", false, func(t *testing.T, r *round) {
		broken(t, r, boxPlan{name: "loop", mimic: []string{"--startup", "1h", "--exit-after", "200ms", "--exit-code", "7"}})
		assert.Positive(t, r.tally.Reasons["502 exited"])
		// At once, and after 1 and 2 s, and each time what was there before.
		assert.LessOrEqual(t, r.tally.Starts, 2+4, "it is left alone for longer and longer")
	}},
	fault{"crash loop: exits before it is ready, restart: on-failure", false, func(t *testing.T, r *round) {
		broken(t, r, boxPlan{name: "loop", docker: []string{"--restart", "on-failure"},
			mimic: []string{"--startup", "1h", "--exit-after", "200ms", "--exit-code", "7"}})
	}},
	fault{"crash loop: exits a second after it began", false, boxCrashLoop},
	fault{"start that hangs: never listens", false, func(t *testing.T, r *round) {
		broken(t, r, boxPlan{name: "hanging", labels: []string{"wake-timeout=2s"}, mimic: []string{"--startup", "1h"}})
		assert.Positive(t, r.tally.Reasons["504 timeout"], "%v", r.tally.Reasons)
	}},
	fault{"stop that hangs: ignores SIGTERM", true, boxDeaf},
	fault{"health check turns unhealthy, and healthy again, in use", false, boxSick},
)

// brokenFor is how long something that cannot start is asked for.
const brokenFor = 4 * time.Second

// broken replaces a container that works by one that does not, and that one by
// one that works.
func broken(t *testing.T, r *round, p boxPlan) {
	t.Helper()
	well := boxPlan{name: p.name, labels: p.labels}
	_, b := underLoad(t, r, well)
	well.prefix, p.prefix = b.prefix, b.prefix
	r.byHand(2)
	r.inject(func() {
		b.remove()
		b = r.box(p)
		time.Sleep(brokenFor)
		if p.docker != nil { // a policy of the engine's starts it, too
			r.startedByOthers(b.policyStarts())
		}
		b.remove()
		r.box(well)
	})
	r.settle()
}

// policyStarts is how often the engine started it by itself.
func (b *box) policyStarts() int {
	b.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(docker(b.t, "inspect", "-f", "{{.RestartCount}}", b.name)))
	require.NoError(b.t, err)
	return n
}

// Each life answers what comes in its second, and the next one is started for
// what comes later.
func boxCrashLoop(t *testing.T, r *round) {
	_, _ = underLoad(t, r, boxPlan{name: "shortlived", mimic: []string{"--exit-after", "1s", "--exit-code", "3"}})
	r.byHand(1000) // each of its ends is its own
	r.inject(func() {})
	time.Sleep(6 * time.Second)
	r.settle()
}

// Requests that come while it is being ended are held, and answered by the
// next generation.
func boxDeaf(t *testing.T, r *round) {
	n, b := underLoad(t, r, boxPlan{name: "deaf", labels: []string{"idle-timeout=500ms", "stop-timeout=2s"}, mimic: []string{"--ignore-sigterm"}})
	r.without(func() {
		r.inject(func() {})
		eventually(t, "it was asked to end", func() bool { return r.book("deaf").terms > 0 })
		assert.Equal(t, "running", b.state())
	})
	r.injected = time.Now()
	r.settle()
	assert.Equal(t, "ready", n.waitPhase("deaf", "ready").Phase)
	assert.Equal(t, 2, r.tally.Starts)
	assert.Zero(t, r.tally.Refused)
}

func boxSick(t *testing.T, r *round) {
	prefix := newPrefix(t)
	r.ledger("sick")
	name := prefix + "-sick"
	dockertest.Create(t, dockertest.Spec{
		Name: name, Binds: []string{r.dir + ":/ledger"},
		Labels: map[string]string{prefix + ".enable": "true", prefix + ".name": "sick", prefix + ".host": "sick.localhost",
			prefix + ".port": "8080", prefix + ".ready": "docker"},
		Args: []string{"--ledger", "/ledger/sick"},
		Healthcheck: &container.HealthConfig{Test: []string{"CMD", "/loadtest", "healthcheck", "http://127.0.0.1:8080/healthz"},
			Interval: time.Second, Timeout: time.Second, Retries: 1},
	})
	n := up(t, prefix, "")
	r.serve(n, "sick.localhost")
	r.load(boxLoad)
	r.answering()
	b := &box{t: t, name: name}
	r.inject(func() {
		require.Equal(t, 200, n.get("sick.localhost", "/health/503").status)
		eventually(t, "it is unhealthy", func() bool { return b.health() == "unhealthy" })
		time.Sleep(time.Second)
		require.Equal(t, 200, n.get("sick.localhost", "/health/200").status)
		eventually(t, "it is healthy", func() bool { return b.health() == "healthy" })
	})
	r.settle()
	assert.Equal(t, 1, r.tally.Starts)
}

// health is the engine's word for it.
func (b *box) health() string {
	b.t.Helper()
	return strings.TrimSpace(docker(b.t, "inspect", "-f", "{{.State.Health.Status}}", b.name))
}
