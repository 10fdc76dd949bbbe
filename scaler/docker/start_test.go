package docker_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

func TestAddressesThatSwapStayWithTheirContainers(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	a, b := y.add(t, dockertest.Spec{}), y.add(t, dockertest.Spec{})
	r, _ := y.watched(t, docker.Config{}, a, b)
	for _, order := range [][]workload.Workload{{a, b}, {b, a}} {
		for _, w := range order {
			require.Equal(t, y.id(w)[:12], whoAnswers(t, start(t, r, w).Address))
		}
		for _, w := range order {
			require.NoError(t, r.Stop(t.Context(), w))
		}
	}
}

// The engine answers a start during a graceful stop with yes, and then the
// container is gone.
func TestAStartDuringTheStopOfAnotherEndsWithARunningContainer(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	r, _ := y.watched(t, docker.Config{}, w)
	first := start(t, r, w)
	whoAnswers(t, first.Address)
	api := dockertest.Client(t)
	for _, after := range []time.Duration{0, 200 * time.Millisecond} {
		busy := make(chan error, 1)
		go func() {
			answer, err := http.Get("http://" + first.Address + "/delay/700")
			if err == nil {
				err = answer.Body.Close()
			}
			busy <- err
		}()
		time.Sleep(50 * time.Millisecond) // it has to be in flight
		stopped := make(chan error, 1)
		go func() { stopped <- api.ContainerStop(t.Context(), y.id(w), container.StopOptions{}) }()
		time.Sleep(50*time.Millisecond + after)
		second := start(t, r, w)
		require.NoError(t, <-busy)
		require.NoError(t, <-stopped)
		require.NotEqual(t, first.ID, second.ID)
		whoAnswers(t, second.Address)
		first = second
	}
}

func TestALoopOfCrashesIsNoStartAndEndsWithAStop(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{Args: []string{"--listen", "127.0.0.1:0", "--exit-after", "1ms", "--exit-code", "9"}, Restart: "always", Network: "host"})
	r, l := y.watched(t, docker.Config{}, w)
	_, _ = r.Start(t.Context(), w) // it may be seen running, for a moment
	for range 3 {
		require.Equal(t, 9, l.next(scaler.Died).ExitCode)
	}
	reason := startFails(t, r, w)
	require.Equal(t, workload.ReasonExited, reason.Code)
	require.Equal(t, 9, reason.ExitCode)
	require.NoError(t, r.Stop(t.Context(), w))
	state, err := dockertest.Client(t).ContainerInspect(t.Context(), y.id(w))
	require.NoError(t, err)
	require.Equal(t, "exited", state.State.Status)
}

func TestARefusedStartTellsTheEnginesWords(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	r, _ := y.watched(t, docker.Config{})
	t.Run("port taken", func(t *testing.T) {
		first := y.add(t, dockertest.Spec{Publish: true})
		start(t, r, first)
		taken, err := dockertest.Client(t).ContainerInspect(t.Context(), y.id(first))
		require.NoError(t, err)
		w := y.add(t, dockertest.Spec{HostPort: taken.NetworkSettings.Ports["8080/tcp"][0].HostPort})
		reason := startFails(t, r, w)
		require.Equal(t, workload.ReasonStartError, reason.Code)
		require.Contains(t, reason.Detail, "port is already allocated")
		require.NotContains(t, reason.Detail, "Error response")
	})
	t.Run("no such program", func(t *testing.T) {
		reason := startFails(t, r, y.add(t, dockertest.Spec{Entrypoint: []string{"/nope"}}))
		require.Equal(t, workload.ReasonStartError, reason.Code)
		require.Contains(t, reason.Detail, "/nope")
	})
	t.Run("network gone", func(t *testing.T) {
		name := y.prefix + "-net"
		dockertest.Network(t, name, "")
		w := y.add(t, dockertest.Spec{Network: name})
		require.NoError(t, dockertest.Client(t).NetworkRemove(t.Context(), name))
		reason := startFails(t, r, w)
		require.Equal(t, workload.ReasonStartError, reason.Code, "the container is there")
		require.Contains(t, reason.Detail, "network")
	})
	t.Run("which port", func(t *testing.T) {
		w := y.add(t, dockertest.Spec{Expose: []string{"9090/tcp"}})
		w.Port = 0
		reason := startFails(t, r, w)
		require.Equal(t, workload.ReasonStartError, reason.Code)
		require.Contains(t, reason.Detail, "8080, 9090")
		state, err := dockertest.Client(t).ContainerInspect(t.Context(), y.id(w))
		require.NoError(t, err)
		require.Equal(t, "created", state.State.Status, "it was not started for nothing")
	})
	t.Run("removed after its end", func(t *testing.T) {
		w := y.add(t, dockertest.Spec{AutoRemove: true})
		start(t, r, w)
		require.NoError(t, r.Stop(t.Context(), w))
		require.Equal(t, workload.ReasonNotFound, startFails(t, r, w).Code)
	})
}

