// Package enginetest gives tests a Docker engine of their own, to be stopped,
// killed and frozen: the machine's engine is everybody's and is left alone.
//
// An Engine has its own dockerd with its own containerd, data, socket and
// bridge, so nothing of it can be seen by another engine, nor can it see
// anything of theirs. It lives in the machine's network namespace, so that
// its containers are reached as those of any engine. It programs no packet
// filter: containers cannot reach beyond the bridge.
//
// When the test ends everything is gone again: containers, processes that an
// engine killed with kill -9 left behind, mounts, bridge, data. Should the
// test binary die first, the kernel ends the engine in good order.
//
// Starting one needs root and dockerd. Without them the test is skipped with
// the reason, and fails when CI=true: there it is a fault.
package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// patience bounds each wait for the engine.
const patience = 60 * time.Second

// Options describe an engine; the zero value is what most machines have.
type Options struct {
	// LiveRestore keeps containers running while the engine is away.
	LiveRestore bool
}

// An Engine is one dockerd that belongs to one test. Its methods fail the
// test when they cannot do what they say. They are called by one goroutine.
type Engine struct {
	t       testing.TB
	dir     string
	bridge  *bridge
	options Options
	image   string
	daemon  *daemon // nil while it is down
}

// Start starts an engine that has the image of the sample workload, and
// returns when it answers.
func Start(t testing.TB, o Options) *Engine {
	t.Helper()
	require(t)
	dir, err := os.MkdirTemp("", "rouse-engine-") // a socket's path has to be short
	if err != nil {
		t.Fatalf("engine: %v", err)
	}
	e := &Engine{t: t, dir: dir, options: o}
	t.Cleanup(e.destroy)
	if e.bridge, err = newBridge(); err != nil {
		t.Fatalf("engine: %v", err)
	}
	e.Resume()
	e.load()
	return e
}

// require ends the test where no engine can be started.
func require(t testing.TB) {
	t.Helper()
	reason := ""
	if os.Geteuid() != 0 {
		reason = "an engine of its own needs root"
	}
	for _, program := range []string{"dockerd", "docker", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			reason = fmt.Sprintf("an engine of its own needs %s", program)
		}
	}
	switch {
	case reason == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("CI=true and %s", reason)
	default:
		t.Skip(reason)
	}
}

// Host is where it listens, in the form that DOCKER_HOST has.
func (e *Engine) Host() string { return "unix://" + e.socket() }

func (e *Engine) socket() string { return filepath.Join(e.dir, "s") }

// Image is the name of the sample workload's image on this engine.
func (e *Engine) Image() string { return e.image }

// Docker runs the command line client against it and returns what it says.
func (e *Engine) Docker(args ...string) string {
	e.t.Helper()
	out, err := e.docker(args...)
	if err != nil {
		e.t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (e *Engine) docker(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", append([]string{"-H", e.Host()}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// load brings the image in from the machine's engine, which has built it.
func (e *Engine) load() {
	e.t.Helper()
	e.image = dockertest.Image(e.t)
	save, load := exec.Command("docker", "save", e.image), exec.Command("docker", "-H", e.Host(), "load")
	var said bytes.Buffer
	load.Stdout, load.Stderr = &said, &said
	pipe, err := save.StdoutPipe()
	if err != nil {
		e.t.Fatalf("docker save: %v", err)
	}
	load.Stdin = pipe
	if err := errors.Join(save.Start(), load.Run(), save.Wait()); err != nil {
		e.t.Fatalf("copy %s: %v\n%s", e.image, err, said.String())
	}
}
