package system_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// inProject are the labels that compose puts on a container of a service.
func inProject(prefix, service, dependsOn string) []string {
	return []string{
		"--label", "com.docker.compose.project=" + prefix, "--label", "com.docker.compose.service=" + service,
		"--label", "com.docker.compose.depends_on=" + dependsOn,
	}
}

// Two applications of compose share a database, which has to be healthy, and a
// job, which has to have ended well: all of it is up before the first request
// is let go, and sleeps in the reverse order.
func TestComposesConditionsAreKept(t *testing.T) {
	t.Parallel()
	prefix := newPrefix(t)
	needs := "db:service_healthy:false,migrate:service_completed_successfully:false,cache:service_started:false"
	hostless := []string{"host=", "idle-timeout=1s"}
	dockertest.Create(t, dockertest.Spec{
		Name: prefix + "-db", Args: []string{"--startup", "1s"},
		Labels: map[string]string{
			prefix + ".enable": "true", prefix + ".name": "db", prefix + ".idle-timeout": "1s",
			"com.docker.compose.project": prefix, "com.docker.compose.service": "db",
		},
		Healthcheck: &container.HealthConfig{Test: []string{"CMD", "/loadtest", "healthcheck", "http://127.0.0.1:8080/healthz"}, Interval: time.Second, Timeout: time.Second, Retries: 60},
	})
	db := &box{t: t, name: prefix + "-db"}
	cache := newBox(t, boxPlan{name: "cache", prefix: prefix, labels: hostless, docker: inProject(prefix, "cache", "")})
	migrate := newBox(t, boxPlan{name: "migrate", prefix: prefix, labels: hostless, docker: inProject(prefix, "migrate", "cache:service_started:false"), mimic: []string{"--exit-after", "1s"}})
	newBox(t, boxPlan{name: "app", prefix: prefix, labels: []string{"idle-timeout=2s"}, docker: inProject(prefix, "app", needs)})
	other := newBox(t, boxPlan{name: "other", prefix: prefix, labels: []string{"idle-timeout=10s"}, docker: inProject(prefix, "other", needs)})
	n := start(t, plan{role: "up", dir: t.TempDir(), config: dockerConfig(prefix)})

	for _, name := range []string{"app", "other"} {
		a := n.get(name+".localhost", "/")
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status, a.body)
		assert.Equal(t, "healthy", db.health())
	}
	assert.Equal(t, 2, migrate.starts(), "anew for each")
	assert.Equal(t, 1, cache.starts())
	assert.Greater(t, other.startedAt(), migrate.startedAt(), "it waited for the end of the job")
	n.waitPhase("app", "asleep")
	for range 3 { // longer than their own timeouts
		time.Sleep(time.Second)
		require.True(t, other.running())
		require.True(t, cache.running(), "other needs it")
	}
	n.waitPhase("cache", "asleep")
	n.waitPhase("db", "asleep")
	assert.False(t, other.running(), "who needs it sleeps first")
}
