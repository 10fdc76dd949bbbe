package docker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/scaler/docker"
	"github.com/rouse-dev/rouse/workload"
)

// A fakeEngine is what a real one cannot be asked to be: of another version,
// stuck, or behind a guard. It has containers of web that run, and no events.
type fakeEngine struct {
	version string // newest API
	oldest  string // oldest API
	ids     []string
	stuck   string // ID whose inspect is never answered
	guarded bool   // it tells nothing of itself
	dead    bool   // what runs has ended, and it knows so after the first start

	mu     sync.Mutex
	starts int      // guarded by mu
	asked  []string // paths, without the version; guarded by mu
	bad    []string // what no engine like this would have been asked
	ended  chan struct{}
}

// serve answers on a socket until the test ends, and returns its URL.
func (f *fakeEngine) serve(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	f.ended = make(chan struct{})
	server := &http.Server{Handler: f}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		close(f.ended)
		_ = server.Close()
		<-served
	})
	return "unix://" + path
}

func (f *fakeEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", f.version)
	if r.URL.Path == "/_ping" {
		return
	}
	version, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v"), "/")
	f.note(version, path)
	switch {
	case path == "info" && f.guarded:
		http.Error(w, "forbidden", http.StatusForbidden)
	case path == "info":
		f.answer(w, map[string]any{"SystemTime": "2026-01-02T03:04:05Z", "SecurityOptions": []string{"name=rootless"}})
	case path == "events":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		f.hang(r)
	case path == "containers/json":
		f.list(w)
	case f.stuck != "" && strings.Contains(path, f.stuck):
		f.hang(r)
	case strings.HasSuffix(path, "/start"):
		f.start(w)
	default:
		f.inspect(w, path)
	}
}

// start says of what it takes for running that it does.
func (f *fakeEngine) start(w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.starts++; f.starts == 1 {
		w.WriteHeader(http.StatusNotModified)
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
}

// state is that of every container.
func (f *fakeEngine) state() map[string]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dead && f.starts == 1:
		return map[string]any{"Status": "exited", "ExitCode": 137, "StartedAt": "2026-01-01T00:00:01Z"}
	case f.dead && f.starts > 1:
		return map[string]any{"Status": "running", "StartedAt": "2026-01-01T00:00:09Z"}
	}
	return map[string]any{"Status": "running", "StartedAt": "2026-01-01T00:00:01Z"}
}

func (f *fakeEngine) hang(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-f.ended:
	}
}

func (f *fakeEngine) note(version, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, path)
	if len(version) != len(f.oldest) || version < f.oldest || version > f.version {
		f.bad = append(f.bad, version+" "+path)
	}
}

