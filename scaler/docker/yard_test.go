package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

const patience = time.Minute

// watched makes a runtime that knows the workloads and is connected.
func (y *yard) watched(t *testing.T, cfg docker.Config, ws ...workload.Workload) (*docker.Runtime, *listener) {
	t.Helper()
	r := y.runtime(t, cfg)
	r.Update(ws)
	return r, watch(t, r)
}

func start(t *testing.T, r *docker.Runtime, w workload.Workload) scaler.Instance {
	t.Helper()
	got, err := r.Start(t.Context(), w)
	require.NoError(t, err)
	require.Len(t, got, 1)
	return got[0]
}

// whoAnswers asks an address until something answers, and returns the host
// name that the sample workload tells: the short ID of its container.
func whoAnswers(t *testing.T, address string) string {
	t.Helper()
	var who struct{ Hostname string }
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer, err := (&http.Client{Timeout: time.Second}).Get("http://" + address + "/")
		if !assert.NoError(c, err) {
			return
		}
		defer answer.Body.Close()
		assert.NoError(c, json.NewDecoder(answer.Body).Decode(&who))
	}, patience, 5*time.Millisecond)
	return who.Hostname
}

// startFails returns the reason of a start that fails for one.
func startFails(t *testing.T, r *docker.Runtime, w workload.Workload) workload.Reason {
	t.Helper()
	_, err := r.Start(t.Context(), w)
	var failed *scaler.StartError
	require.ErrorAs(t, err, &failed)
	return failed.Reason
}

// A yard is a part of the engine that one test has for itself: a runtime made
// for it sees only its containers.
type yard struct {
	prefix string
	ids    map[string]string // workload -> container ID
	made   atomic.Int64
}

func newYard(t *testing.T) *yard {
	dockertest.Client(t)
	return &yard{prefix: dockertest.Prefix(t), ids: map[string]string{}}
}

func (y *yard) runtime(t *testing.T, cfg docker.Config) *docker.Runtime {
	t.Helper()
	cfg.LabelPrefix = y.prefix
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	r, err := docker.New(cfg)
	require.NoError(t, err)
	return r
}

// labels are those of a replica of the named workload.
func (y *yard) labels(name string, more map[string]string) map[string]string {
	labels := map[string]string{y.prefix + ".enable": "true", y.prefix + ".name": name}
	maps.Copy(labels, more)
	return labels
}

// add creates a container, and the workload that it is the replica of.
func (y *yard) add(t *testing.T, s dockertest.Spec) workload.Workload {
	t.Helper()
	w := workload.Workload{
		Name: fmt.Sprintf("w%d", y.made.Add(1)), Runtime: "docker",
		Port: dockertest.Port, StopTimeout: 5 * time.Second,
	}
	s.Labels = y.labels(w.Name, s.Labels)
	y.ids[w.Name] = dockertest.Create(t, s)
	return w
}

// addOnHost creates a container in the host's network, which starts in little
// more than half the time of one in a network of its own.
func (y *yard) addOnHost(t *testing.T, flags ...string) workload.Workload {
	t.Helper()
	port := freePort(t)
	listen := []string{"--listen", fmt.Sprintf("127.0.0.1:%d", port)}
	w := y.add(t, dockertest.Spec{Network: "host", Args: append(listen, flags...)})
	w.Port = port
	return w
}

// freePort finds a port below those that connections are given, so that
// nobody takes it by chance.
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		require.NoError(t, l.Close())
		return port
	}
	t.Fatal("no free port")
	return 0
}

func (y *yard) id(w workload.Workload) string { return y.ids[w.Name] }

// watch watches until the test ends, and returns once r is connected.
func watch(t *testing.T, r *docker.Runtime) *listener {
	t.Helper()
	l := &listener{t: t, events: make(chan scaler.Event, 1000)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Watch(ctx, func(e scaler.Event) { l.events <- e }) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	l.next(scaler.Resynced)
	return l
}

// A listener gives events one at a time.
type listener struct {
	t      *testing.T
	events chan scaler.Event
}

// next skips to the next event of the kind.
func (l *listener) next(kind scaler.EventKind) scaler.Event {
	l.t.Helper()
	late := time.After(patience)
	var skipped []scaler.Event
	for {
		select {
		case e := <-l.events:
			if e.Kind == kind {
				return e
			}
			skipped = append(skipped, e)
		case <-late:
			l.t.Fatalf("no event %v, only %+v", kind, skipped)
		}
	}
}
