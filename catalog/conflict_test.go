package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/workload"
)

func TestConflictsAreMutual(t *testing.T) {
	c := build([]workload.Container{
		labelled("llama", "conflicts-with=qwen,whisper,qwen"), labelled("qwen"), labelled("whisper", "conflicts-with=llama"), labelled("wiki"),
	})
	require.Empty(t, c.Problems)
	require.Equal(t, []string{"qwen", "whisper"}, c.Workloads[0].ConflictsWith)
	require.Equal(t, []string{"llama"}, c.Workloads[1].ConflictsWith)
	require.Equal(t, []string{"llama"}, c.Workloads[2].ConflictsWith)
	require.Empty(t, c.Workloads[3].ConflictsWith)
}

func TestWhatHasACPULimitIsPausedAndNotThrottled(t *testing.T) {
	limited := labelled("limited", "stop=throttle")
	limited.CPULimited = true
	c := build([]workload.Container{limited, labelled("free", "stop=throttle")})
	require.Equal(t, workload.StopThrottle, c.Workloads[0].Stop)
	require.Equal(t, workload.StopPause, c.Workloads[1].Stop)
	require.Equal(t, []string{"limited: container limited has a CPU limit of its own, which could not be restored after stop: throttle; it is paused (remove the limit, or write stop: pause)"}, errorsOf(c))
}

func TestConflictsThatCannotBeKeptAreCut(t *testing.T) {
	c := build([]workload.Container{
		labelled("a", "conflicts-with=a"),
		labelled("b", "conflicts-with=e", "depends-on=c"), labelled("c", "depends-on=e"),
		labelled("d", "conflicts-with=wikki"), labelled("e"),
		labelled("f", "conflicts-with=g"), labelled("g", "depends-on=f"),
		labelled("m", "conflicts-with=n"), labelled("n"), labelled("o", "depends-on=m,n"),
		labelled("wiki"),
		labelled("x", "conflicts-with=y", "min=1"), labelled("y", "min=1"),
	})
	require.Len(t, c.Workloads, 13, "none is taken out")
	for _, w := range c.Workloads {
		require.Empty(t, w.ConflictsWith, w.Name)
	}
	require.Equal(t, []string{
		"a: a conflicts with itself (name the others alone)",
		"b: b conflicts with e and depends on it, so that it could never start; they run side by side (remove one of the two)",
		"d: d conflicts with wikki, which is no workload or has a problem of its own (did you mean wiki?)",
		"f: f conflicts with g, which depends on it and could never start; they run side by side (remove one of the two)",
		"m: m conflicts with n, and o depends on both and could never start; they run side by side (remove the conflict, or one of the dependencies)",
		"x: x conflicts with y, and both have a min, so that neither ever sleeps; they run side by side (take min away from one of them, or the conflict)",
	}, errorsOf(c))
}

func TestAConflictInTheFileIsCheckedWithItsPlace(t *testing.T) {
	ps := catalog.Check(catalog.BuiltIn(), entries(t, "- name: a\n  container: a\n  conflicts_with: [a, elsewhere]\n"))
	require.Len(t, ps, 1, "elsewhere may be a workload by its labels")
	require.Equal(t, "rouse.yaml:3:3: a conflicts with itself (name the others alone)", ps[0].Error())
}

// What is paused keeps the memory that the conflict is about.
func TestWhatConflictsIsStoppedAndNotPaused(t *testing.T) {
	c := build([]workload.Container{labelled("a", "conflicts-with=b"), labelled("b", "stop=pause"), labelled("c", "stop=pause")})
	require.Equal(t, []string{"b: b conflicts with a, and would keep its memory with stop: pause; it is stopped (write stop: stop, or remove the conflict)"}, errorsOf(c))
	require.Equal(t, workload.StopStop, c.Workloads[1].Stop)
	require.Equal(t, workload.StopPause, c.Workloads[2].Stop)

	defaults := catalog.BuiltIn()
	defaults.Stop = workload.StopPause
	c = catalog.Build(catalog.Input{Defaults: defaults, Containers: []workload.Container{labelled("a", "conflicts-with=b"), labelled("b")}})
	require.Empty(t, c.Problems)
	require.Equal(t, workload.StopStop, c.Workloads[0].Stop)
}
