package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

// foreign is a container with Sablier's labels alone.
func foreign(name string, labels ...string) workload.Container {
	c := workload.Container{Name: name, Ports: []int{80}, Labels: map[string]string{}, Foreign: map[string]string{"sablier.enable": "true"}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		c.Foreign["sablier."+key] = value
	}
	return c
}

func TestLabelsOfSablierMakeAWorkload(t *testing.T) {
	full := foreign("wiki", "group= office,team , office", "ready-after=5s", "running-hours=22:00-06:00", "running-days=Monday, tue,SUN")
	full.HealthCheck = true
	c := build([]workload.Container{full, foreign("plain")})
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"plain", "wiki"}, names(c))
	plain, w := c.Workloads[0], c.Workloads[1]
	require.Equal(t, []string{"office", "team"}, w.Groups)
	require.Equal(t, 5*time.Second, w.ReadyAfter)
	require.Equal(t, "Mon 22:00-06:00, Tue 22:00-06:00, Sun 22:00-06:00", w.KeepWarm)
	require.Equal(t, workload.ReadyDocker, w.Ready.Kind, "healthy is what ready means there")
	require.Equal(t, []string{"wiki"}, w.Containers)
	require.Empty(t, w.Hosts, "it is reached by the API alone")
	require.Equal(t, []string{"default"}, plain.Groups, "as Sablier has it")
	require.Equal(t, workload.ReadyAuto, plain.Ready.Kind)
	require.Empty(t, plain.KeepWarm)
}

func TestRousesOwnLabelsGoBeforeThoseOfSablier(t *testing.T) {
	both := foreign("wiki", "group=theirs", "running-hours=08:00-18:00", "ready-after=1h")
	both.HealthCheck = true
	both.Labels = map[string]string{"group": "ours", "ready": "tcp", "ready-after": "1s", "keep-warm": "Mon 09:00-10:00", "host": "wiki.example.com"}
	c := build([]workload.Container{both}, entries(t, "- {name: wiki, ready_after: 2s}")...)
	require.Empty(t, c.Problems)
	w := c.Workloads[0]
	require.Equal(t, []string{"ours"}, w.Groups)
	require.Equal(t, workload.ReadyTCP, w.Ready.Kind)
	require.Equal(t, "Mon 09:00-10:00", w.KeepWarm)
	require.Equal(t, 2*time.Second, w.ReadyAfter, "and the file before both")
}

func TestOnlyTheOptInMakesAForeignContainerAWorkload(t *testing.T) {
	no, off, ours := foreign("no"), foreign("off"), foreign("ours", "anti-affinity=x")
	no.Foreign["sablier.enable"] = "yes"
	off.Labels["enable"] = "false" // Rouse's own decides
	ours.Labels["enable"], ours.Foreign["sablier.enable"] = "true", "false"
	c := build([]workload.Container{no, off, ours})
	require.Empty(t, c.Problems, "labels without their opt-in are nobody's")
	require.Equal(t, []string{"ours"}, names(c))
	require.Empty(t, c.Workloads[0].Groups)
}

// Each is told by name, and the workload is there all the same.
func TestWhatRouseCannotHonourIsToldByName(t *testing.T) {
	for label, want := range map[string]string{
		"anti-affinity=streaming": "sablier.anti-affinity is not honoured",
		"ready-on-start=true":     "sablier.ready-on-start is not honoured",
		"idle.replicas=1":         "sablier.idle.replicas is not honoured",
		"idle.cpu=0.1":            "sablier.idle.cpu is not honoured",
		"active.memory=1g":        "sablier.active.memory is not honoured",
		"active.blkio-weight=500": "sablier.active.blkio-weight is not honoured",
		"active.replicas=2":       "sablier.active.replicas is not honoured",
		"gruop=office":            "sablier.gruop is not honoured: it is none of Sablier's labels that are known here (did you mean sablier.group?)",
		"group=an office":         "sablier.group: not a workload name",
		"ready-after=soon":        `sablier.ready-after: "soon" is not a duration`,
		"ready-after=-5s":         `sablier.ready-after: "-5s" is shorter than 0s`,
		"running-hours=9-17":      `sablier.running-hours: "9-17" is not a window`,
		"running-days=Mon":        "sablier.running-days says nothing without sablier.running-hours",
		"running-days=Mon..Fri;running-hours=08:00-18:00": `sablier.running-days: "Mon..Fri" is not a day; sablier.running-hours is left out`,
	} {
		c := build([]workload.Container{foreign("wiki", strings.Split(label, ";")...)})
		require.Equal(t, []string{"wiki"}, names(c), label)
		require.Len(t, c.Problems, 1, label)
		require.Contains(t, c.Problems[0].Error(), want, label)
		require.Equal(t, "wiki", c.Problems[0].Workload)
		require.Equal(t, "wiki", c.Problems[0].Place)
		require.Empty(t, c.Workloads[0].KeepWarm)
		require.Zero(t, c.Workloads[0].ReadyAfter)
	}
	harmless := build([]workload.Container{foreign("wiki", "idle.replicas=0", "active.replicas=1", "ready-on-start=false")})
	require.Empty(t, harmless.Problems, "they ask for what Rouse does anyway")
}
