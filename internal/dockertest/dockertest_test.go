package dockertest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/docker/go-connections/nat"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

func TestAContainerIsLabelledAndRemovedWithItsTest(t *testing.T) {
	docker := dockertest.Client(t)
	key, value, _ := strings.Cut(dockertest.RunLabel(), "=")
	var id string
	t.Run("within", func(t *testing.T) {
		id = dockertest.Create(t, dockertest.Spec{})
		got, err := docker.ContainerInspect(context.Background(), id)
		require.NoError(t, err)
		require.Equal(t, value, got.Config.Labels[key])
		require.False(t, got.State.Running)
		require.Contains(t, got.Config.ExposedPorts, nat.Port("8080/tcp"))
	})
	_, err := docker.ContainerInspect(context.Background(), id)
	require.True(t, errdefs.IsNotFound(err))
}

func TestTheImageIsTheSameTwice(t *testing.T) {
	require.Equal(t, dockertest.Image(t), dockertest.Image(t))
}
