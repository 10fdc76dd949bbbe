package docker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/scaler/runtimetest"
	"github.com/rouse-dev/rouse/workload"
)

func TestContract(t *testing.T) {
	runtimetest.Run(t, func(t *testing.T) runtimetest.Fixture {
		y := newYard(t)
		return runtimetest.Fixture{
			New:      func(t *testing.T) scaler.Runtime { return y.runtime(t, docker.Config{}) },
			Workload: y.addOnHost,
			Missing:  func(*testing.T) workload.Workload { return workload.Workload{Name: "missing", Port: dockertest.Port} },
			Kill: func(t *testing.T, w workload.Workload) {
				require.NoError(t, dockertest.Client(t).ContainerKill(t.Context(), y.id(w), "KILL"))
			},
			Adopts: true,
			Pauses: true,
		}
	})
}
