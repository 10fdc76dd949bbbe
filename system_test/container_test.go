package system_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// A box is one container of the sample workload. Its labels carry a prefix
// of its own, so that no other node on the machine sees it.
type box struct {
	t      *testing.T
	name   string
	prefix string
	since  time.Time
	seen   *eventLog
}

// A boxPlan is what a container is created with.
type boxPlan struct {
	name   string   // suffix of the container's name; also the workload's
	prefix string   // label prefix, shared by the boxes of one node
	labels []string // "idle-timeout=1s", without the prefix
	docker []string // flags for docker create
	mimic  []string // flags for loadtest mimic
}

// newBox creates a container and does not start it. Its workload is p.name,
// its host p.name + ".localhost".
func newBox(t *testing.T, p boxPlan) *box {
	t.Helper()
	image := dockertest.Image(t)
	b := &box{t: t, name: p.prefix + "-" + p.name, prefix: p.prefix, since: time.Now().Add(-time.Second)}
	args := []string{"create", "--name", b.name, "--label", dockertest.RunLabel()}
	labels := append([]string{"enable=true", "name=" + p.name, "host=" + p.name + ".localhost", "port=8080"}, p.labels...)
	for _, l := range labels {
		args = append(args, "--label", p.prefix+"."+l)
	}
	args = append(append(args, p.docker...), image, "mimic", "--listen", ":8080")
	docker(t, append(args, p.mimic...)...)
	b.seen = watchEvents(t, filters.Arg("container", b.name))
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", b.name).Run() })
	return b
}

// newPrefix makes a label prefix that is this test's alone.
func newPrefix(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("rt%x", time.Now().UnixNano()&0xffffffffff)
}

// dockerConfig makes a node look at the boxes of one prefix only.
func dockerConfig(prefix string) string {
	return fmt.Sprintf("docker: { label_prefix: %q }\n", prefix)
}

// starts counts how often the engine started it since it was created.
func (b *box) starts() int { return b.events("start") }

// deaths counts how often it ended since it was created.
func (b *box) deaths() int { return b.events("die") }

// events asks the engine, which remembers no more than the last 256 events of
// all containers together, and counts what it told of while it happened, which
// may be a little behind.
func (b *box) events(kind string) int {
	b.t.Helper()
	out := docker(b.t, "events", "--since", fmt.Sprint(b.since.Unix()), "--until", fmt.Sprint(time.Now().Unix()+1),
		"--filter", "container="+b.name, "--filter", "event="+kind, "--format", "{{.ID}}")
	return max(len(strings.Fields(out)), b.seen.count(kind))
}

// running asks the engine.
func (b *box) running() bool {
	b.t.Helper()
	return strings.TrimSpace(docker(b.t, "inspect", "-f", "{{.State.Running}}", b.name)) == "true"
}

// startedAt is the engine's own time of the last start.
func (b *box) startedAt() string {
	b.t.Helper()
	return strings.TrimSpace(docker(b.t, "inspect", "-f", "{{.State.StartedAt}}", b.name))
}

func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, "docker %s: %s", strings.Join(args, " "), out)
	return string(out)
}
