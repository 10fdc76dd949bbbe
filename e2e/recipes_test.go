package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// An app is a service of the home lab, as its file describes it.
type app struct {
	Image       string
	Labels      map[string]string
	Healthcheck any
}

// apps reads the services of a recipe.
func apps(t *testing.T, file string) map[string]app {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var compose struct{ Services map[string]app }
	require.NoError(t, yaml.Unmarshal(text, &compose))
	return compose.Services
}

// stoodIn puts the workload of the tests in place of images that are not to be
// had, at the same port, and gives each service its labels under the prefix
// of the stack, with a short idle timeout.
func stoodIn(services map[string]app, image, prefix string) string {
	var b strings.Builder
	b.WriteString("services:\n  scaler:\n    environment: { ROUSE_DOCKER_LABEL_PREFIX: " + prefix + " }\n")
	for name, a := range services {
		fmt.Fprintf(&b, "  %s:\n    image: %s\n    entrypoint: [/loadtest, mimic, --listen, \":%s\"]\n    user: \"0:0\"\n    labels:\n", name, image, a.Labels["rouse.port"])
		for label, value := range a.Labels {
			if label == "rouse.idle-timeout" || label == "rouse.keep-warm" { // all are to sleep, on Sundays too
				continue
			}
			fmt.Fprintf(&b, "      %s: %q\n", prefix+strings.TrimPrefix(label, "rouse"), value)
		}
		fmt.Fprintf(&b, "      %s.idle-timeout: 3s\n", prefix)
		if a.Healthcheck != nil {
			b.WriteString("    healthcheck: { test: [CMD, /rouse, version], interval: 1s }\n")
		}
	}
	return b.String()
}

func TestHomeLabAndPreviews(t *testing.T) {
	services := apps(t, "../docs/recipes/home-lab.yml")
	s := stackOf(t, "docs/recipes/home-lab.yml", func(image, prefix string) string { return stoodIn(services, image, prefix) })
	var names []string
	for name := range services {
		names = append(names, name)
	}
	s.run("make", "up", "WORKLOADS="+strings.Join(append(names, "hello", "wiki"), " "))
	hosts := 0
	for name, a := range services {
		assert.Equal(t, "created", string(s.container(name).State.Status), name)
		if a.Labels["rouse.host"] != "" {
			hosts++
		}
	}
	assert.Equal(t, 10, hosts, "ten apps")
	for name, a := range services {
		if host := a.Labels["rouse.host"]; host != "" {
			answer, report := s.get(host)
			assert.Equal(t, "?1", answer.Header.Get("Rouse-Cold-Start"), name)
			assert.Equal(t, s.container(name).Config.Hostname, report.Hostname, name)
		}
		if name == "news" {
			db := s.container("news-db")
			assert.True(t, db.State.Running)
			assert.Less(t, db.State.StartedAt, s.container("news").State.StartedAt, "the database comes first")
		}
	}
	for name := range services {
		s.awaitAsleep(name)
	}
	previews(t, s)
}

// previews makes two branches from the file of the recipe.
func previews(t *testing.T, s *stack) {
	prefix := strings.ReplaceAll(s.project, "rouse-e2e-", "e2e")
	override := filepath.Join(t.TempDir(), "preview.yml")
	branch := func(name string, args ...string) {
		t.Helper()
		labels := fmt.Sprintf("services:\n  app:\n    entrypoint: [/loadtest, mimic]\n    labels: { %[1]s.enable: \"true\", %[1]s.name: preview-%[2]s, %[1]s.host: %[2]s.preview.example.com, %[1]s.port: \"8080\", %[1]s.idle-timeout: 1m }\n", prefix, name)
		require.NoError(t, os.WriteFile(override, []byte(labels), 0o600))
		own := *s
		own.env = append(os.Environ(), "COMPOSE_PROJECT_NAME="+s.project+name, "COMPOSE_FILE=docs/recipes/previews.yml:"+override,
			"BRANCH="+name, "IMAGE="+s.image(), "NETWORK="+s.project+"_apps")
		own.composeRun(args...)
	}
	for _, name := range []string{"pr-1", "pr-2"} {
		branch(name, "up", "--no-start")
		t.Cleanup(func() { branch(name, "down", "--timeout", "3") })
	}
	running := func() (n int) {
		for _, name := range []string{"pr-1", "pr-2"} {
			list, err := s.engine.ContainerList(t.Context(), container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "com.docker.compose.project="+s.project+name))})
			require.NoError(t, err)
			n += len(list)
		}
		return n
	}
	assert.Zero(t, running(), "a push starts nothing")
	status := func(host string) int {
		answer, _, err := ask(context.Background(), s.url, host)
		require.NoError(t, err)
		return answer.StatusCode
	}
	require.Eventually(t, func() bool { return status("pr-1.preview.example.com") == http.StatusOK }, patience, 100e6, "the scaler has heard of it")
	assert.Equal(t, 1, running(), "the other sleeps on")
	assert.Equal(t, http.StatusOK, status("pr-2.preview.example.com"))
	branch("pr-2", "down", "--timeout", "3")
	require.Eventually(t, func() bool { return status("pr-2.preview.example.com") == http.StatusNotFound }, patience, 100e6, "it is gone")
	assert.Equal(t, http.StatusOK, status("pr-1.preview.example.com"))
}