func (f *fakeEngine) answer(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func (f *fakeEngine) list(w http.ResponseWriter) {
	all := []map[string]any{{"Id": "private", "Names": []string{"/private"}, "State": "running"}}
	for _, id := range f.ids {
		all = append(all, map[string]any{
			"Id": id, "Names": []string{"/" + id}, "State": "running",
			"Labels": map[string]string{"rouse.enable": "true", "rouse.name": "web"},
		})
	}
	f.answer(w, all)
}

func (f *fakeEngine) inspect(w http.ResponseWriter, path string) {
	id := strings.Split(path, "/")[1]
	f.answer(w, map[string]any{
		"Id": id, "Name": "/" + id, "Created": "2026-01-01T00:00:00Z",
		"State":  f.state(),
		"Config": map[string]any{"Labels": map[string]string{"rouse.enable": "true", "rouse.name": "web"}},
		"NetworkSettings": map[string]any{
			"Networks": map[string]any{"n": map[string]string{"IPAddress": "10.0.0.9"}},
			"Ports":    map[string]any{"80/tcp": []map[string]string{{"HostIp": "0.0.0.0", "HostPort": "8000"}}},
		},
	})
}

var web = workload.Workload{Name: "web", Port: 80}

func fakeRuntime(t *testing.T, f *fakeEngine) (*docker.Runtime, *listener) {
	t.Helper()
	r, err := docker.New(docker.Config{Host: f.serve(t)})
	require.NoError(t, err)
	r.Update([]workload.Workload{web})
	return r, watch(t, r)
}

func TestTheVersionOfTheAPIIsAgreedOn(t *testing.T) {
	for _, f := range []*fakeEngine{
		{version: "1.41", oldest: "1.12"}, // Engine 20.10
		{version: "1.52", oldest: "1.44"}, // Engine 29
	} {
		t.Run(f.version, func(t *testing.T) {
			f.ids = []string{"a"}
			r, _ := fakeRuntime(t, f)
			all, err := r.List(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Empty(t, f.bad)
		})
	}
}

func TestWhoHearsOfTheCheckFindsTheRuntimeConnected(t *testing.T) {
	f := &fakeEngine{version: "1.41", oldest: "1.12", ids: []string{"a"}}
	host := f.serve(t)
	for range 50 {
		r, err := docker.New(docker.Config{Host: host})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var connected bool
		require.NoError(t, r.Watch(ctx, func(e scaler.Event) {
			if e.Kind == scaler.Resynced {
				connected = r.Connected()
				cancel()
			}
		}))
		require.True(t, connected)
	}
}

func TestRequestsWaitForNoCallOfTheEngine(t *testing.T) {
	f := &fakeEngine{version: "1.41", oldest: "1.12", ids: []string{"a", "b"}}
	r, _ := fakeRuntime(t, f)
	before := f.calls()
	require.NotContains(t, before, "containers/private/json", "nobody opted in")
	for range 10 {
		all, err := r.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		r.Containers()
	}
	require.Equal(t, before, f.calls())
}

func (f *fakeEngine) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func TestOneStuckContainerIsNotTheOthersTrouble(t *testing.T) {
	t.Parallel()
	f := &fakeEngine{version: "1.41", oldest: "1.12", ids: []string{"a", "b"}, stuck: "b", guarded: true}
	r, _ := fakeRuntime(t, f)
	require.True(t, r.Connected())
	all, err := r.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "10.0.0.9:80", all[0].Address)
}

// An engine that was frozen takes for running what has died meanwhile, and
// says yes to a start that starts nothing.
func TestAStartOfWhatHasDiedUnnoticedIsRepeated(t *testing.T) {
	f := &fakeEngine{version: "1.41", oldest: "1.12", ids: []string{"a"}, dead: true, guarded: true}
	r, _ := fakeRuntime(t, f)
	before, err := r.List(t.Context())
	require.NoError(t, err)
	started, err := r.Start(t.Context(), web)
	require.NoError(t, err)
	require.Len(t, started, 1)
	require.NotEqual(t, before[0].ID, started[0].ID)
	require.Equal(t, 2, f.starts)
}

func TestARootlessEngineIsAddressedByPublishedPorts(t *testing.T) {
	for guarded, address := range map[bool]string{false: "127.0.0.1:8000", true: "10.0.0.9:80"} {
		t.Run(fmt.Sprintf("guarded=%v", guarded), func(t *testing.T) {
			f := &fakeEngine{version: "1.41", oldest: "1.12", ids: []string{"a"}, guarded: guarded}
			r, _ := fakeRuntime(t, f)
			all, err := r.List(t.Context())
			require.NoError(t, err)
			require.Equal(t, address, all[0].Address)
		})
	}
}

func TestPingSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	locked := filepath.Join(dir, "locked")
	require.NoError(t, os.Mkdir(locked, 0))

	for host, words := range map[string]string{
		"unix://" + dir + "/none":  "there is no such socket: is Docker installed and running?",
		"unix://" + stale:          "nobody listens on the socket: is Docker running?",
		"unix://" + locked + "/s":  "permission denied: run as root or as a member of the socket's group",
		"tcp://127.0.0.1:1":        "Is the docker daemon running?",
		"unix://" + dir + "/a/b/c": "there is no such socket",
	} {
		if strings.HasSuffix(host, "locked/s") && os.Geteuid() == 0 {
			continue // root may go anywhere
		}
		r, err := docker.New(docker.Config{Host: host})
		require.NoError(t, err, "an engine that is away is no fault of the config")
		err = r.Ping(t.Context())
		require.ErrorIs(t, err, docker.ErrUnreachable)
		require.ErrorContains(t, err, "docker engine unreachable at "+host+": ")
		require.ErrorContains(t, err, words)
	}
}

func TestAConfigThatCannotWorkIsRefused(t *testing.T) {
	_, err := docker.New(docker.Config{Host: "nowhere"})
	require.ErrorContains(t, err, "nowhere")
	_, err = docker.New(docker.Config{Address: "magic"})
	require.ErrorContains(t, err, `"magic" is no way to address a container`)
}

func ExampleNew() {
	_, err := docker.New(docker.Config{Address: "magic"})
	fmt.Println(err)
	// Output: docker: "magic" is no way to address a container: use auto, container or published
}
