package docker_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

func TestAContainerThatComposeReplacedIsFoundUnderItsNewID(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := workload.Workload{Name: "web", Port: dockertest.Port, StopTimeout: time.Second}
	name := y.prefix + "-web-1"
	labels := y.labels(w.Name, map[string]string{
		"com.docker.compose.project": y.prefix, "com.docker.compose.service": "web",
		"com.docker.compose.container-number": "1", "com.docker.compose.oneoff": "False",
	})
	old := dockertest.Create(t, dockertest.Spec{Name: name, Labels: labels})
	r, _ := y.watched(t, docker.Config{}, w)
	require.True(t, strings.HasPrefix(start(t, r, w).ID, old[:12]))
	require.NoError(t, r.Stop(t.Context(), w))

	// What compose does; the wake comes before the old one is removed.
	api := dockertest.Client(t)
	require.NoError(t, api.ContainerRename(t.Context(), old, old[:12]+"_"+name))
	time.Sleep(1100 * time.Millisecond) // the list tells creation in seconds
	replacement := dockertest.Create(t, dockertest.Spec{Name: name, Labels: labels})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		all := r.Containers()
		mine := []string{}
		for _, found := range all {
			if found.Project == y.prefix {
				mine = append(mine, found.ID)
			}
		}
		assert.Equal(c, []string{replacement}, mine)
	}, patience, 5*time.Millisecond)
	i := start(t, r, w)
	require.True(t, strings.HasPrefix(i.ID, replacement[:12]))
	require.Equal(t, replacement[:12], whoAnswers(t, i.Address))

	dockertest.Remove(t, old)
	require.Equal(t, i.ID, start(t, r, w).ID)
}

func TestAContainerThatWasReplacedUnseenIsFound(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{})
	wire := dockertest.NewWire(t)
	r, l := y.watched(t, docker.Config{Host: wire.Host()}, w)
	wire.Cut()
	dockertest.Remove(t, y.id(w))
	replacement := dockertest.Create(t, dockertest.Spec{Labels: y.labels(w.Name, nil)})
	_, err := r.Start(t.Context(), w)
	require.ErrorIs(t, err, docker.ErrUnreachable)
	wire.Mend()
	require.True(t, strings.HasPrefix(start(t, r, w).ID, replacement[:12]))
	l.next(scaler.Resynced)
	require.True(t, r.Connected())
}

func TestAnEndForMemoryIsToldAsSuch(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.add(t, dockertest.Spec{Args: []string{"--size", "200000000"}, Memory: 24 << 20})
	r, l := y.watched(t, docker.Config{}, w)
	i := start(t, r, w)
	for l.t.Context().Err() == nil { // it dies of the first whole answer
		answer, err := http.Get("http://" + i.Address + "/")
		if err == nil {
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
		}
		if running, err := r.List(t.Context()); err == nil && len(running) == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	end := l.next(scaler.Died)
	require.Equal(t, i.ID, end.ID)
	require.Equal(t, 137, end.ExitCode)
	require.True(t, end.OOM)
}

func TestTheVerdictOfTheHealthCheckIsTold(t *testing.T) {
	t.Parallel()
	check := &container.HealthConfig{
		Test:     []string{"CMD", "/loadtest", "healthcheck", "http://127.0.0.1:8080/healthz"},
		Interval: time.Second, Timeout: 5 * time.Second, Retries: 1,
	}
	for status, kind := range map[string]scaler.EventKind{"200": scaler.Healthy, "500": scaler.Unhealthy} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			y := newYard(t)
			w := y.add(t, dockertest.Spec{Args: []string{"--healthz-status", status}, Healthcheck: check})
			r, l := y.watched(t, docker.Config{}, w)
			i := start(t, r, w)
			require.Equal(t, scaler.HealthStarting, i.Health)
			require.Equal(t, i.ID, l.next(kind).ID)
			running, err := r.List(t.Context())
			require.NoError(t, err)
			require.Len(t, running, 1)
			require.Equal(t, kind.String(), running[0].Health.String())
		})
	}
}

