package docker_test

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

// limits are what the engine says of the CPU of a container.
func limits(t *testing.T, name string) (quota, period int64, running bool) {
	t.Helper()
	c, err := dockertest.Client(t).ContainerInspect(t.Context(), name)
	require.NoError(t, err)
	return c.HostConfig.CPUQuota, c.HostConfig.CPUPeriod, c.State.Running
}

func nameOf(t *testing.T, r *docker.Runtime, w workload.Workload) string {
	t.Helper()
	for _, c := range r.Containers() {
		if w.Selects(c) {
			return c.Name
		}
	}
	require.Fail(t, "no container of "+w.Name)
	return ""
}

func TestWhatIsThrottledCountsAsAsleepAndGetsItsCPUBack(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	w.Stop = workload.StopThrottle
	r, _ := y.watched(t, docker.Config{}, w)
	first := start(t, r, w)
	name := nameOf(t, r, w)
	for range 5 {
		require.NoError(t, r.Stop(t.Context(), w))
		quota, period, running := limits(t, name)
		assert.Equal(t, []int64{5_000, 99_991}, []int64{quota, period})
		assert.True(t, running)
		all, err := r.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 1)
		assert.True(t, all[0].Paused, "it counts as asleep")
		require.NoError(t, r.Stop(t.Context(), w), "once more changes nothing")

		again := start(t, r, w)
		assert.Equal(t, first.ID, again.ID, "it was not started anew")
		assert.False(t, again.Paused)
		quota, _, _ = limits(t, name)
		assert.EqualValues(t, -1, quota)
	}

	// The next scaler knows it by its period, also where it ended meanwhile.
	require.NoError(t, r.Stop(t.Context(), w))
	next, _ := y.watched(t, docker.Config{}, w)
	all, err := next.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.True(t, all[0].Paused)
	gone := w
	gone.Stop = workload.StopStop
	require.NoError(t, next.Stop(t.Context(), gone))
	started := start(t, next, w)
	assert.NotEqual(t, first.ID, started.ID)
	quota, _, _ := limits(t, name)
	assert.EqualValues(t, -1, quota, "it got its CPU back")
}

// The limit that somebody gave it is not overwritten.
func TestAContainerWithALimitOfItsOwnIsNotThrottled(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	w.Stop = workload.StopThrottle
	r, _ := y.watched(t, docker.Config{}, w)
	start(t, r, w)
	name := nameOf(t, r, w)
	_, err := dockertest.Client(t).ContainerUpdate(t.Context(), name, container.UpdateConfig{Resources: container.Resources{CPUQuota: 70_000}})
	require.NoError(t, err)
	err = r.Stop(t.Context(), w)
	require.ErrorContains(t, err, "it has a CPU limit of its own")
	quota, _, running := limits(t, name)
	assert.EqualValues(t, 70_000, quota)
	assert.True(t, running)
	for _, c := range r.Containers() {
		if c.Name == name {
			assert.True(t, c.CPULimited)
		}
	}
}