func TestAReplicaIsAddressedWhereItListens(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	own, _ := y.watched(t, docker.Config{})
	published, _ := y.watched(t, docker.Config{Address: docker.AddressPublished})

	w := y.add(t, dockertest.Spec{Publish: true})
	w.Port = 0 // the one that the image exposes
	i := start(t, published, w)
	require.True(t, i.Forwarded)
	require.True(t, strings.HasPrefix(i.Address, "127.0.0.1:"))
	require.Equal(t, y.id(w)[:12], whoAnswers(t, i.Address))
	i = start(t, own, w)
	require.False(t, i.Forwarded)
	require.Equal(t, y.id(w)[:12], whoAnswers(t, i.Address))

	guest := y.add(t, dockertest.Spec{Network: "container:" + y.id(w), Args: []string{"--listen", ":8081"}})
	guest.Port = 8081
	whoAnswers(t, start(t, own, guest).Address)

	host := y.addOnHost(t)
	i = start(t, own, host)
	require.Equal(t, fmt.Sprintf("127.0.0.1:%d", host.Port), i.Address)
	require.False(t, i.Forwarded)
}

func TestTheNamedNetworkIsDialled(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	name := y.prefix + "-net"
	dockertest.Network(t, name, "")
	w := y.add(t, dockertest.Spec{})
	require.NoError(t, dockertest.Client(t).NetworkConnect(t.Context(), name, y.id(w), &network.EndpointSettings{}))
	w.Network = name
	r, _ := y.watched(t, docker.Config{}, w)
	i := start(t, r, w)
	state, err := dockertest.Client(t).ContainerInspect(t.Context(), y.id(w))
	require.NoError(t, err)
	require.Equal(t, state.NetworkSettings.Networks[name].IPAddress+":8080", i.Address)

	// Away from it, the address that the list tells is not a wrong one.
	require.NoError(t, dockertest.Client(t).NetworkDisconnect(t.Context(), name, y.id(w), true))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all, err := r.List(context.Background())
		assert.NoError(c, err)
		assert.Len(c, all, 1)
		assert.Empty(c, all[0].Address)
	}, patience, 5*time.Millisecond)
}

func TestContainersOfOneNameAreReplicas(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{Name: y.prefix + "-1"})
	const replicas = 4
	for n := 2; n <= replicas; n++ {
		dockertest.Create(t, dockertest.Spec{Name: fmt.Sprintf("%s-%d", y.prefix, n), Labels: y.labels(w.Name, nil)})
	}
	r, _ := y.watched(t, docker.Config{}, w)
	up, err := r.Start(t.Context(), w)
	require.NoError(t, err)
	require.Len(t, up, replicas)
	answered := map[string]bool{}
	for _, i := range up {
		answered[whoAnswers(t, i.Address)] = true
	}
	require.Len(t, answered, replicas)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // the engine stores what is written a little later
		lines, err := r.Logs(context.Background(), w, replicas)
		assert.NoError(c, err)
		assert.Len(c, lines, replicas)
		for n := range replicas {
			assert.Contains(c, strings.Join(lines, "\n"), fmt.Sprintf("%s-%d | ", y.prefix, n+1))
		}
	}, patience, 20*time.Millisecond)
	require.NoError(t, r.Stop(t.Context(), w))
	all, err := r.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestOneReplicaThatFailsLeavesTheOthersUp(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{})
	dockertest.Create(t, dockertest.Spec{Labels: y.labels(w.Name, nil), Entrypoint: []string{"/nope"}})
	r, _ := y.watched(t, docker.Config{}, w)
	up, err := r.Start(t.Context(), w)
	var failed *scaler.StartError
	require.ErrorAs(t, err, &failed)
	require.Len(t, up, 1)
	require.Equal(t, y.id(w)[:12], whoAnswers(t, up[0].Address))
}

