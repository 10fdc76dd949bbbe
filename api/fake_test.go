package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

// fake is a Backend that knows what its fields say.
type fake struct {
	*api.History
	workloads []api.Workload
	problems  []workload.Problem
	findings  []api.Finding
	checks    []api.Check
	config    any
	lines     []string
	err       error // what every call that can fail answers

	mu    sync.Mutex
	waits []time.Duration // of each Wake; guarded by mu
	kept  []time.Duration // of each Keep; guarded by mu
	slept []string        // guarded by mu
	asked int             // lines asked for; guarded by mu
}

func newFake() *fake {
	return &fake{
		History: api.NewHistory(0, 0),
		workloads: []api.Workload{{
			Name: "wiki", Phase: workload.Ready, Hosts: []string{"wiki.example.com"}, InFlight: 2, Generation: 3,
			Replicas: []api.Replica{{ID: "r1", Address: "10.0.0.2:80", InFlight: 2}},
			Since:    time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		}, {Name: "blog"}},
	}
}

func (f *fake) Workloads(context.Context) ([]api.Workload, error) { return f.workloads, f.err }

func (f *fake) Workload(_ context.Context, name string) (api.Workload, error) {
	for _, w := range f.workloads {
		if w.Name == name {
			return w, f.err
		}
	}
	return api.Workload{}, api.ErrNoWorkload
}

func (f *fake) Problems(context.Context) []workload.Problem { return f.problems }

func (f *fake) Findings(context.Context) ([]api.Finding, error) { return f.findings, f.err }

func (f *fake) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waits = append(f.waits, wait)
	return f.Workload(ctx, name)
}

func (f *fake) Sleep(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slept = append(f.slept, name)
	_, err := f.Workload(ctx, name)
	return err
}

func (f *fake) Keep(ctx context.Context, name string, span time.Duration) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, span)
	_, err := f.Workload(ctx, name)
	return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(span), err
}

func (f *fake) Logs(ctx context.Context, name string, lines int) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = lines
	_, err := f.Workload(ctx, name)
	return f.lines, err
}

func (f *fake) Ready(context.Context) []api.Check { return f.checks }

func (f *fake) Config(context.Context) (any, error) { return f.config, f.err }

// serve gives the recorded answer to one request, sent to a loopback address.
func serve(cfg api.Config, b api.Backend, r *http.Request) *httptest.ResponseRecorder {
	if r.Host == "example.com" {
		r.Host = "127.0.0.1:8081"
	}
	w := httptest.NewRecorder()
	api.New(cfg, b).ServeHTTP(w, r)
	return w
}

func get(b api.Backend, path string) *httptest.ResponseRecorder {
	return serve(api.Config{}, b, httptest.NewRequest(http.MethodGet, path, nil))
}

func post(b api.Backend, path string) *httptest.ResponseRecorder {
	return serve(api.Config{}, b, httptest.NewRequest(http.MethodPost, path, nil))
}

func decode[T any](t *testing.T, body io.Reader) T {
	t.Helper()
	var v T
	require.NoError(t, json.NewDecoder(body).Decode(&v))
	return v
}

// problem reads an error answer and checks that it agrees with its status.
func problem(t *testing.T, w *httptest.ResponseRecorder) api.ProblemDetails {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), w.Body.String())
	p := decode[api.ProblemDetails](t, w.Body)
	require.Equal(t, w.Code, p.Status)
	require.NotEmpty(t, p.Title)
	require.Equal(t, w.Header().Get("X-Request-ID"), p.RequestID)
	return p
}