func TestAPauseByHandIsToldAndMended(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	w := y.addOnHost(t)
	r, l := y.watched(t, docker.Config{}, w)
	i := start(t, r, w)
	l.next(scaler.Started)
	require.NoError(t, dockertest.Client(t).ContainerPause(t.Context(), i.ID[:12]))
	require.Equal(t, i.ID, l.next(scaler.Died).ID)
	require.Equal(t, i.ID, start(t, r, w).ID, "it is the same run")
	l.next(scaler.Started)
	whoAnswers(t, i.Address)

	require.NoError(t, dockertest.Client(t).ContainerPause(t.Context(), i.ID[:12]))
	l.next(scaler.Died)
	require.NoError(t, r.Stop(t.Context(), w), "what is paused can be stopped")
	all, err := r.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestWhatHappensWhileTheStreamIsCutIsFound(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	dies, stays, restarts, removed := y.addOnHost(t), y.addOnHost(t), y.addOnHost(t), y.addOnHost(t)
	wire := dockertest.NewWire(t)
	r, l := y.watched(t, docker.Config{Host: wire.Host()}, dies, stays, restarts, removed)
	was := map[string]scaler.Instance{}
	for _, w := range []workload.Workload{dies, stays, restarts, removed} {
		was[w.Name] = start(t, r, w)
		l.next(scaler.Started)
	}
	wire.Cut()
	require.Eventually(t, func() bool { return !r.Connected() }, patience, 5*time.Millisecond)
	api := dockertest.Client(t)
	require.NoError(t, api.ContainerKill(t.Context(), y.id(dies), "KILL"))
	now := 0
	require.NoError(t, api.ContainerRestart(t.Context(), y.id(restarts), container.StopOptions{Timeout: &now}))
	dockertest.Remove(t, y.id(removed))
	_, err := r.List(t.Context())
	require.ErrorIs(t, err, docker.ErrUnreachable)
	require.ErrorIs(t, r.Confirm(t.Context(), was[dies.Name].ID), docker.ErrUnreachable, "an answer from there proves nothing")
	wire.Mend()

	told := map[string]string{} // "kind workload" -> replica ID
	for e := range l.events {
		if e.Kind == scaler.Resynced {
			break
		}
		told[e.Kind.String()+" "+e.Workload] = e.ID
	}
	require.Equal(t, was[dies.Name].ID, told["died "+dies.Name])
	require.Equal(t, was[restarts.Name].ID, told["died "+restarts.Name])
	require.Equal(t, was[removed.Name].ID, told["died "+removed.Name])
	require.Contains(t, told, "removed "+removed.Name)
	require.NotContains(t, told, "died "+stays.Name)
	require.NotContains(t, told, "started "+stays.Name)
	running, err := r.List(t.Context())
	require.NoError(t, err)
	ids := map[string]string{}
	for _, i := range running {
		ids[i.Workload] = i.ID
	}
	require.Equal(t, map[string]string{stays.Name: was[stays.Name].ID, restarts.Name: told["started "+restarts.Name]}, ids)

	require.NoError(t, api.ContainerKill(t.Context(), y.id(stays), "KILL"))
	require.Equal(t, was[stays.Name].ID, l.next(scaler.Died).ID, "the new stream tells as the old one did")
}

func TestContainersTellWhatTheCatalogNeeds(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	r, _ := y.watched(t, docker.Config{})
	select {
	case <-r.Changed():
	default:
	}
	name := y.prefix + "-x"
	id := dockertest.Create(t, dockertest.Spec{
		Name: name, Expose: []string{"9090/tcp", "53/udp"},
		Healthcheck: &container.HealthConfig{Test: []string{"CMD", "/loadtest"}},
		Labels: map[string]string{
			strings.ToUpper(y.prefix) + ".Enable": "true", y.prefix + ".host": "ä.example, \"q\"\n,,", y.prefix + ".path": "",
			y.prefix + ".no-wake": strings.Repeat("/x ", 1000), "com.docker.compose.project": "p",
			"com.docker.compose.service": "web", "com.docker.compose.depends_on": "db:service_healthy:false",
		},
	})
	want := workload.Container{
		ID: id, Name: name, Project: "p", Service: "web", DependsOn: []string{"db"}, Conditions: map[string]string{"db": "service_healthy"}, Ports: []int{8080, 9090}, HealthCheck: true,
		Labels: map[string]string{"enable": "true", "host": "ä.example, \"q\"\n,,", "path": "", "no-wake": strings.Repeat("/x ", 1000)},
	}
	found := func(id string) (workload.Container, bool) {
		for _, c := range r.Containers() {
			if c.ID == id {
				return c, true
			}
		}
		return workload.Container{}, false
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		got, _ := found(id)
		assert.Equal(c, want, got)
	}, patience, 5*time.Millisecond)
	<-r.Changed()

	dockertest.Remove(t, id)
	require.Eventually(t, func() bool { _, ok := found(id); return !ok }, patience, 5*time.Millisecond)
}

func TestASecondWatchIsRefused(t *testing.T) {
	t.Parallel()
	y := newYard(t)
	r, _ := y.watched(t, docker.Config{})
	require.ErrorIs(t, r.Watch(t.Context(), func(scaler.Event) {}), docker.ErrWatched)
}
