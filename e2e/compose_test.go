package e2e

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// TestComposeStack goes through the life of one stack; each step begins where
// the one before has ended.
func TestComposeStack(t *testing.T) {
	s := up(t)
	steps := []struct {
		name string
		test func(*testing.T, *stack)
	}{
		{"no workload runs before anybody asks for it", asleepAtFirst},
		{"only the scaler has the docker socket", socketOnlyForScaler},
		{"roles run with as little as they need", rolesAreConfined},
		{"doctor finds nothing, and a network that is wrong", doctorLooks},
		{"a request to a sleeping service is answered by it", wokenByRequest},
		{"an unknown host wakes nothing", unknownHost},
		{"a container stops once it is idle", stopsWhenIdle},
		{"a service recreated while asleep is found by the next request", recreatedAsleep},
		{"a service recreated and started by compose is taken over", recreatedRunning},
		{"many requests at once wake it once", oneStartForMany},
		{"the scaler and NATS restart beneath an awake service", restartBeneath},
		{"status tells of every workload", statusTells},
	}
	for _, step := range steps {
		ok := t.Run(step.name, func(t *testing.T) {
			own := *s
			own.t = t
			step.test(t, &own)
		})
		if !ok {
			return
		}
	}
}

func asleepAtFirst(t *testing.T, s *stack) {
	for _, service := range []string{"hello", "wiki"} {
		assert.Equal(t, "created", string(s.container(service).State.Status), service)
	}
}

func socketOnlyForScaler(t *testing.T, s *stack) {
	found := s.containers()
	require.Len(t, found, 5)
	for service, c := range found {
		socket := false
		for _, mount := range c.Mounts {
			socket = socket || strings.Contains(mount.Source, "docker.sock")
		}
		assert.Equal(t, service == "scaler", socket, service)
	}
}

func rolesAreConfined(t *testing.T, s *stack) {
	found := s.containers()
	for _, service := range []string{"nats", "gateway", "scaler"} {
		assert.True(t, found[service].HostConfig.ReadonlyRootfs, service)
		assert.Contains(t, found[service].HostConfig.CapDrop, "ALL", service)
	}
	for _, service := range []string{"nats", "gateway"} {
		assert.Equal(t, "65532:65532", found[service].Config.User, service)
	}
	for _, service := range []string{"hello", "wiki"} {
		for network := range found[service].NetworkSettings.Networks {
			assert.False(t, strings.HasSuffix(network, "events"), "%s is on %s", service, network)
		}
	}
}

func wokenByRequest(t *testing.T, s *stack) {
	for _, service := range []string{"hello", "wiki"} {
		answer, report := s.get(service + ".localhost")
		assert.Equal(t, "?1", answer.Header.Get("Rouse-Cold-Start"), service)
		assert.NotEmpty(t, answer.Header.Get("Server-Timing"), service)
		assert.Equal(t, s.container(service).Config.Hostname, report.Hostname, service)
	}
}

func unknownHost(t *testing.T, s *stack) {
	answer, _, err := ask(t.Context(), s.url, "nobody.localhost")
	require.NoError(t, err)
	assert.Equal(t, 404, answer.StatusCode)
}

func stopsWhenIdle(t *testing.T, s *stack) {
	for _, service := range []string{"hello", "wiki"} {
		assert.Equal(t, 0, s.awaitAsleep(service).State.ExitCode, "%s was stopped gracefully", service)
	}
}

func recreatedAsleep(t *testing.T, s *stack) {
	before := s.awaitAsleep("hello")
	s.composeRun("up", "--no-start", "--force-recreate", "hello")
	after := s.container("hello")
	require.NotEqual(t, before.ID, after.ID)
	require.False(t, after.State.Running)

	answer, report := s.get("hello.localhost")
	assert.Equal(t, "?1", answer.Header.Get("Rouse-Cold-Start"))
	assert.Equal(t, after.Config.Hostname, report.Hostname)
	s.awaitAsleep("hello")
}

func recreatedRunning(t *testing.T, s *stack) {
	before := s.awaitAsleep("hello")
	s.composeRun("up", "-d", "--force-recreate", "--no-deps", "hello")
	_, report := s.get("hello.localhost")
	after := s.container("hello")
	assert.NotEqual(t, before.ID, after.ID)
	assert.Equal(t, after.Config.Hostname, report.Hostname)
	s.awaitAsleep("hello") // it sleeps again, though nobody of Rouse has started it
}

func oneStartForMany(t *testing.T, s *stack) {
	s.awaitAsleep("hello")
	const many = 100
	failures := make(chan string, many)
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			answer, body, err := ask(t.Context(), s.url, "hello.localhost")
			if err != nil {
				failures <- err.Error()
			} else if answer.StatusCode != 200 {
				failures <- answer.Status + ": " + string(body)
			}
		})
	}
	all.Wait()
	close(failures)
	for failure := range failures {
		t.Error(failure)
	}
	// A report counts what its process has served: all by one, and so one start.
	_, report := s.get("hello.localhost")
	assert.Equal(t, int64(many+1), report.Served)
}

func restartBeneath(t *testing.T, s *stack) {
	_, before := s.get("hello.localhost")
	s.composeRun("restart", "-t", "5", "scaler", "nats")
	_, after := s.get("hello.localhost")
	if before.ListeningAt != after.ListeningAt { // it may only have slept in between, gracefully
		assert.Zero(t, s.container("hello").State.ExitCode)
	}
	s.awaitAsleep("hello")
	_, woken := s.get("hello.localhost")
	assert.Greater(t, woken.ListeningAt, after.ListeningAt)
}

// The scaler alone has the socket, and sees which networks the gateway is in.
func doctorLooks(t *testing.T, s *stack) {
	said := s.composeRun("exec", "-T", "scaler", "/rouse", "doctor")
	assert.Contains(t, said, "\n0 errors, 0 warnings, ")
	assert.Contains(t, said, "checked      NATS at nats://nats:4222\n")
	said = s.composeRun("exec", "-T", "gateway", "/rouse", "doctor")
	assert.Contains(t, said, "not checked  containers: there is no /var/run/docker.sock here; only the scaler has it")
	assert.Contains(t, said, "\n0 errors, 0 warnings, 0 notes\n")

	hello, elsewhere := s.container("hello"), s.project+"_elsewhere"
	dockertest.Network(t, elsewhere, "")
	move := func(from, to string) {
		require.NoError(t, s.engine.NetworkConnect(context.Background(), to, hello.ID, nil))
		require.NoError(t, s.engine.NetworkDisconnect(context.Background(), from, hello.ID, true))
	}
	move(s.project+"_apps", elsewhere)
	defer move(elsewhere, s.project+"_apps")
	said, err := s.try(append(s.compose, "exec", "-T", "scaler", "/rouse", "doctor")...)
	require.Error(t, err, said)
	assert.Contains(t, said, "(network_unreachable)")
	assert.Contains(t, said, "is not in its network "+elsewhere)
}

func statusTells(t *testing.T, s *stack) {
	said := s.composeRun("exec", "-T", "gateway", "/rouse", "status")
	assert.Contains(t, said, "hello")
	assert.Contains(t, said, "wiki")
}
