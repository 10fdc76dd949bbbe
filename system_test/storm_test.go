package system_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A storm is many requests at once to workloads that sleep, with a probe that
// tells what an awake workload of the same node has of it.
type storm struct {
	t       *testing.T
	section int
	node    *node
	probe   *probe
	phases  []phase
}

// A phase is a time of the storm, or of quiet.
type phase struct {
	name     string
	round    int
	from, to time.Time
}

// The lanes of the probe.
const (
	laneDirect = iota
	laneOther  // a gateway that the storm does not go to
	laneStorm  // the one it goes to
)

const quiet = "quiet"

// awakeEntry is the workload that the probe asks. It never sleeps.
func awakeEntry(t *testing.T) string {
	return processEntry(t, "awake", "    idle_timeout: 0\n")
}

// brew starts a node with the config, whose workloads have to have
// awakeEntry among them, and begins to probe.
func brew(t *testing.T, section int, p plan) *storm {
	t.Helper()
	s := &storm{t: t, section: section, node: start(t, p)}
	other := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + "access_log: { format: \"off\" }\nworkloads:\n" + awakeEntry(t)})
	for _, n := range []*node{s.node, other} {
		waitRoute(t, n, "awake")
		require.Equal(t, http.StatusOK, n.get("awake.localhost", "/").status)
	}
	v := s.node.waitPhase("awake", "ready")
	s.probe = startProbe(t, probePlan{Every: scale(50*time.Millisecond, 10*time.Millisecond), Lanes: []lane{
		laneDirect: {"direct", "http://" + v.Replicas[0].Address, "awake.localhost"},
		laneOther:  {"other gateway", other.traffic, "awake.localhost"},
		laneStorm:  {"storm's gateway", s.node.traffic, "awake.localhost"},
	}})
	time.Sleep(scale(time.Second, 3*time.Second)) // connections and code get warm
	return s
}

// scale chooses between the sizes of make test and make storms.
func scale[T any](small, full T) T {
	if *stormsFull {
		return full
	}
	return small
}

// during does something and remembers the time it took as a phase.
func (s *storm) during(name string, round int, do func()) time.Duration {
	s.t.Helper()
	p := phase{name: name, round: round, from: time.Now()}
	do()
	p.to = time.Now()
	s.phases = append(s.phases, p)
	return p.to.Sub(p.from)
}

// calm is a phase in which nothing happens.
func (s *storm) calm(round int) {
	s.during(quiet, round, func() { time.Sleep(scale(time.Second, 10*time.Second)) })
}

// resident is the memory of the node now.
func (s *storm) resident() int64 {
	s.t.Helper()
	return resident(s.t, s.node.cmd.Process.Pid)
}

// settle ends the probe: every request of it must have been answered by the
// awake workload. Its latencies go to the report.
func (s *storm) settle() {
	s.t.Helper()
	samples := s.probe.end(s.t)
	bad := 0
	for _, sample := range samples {
		if !sample.good {
			bad++
		}
	}
	require.NotEmpty(s.t, samples)
	assert.Zero(s.t, bad, "of %d requests to the awake workload not answered by it", len(samples))
	if *stormsFull { // with the race detector all times are out of proportion
		s.assertUndisturbed(samples)
	}
	for _, line := range latencyTable(s.probe.lanes, samples, s.phases) {
		s.t.Log(line)
		stormsReport.row(s.section, line)
	}
	reportWritten(s.t)
}

// arrival is the phase in which thousands of requests come at once: the
// gateway has to read them before it can tell which are for an awake workload.
const arrival = "arrival"

// undisturbed is how much slower the median request to the awake workload may
// be for the storm at its gateway. Before held requests were sent in turn it was
// some hundred times, while they were let go.
const undisturbed = 40

// assertUndisturbed compares the gateway that the storm goes to with the
// other, on the same busy cores at the same time.
func (s *storm) assertUndisturbed(samples []sample) {
	s.t.Helper()
	for _, name := range phaseNames(s.phases) {
		here, there := pick(samples, s.phases, name, -1, laneStorm), pick(samples, s.phases, name, -1, laneOther)
		if name != arrival && len(there) >= 20 {
			assert.Less(s.t, quantile(here, 0.5), undisturbed*quantile(there, 0.5), "median to the awake workload in phase %q", name)
		}
	}
}

// metric gives the node's samples whose line begins with prefix.
func (s *storm) metric(prefix string) map[string]int {
	s.t.Helper()
	values := map[string]int{} // series -> value
	for _, line := range s.metrics() {
		if i := strings.LastIndex(line, " "); strings.HasPrefix(line, prefix) {
			value, err := strconv.ParseFloat(line[i+1:], 64)
			require.NoError(s.t, err, line)
			values[line[:i]] = int(value)
		}
	}
	return values
}

// sum adds them up.
func (s *storm) sum(prefix string) int {
	s.t.Helper()
	sum := 0
	for _, n := range s.metric(prefix) {
		sum += n
	}
	return sum
}

// metrics gives the lines of the node's metrics that are samples.
func (s *storm) metrics() []string {
	s.t.Helper()
	resp, err := client.Get(s.node.admin + "/metrics")
	require.NoError(s.t, err)
	lines := strings.Split(strings.TrimSpace(drainAll(resp)), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#") })
}