func TestWhatIsNotOptedInIsLeftAlone(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	name := y.prefix + "-private"
	id := dockertest.Create(t, dockertest.Spec{Name: name, Labels: map[string]string{y.prefix + ".enable": "yes please"}})
	r, _ := y.watched(t, docker.Config{})
	w := workload.Workload{Name: name, Port: dockertest.Port}
	require.Equal(t, workload.ReasonNotFound, startFails(t, r, w).Code)
	require.NoError(t, r.Stop(t.Context(), w))

	w.Container = name // an entry of the file names it
	require.Equal(t, id[:12], whoAnswers(t, start(t, r, w).Address))
	all, err := r.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all, "no Update has brought it")
}

func TestLogsOfATerminalAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{TTY: true})
	r, _ := y.watched(t, docker.Config{}, w)
	none, err := r.Logs(t.Context(), w, 10)
	require.NoError(t, err)
	require.Empty(t, none)
	whoAnswers(t, start(t, r, w).Address)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		lines, err := r.Logs(context.Background(), w, 10)
		assert.NoError(c, err)
		if assert.Len(c, lines, 1) {
			assert.Contains(c, lines[0], "msg=listening")
			assert.NotContains(c, lines[0], "\r")
		}
	}, patience, 20*time.Millisecond)
}

// It has written its last words before the engine takes it for started.
// The engine tells of a pause twice, the second time maybe after the container
// was resumed.
func TestAPauseThatIsToldLateIsNoneAfterTheResume(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	w.Stop = workload.StopPause
	r, _ := y.watched(t, docker.Config{}, w)
	start(t, r, w)
	for i := range 30 {
		require.NoError(t, r.Stop(t.Context(), w), "round %d", i)
		_, err := r.Start(t.Context(), w)
		require.NoError(t, err, "round %d", i)
	}
}

func TestTheLastWordsOfWhatEndsAtOnceAreRead(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t, "--exit-after", "1ms", "--exit-code", "3")
	r, l := y.watched(t, docker.Config{}, w)
	for range 3 {
		_, _ = r.Start(t.Context(), w)
		l.next(scaler.Died)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			lines, err := r.Logs(context.Background(), w, 10)
			assert.NoError(c, err)
			assert.Equal(c, 1, strings.Count(strings.Join(lines, "\n"), "exiting as told"), lines)
		}, patience, 20*time.Millisecond)
	}
}

func TestARuntimeThatIsNotWatchedAsksTheEngine(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	r := y.runtime(t, docker.Config{})
	r.Update([]workload.Workload{w})
	require.NoError(t, r.Ping(t.Context()))
	first := start(t, r, w)
	all, err := r.List(t.Context())
	require.NoError(t, err)
	require.Equal(t, []scaler.Instance{first}, all)
	require.NoError(t, r.Confirm(t.Context(), first.ID))
	require.NoError(t, r.Stop(t.Context(), w))
	second := start(t, r, w)
	require.NotEqual(t, first.ID, second.ID)
	require.Error(t, r.Confirm(t.Context(), first.ID))
	require.NoError(t, r.Confirm(t.Context(), second.ID))
	require.NoError(t, dockertest.Client(t).ContainerKill(t.Context(), y.id(w), "KILL"))
	require.Error(t, r.Confirm(t.Context(), second.ID), "nobody told, it has to ask")
}

// The engine goes on with a start whose caller has left.
func TestAStartThatIsCutShortIsNoFaultOfTheEngine(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	r, l := y.watched(t, docker.Config{}, w)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := r.Start(ctx, w)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, docker.ErrUnreachable)
	begun := l.next(scaler.Started)
	require.Equal(t, begun.ID, start(t, r, w).ID)
}
