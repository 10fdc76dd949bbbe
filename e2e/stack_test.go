// Package e2e uses Rouse as the README tells people to: through make, compose
// and the shell, with the images and files of this repository. What is asked
// of the parts alone is tested beside them.
//
// Each test has names, ports and a label prefix of its own on the engine, and
// removes what it made.
package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// patience bounds every wait. It only has to be longer than a busy machine
// may take; nothing is measured by it.
const patience = 2 * time.Minute

// override gives the stack a label prefix of its own, so that no other Rouse
// on the engine takes its workloads for its own, and a short idle timeout.
const override = `
services:
  scaler:
    environment:
      ROUSE_DOCKER_LABEL_PREFIX: %[1]s
  hello:
    labels:
      %[1]s.enable: "true"
      %[1]s.host: hello.localhost
      %[1]s.idle-timeout: 3s
  wiki:
    labels:
      %[1]s.enable: "true"
      %[1]s.host: wiki.localhost
      %[1]s.ready: http:/healthz
      %[1]s.idle-timeout: 3s
`

// A stack is the compose project of this repository, up and running.
type stack struct {
	t       *testing.T
	engine  *client.Client
	project string
	url     string
	env     []string
	compose []string
}

// up runs `make up`.
func up(t *testing.T) *stack {
	t.Helper()
	s := stackOf(t, "", func(_, prefix string) string { return fmt.Sprintf(override, prefix) })
	s.run("make", "up")
	return s
}

// stackOf is the compose project of this repository, with one file more or
// none, and what override makes of both for the stack's image and label
// prefix. Nothing of it is up, but all of it will be removed.
func stackOf(t *testing.T, more string, override func(image, prefix string) string) *stack {
	t.Helper()
	engine := dockertest.Client(t)
	suffix := strings.ToLower(rand.Text()[:8])
	file := filepath.Join(t.TempDir(), "override.yml")
	require.NoError(t, os.WriteFile(file, []byte(override("rouse:e2e-"+suffix, "e2e"+suffix)), 0o600))
	if more != "" {
		file = more + ":" + file
	}
	port := freePort(t)
	s := &stack{
		t: t, engine: engine, project: "rouse-e2e-" + suffix,
		url: "http://127.0.0.1:" + port,
		env: append(os.Environ(), "COMPOSE_PROJECT_NAME=rouse-e2e-"+suffix, "COMPOSE_FILE=docker-compose.yml:"+file,
			"ROUSE_PORT="+port, "ROUSE_TAG=e2e-"+suffix),
		compose: composeCommand(t),
	}
	t.Cleanup(s.remove)
	return s
}

// image is that of the roles and of the workloads.
func (s *stack) image() string { return "rouse:" + strings.TrimPrefix(s.project, "rouse-") }

// composeCommand is docker-compose or docker compose; without either the
// test is skipped, or fails when CI=true.
func composeCommand(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("../scripts/compose").Output()
	require.NoError(t, err)
	command := strings.Fields(string(out))
	if _, err := exec.LookPath(command[0]); err == nil {
		return command
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("CI=true and no compose")
	}
	t.Skip("no compose")
	return nil
}

// run runs a command in the repository's folder, as a person would.
func (s *stack) run(command ...string) string {
	s.t.Helper()
	said, err := s.try(command...)
	require.NoError(s.t, err)
	return said
}

// try is run for a command that may fail.
func (s *stack) try(command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = "..", s.env
	var stdout bytes.Buffer
	both := new(transcript)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, both), both
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%q: %w:\n%s", command, err, both)
	}
	return stdout.String(), nil
}

func (s *stack) composeRun(args ...string) string {
	s.t.Helper()
	return s.run(append(s.compose, args...)...)
}

func (s *stack) remove() {
	if s.t.Failed() {
		s.t.Log(s.composeRun("logs", "--no-color", "--tail", "60"))
	}
	s.composeRun("down", "--volumes", "--remove-orphans", "--timeout", "3")
	_, _ = s.engine.ImageRemove(context.Background(), s.image(), image.RemoveOptions{})
}

// containers gives every container of the project by its service.
func (s *stack) containers() map[string]container.InspectResponse {
	s.t.Helper()
	project := filters.NewArgs(filters.Arg("label", "com.docker.compose.project="+s.project))
	list, err := s.engine.ContainerList(s.t.Context(), container.ListOptions{All: true, Filters: project})
	require.NoError(s.t, err)
	found := make(map[string]container.InspectResponse, len(list))
	for _, c := range list {
		details, err := s.engine.ContainerInspect(s.t.Context(), c.ID)
		require.NoError(s.t, err)
		found[c.Labels["com.docker.compose.service"]] = details
	}
	return found
}

// container gives the one container of a service.
func (s *stack) container(service string) container.InspectResponse {
	s.t.Helper()
	found, ok := s.containers()[service]
	require.True(s.t, ok, "%s has a container", service)
	return found
}

// awaitAsleep waits until the container of a service does not run, and gives
// it.
func (s *stack) awaitAsleep(service string) container.InspectResponse {
	s.t.Helper()
	var found container.InspectResponse
	require.Eventually(s.t, func() bool {
		found = s.container(service)
		return !found.State.Running
	}, patience, 100*time.Millisecond, "%s falls asleep", service)
	return found
}

// get asks for a page of a host, and gives the answer's head and what the
// workload said of itself.
func (s *stack) get(host string) (*http.Response, mimic.Report) {
	s.t.Helper()
	answer, body, err := ask(s.t.Context(), s.url, host)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, answer.StatusCode, "%s", body)
	var report mimic.Report
	require.NoError(s.t, json.Unmarshal(body, &report))
	return answer, report
}

func ask(ctx context.Context, url, host string) (*http.Response, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	request.Host = host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer, body, err
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}
