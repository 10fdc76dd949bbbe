package docker_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

func nobody(workload.Container) bool { return false }

// The real engine, with one container for each thing that a survey tells.
func TestASurveyTellsWhatTheEngineShows(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	front := strings.ToLower(y.prefix) + "-front"
	dockertest.Network(t, front, "")
	fighter := y.add(t, dockertest.Spec{Restart: "always", Expose: []string{"9090/tcp"}, Publish: true})
	checked := y.add(t, dockertest.Spec{Network: front, Healthcheck: &container.HealthConfig{Test: []string{"CMD", "true"}, Interval: 7 * time.Second}})
	plainCheck := y.add(t, dockertest.Spec{Healthcheck: &container.HealthConfig{Test: []string{"CMD", "true"}}})
	passing := y.add(t, dockertest.Spec{AutoRemove: true, Network: "host"})
	private := dockertest.Create(t, dockertest.Spec{Restart: "always"})

	s, err := y.runtime(t, docker.Config{}).Survey(t.Context(), nobody)
	require.NoError(t, err)
	find := func(id string) docker.Surveyed {
		i := slices.IndexFunc(s.Containers, func(c docker.Surveyed) bool { return c.ID == id })
		require.GreaterOrEqual(t, i, 0)
		return s.Containers[i]
	}

	assert.NotEmpty(t, s.Version)
	assert.NotEmpty(t, s.Newest)
	assert.NotEmpty(t, s.Oldest)
	_, err = dockertest.Client(t).ServerVersion(t.Context())
	require.NoError(t, err)
	assert.Equal(t, dockertest.Client(t).ClientVersion(), s.Spoken, "what the two agree on")
	assert.True(t, s.Told)
	assert.Less(t, s.Offset.Abs(), time.Second, "it is this machine's clock")
	assert.NotZero(t, s.Socket&os.ModeSocket)
	assert.False(t, s.Plain)

	got := find(y.id(fighter))
	assert.Equal(t, "always", got.Restart)
	assert.Equal(t, []int{dockertest.Port, 9090}, got.Ports)
	assert.Equal(t, []int{dockertest.Port}, got.Bound)
	assert.Equal(t, []string{"bridge"}, got.Networks)
	assert.False(t, got.Running)
	assert.False(t, got.HealthCheck)
	assert.Contains(t, got.Command, "mimic")

	got = find(y.id(checked))
	assert.Equal(t, []string{front}, got.Networks, "of one that never ran, too")
	assert.Equal(t, 7*time.Second, got.HealthEvery)
	assert.True(t, got.HealthCheck)
	assert.Equal(t, 30*time.Second, find(y.id(plainCheck)).HealthEvery, "the engine's own")

	got = find(y.id(passing))
	assert.True(t, got.AutoRemove)
	assert.True(t, got.HostNetwork)

	got = find(private)
	assert.Empty(t, got.Restart, "nobody looks into what did not opt in")
	assert.NotEmpty(t, got.Keys)
	s, err = y.runtime(t, docker.Config{}).Survey(t.Context(), func(c workload.Container) bool { return c.ID == private })
	require.NoError(t, err)
	assert.Equal(t, "always", find(private).Restart, "but in what is named")
	assert.True(t, find(private).Named)
}

func TestASurveyTellsOfAnEngineThatItCannotSpeakTo(t *testing.T) {
	r, err := docker.New(docker.Config{Host: "unix://" + t.TempDir() + "/none"})
	require.NoError(t, err)
	s, err := r.Survey(t.Context(), nobody)
	require.ErrorIs(t, err, docker.ErrUnreachable)
	assert.Contains(t, s.Host, "/none")

	t.Setenv("DOCKER_API_VERSION", "1.99")
	r, err = docker.New(docker.Config{Host: (&fakeEngine{version: "1.41", oldest: "1.12"}).serve(t)})
	require.NoError(t, err)
	s, err = r.Survey(t.Context(), nobody)
	require.NoError(t, err)
	assert.Equal(t, "1.99", s.Spoken)
	assert.Equal(t, "1.41", s.Newest)
	assert.True(t, s.Published, "without root its networks are out of reach")
	assert.Greater(t, s.Offset.Abs(), time.Hour, "its clock stands still")
}

func TestASurveyOfAGuardedEngineTellsWhatItMay(t *testing.T) {
	r, err := docker.New(docker.Config{Host: (&fakeEngine{version: "1.41", oldest: "1.12", guarded: true, ids: []string{"a"}}).serve(t)})
	require.NoError(t, err)
	s, err := r.Survey(t.Context(), nobody)
	require.NoError(t, err)
	assert.False(t, s.Told)
	assert.Len(t, s.Containers, 2)
}

func TestAnEngineOverTheNetworkWithoutTLSIsTold(t *testing.T) {
	for host, want := range map[string]bool{"tcp://192.0.2.1:2375": true, "tcp://127.0.0.1:2375": false} {
		r, err := docker.New(docker.Config{Host: host})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody has to be asked
		s, err := r.Survey(ctx, nobody)
		require.Error(t, err)
		assert.Equal(t, want, s.Plain, host)
	}
}
