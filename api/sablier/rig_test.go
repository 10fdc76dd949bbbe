package sablier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/api/sablier"
	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/workload"
)

// A rig is the API before real gates, whose workloads are started by the test.
type rig struct {
	t         *testing.T
	act       *activator.Activator
	api       *sablier.API
	healthy   atomic.Bool
	revisions atomic.Uint64
	stop      func()

	mu    sync.Mutex
	asked map[string]int // workload -> asks; guarded by mu
}

// Wake counts the asks.
func (r *rig) Wake(_ context.Context, w workload.Wake) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[w.Workload]++
	return nil
}

func (r *rig) wakes(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[name]
}

func newRig(t testing.TB, cfg activator.Config, ws ...workload.Workload) *rig {
	r := &rig{asked: map[string]int{}}
	r.t, _ = t.(*testing.T)
	r.healthy.Store(true)
	cfg.Gateway = "gw"
	r.act = activator.New(cfg, r)
	r.api = sablier.New(sablier.Config{Healthy: r.healthy.Load}, r.act)
	r.update(ws...)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.act.Run(ctx) }()
	r.stop = sync.OnceFunc(func() { cancel(); <-ended })
	return r
}

// inBubble runs a test with a rig whose clock is the test's.
func inBubble(t *testing.T, cfg activator.Config, ws []workload.Workload, test func(*testing.T, *rig)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		r := newRig(t, cfg, ws...)
		defer r.stop()
		test(t, r)
	})
}

// office are two workloads of one group, and one that is in none.
func office() []workload.Workload {
	return []workload.Workload{
		{Name: "wiki", Groups: []string{"office", "team"}, Containers: []string{"proj-wiki-1"}, Min: 2},
		{Name: "mail", Groups: []string{"office"}},
		{Name: "lone"},
	}
}

func (r *rig) update(ws ...workload.Workload) {
	r.act.Update(ws)
	r.api.Update(ws)
}

func (r *rig) see(name string, phase workload.Phase, change ...func(*workload.State)) {
	revision := r.revisions.Add(1)
	s := workload.State{Workload: name, Phase: phase, Generation: revision, Revision: revision, Since: time.Now()}
	if phase == workload.Ready {
		s.Replicas = []workload.Replica{{ID: fmt.Sprint(name, revision), Address: "127.0.0.1:1"}}
	}
	for _, f := range change {
		f(&s)
	}
	r.act.Observe(s)
}

// get makes one call, with headers as "Name: value" pairs.
func (r *rig) get(target string, header ...string) *httptest.ResponseRecorder {
	return r.getContext(context.Background(), target, header...)
}

func (r *rig) getContext(ctx context.Context, target string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	r.api.ServeHTTP(rec, req)
	return rec
}

// start makes a call that has to wait, and gives its answer once it came.
func (r *rig) start(target string) <-chan *httptest.ResponseRecorder {
	answer := make(chan *httptest.ResponseRecorder, 1)
	go func() { answer <- r.get(target) }()
	synctest.Wait()
	require.Empty(r.t, answer, "it did not wait")
	return answer
}

// come gives an answer that has to be there.
func come(t *testing.T, answer <-chan *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	synctest.Wait()
	select {
	case rec := <-answer:
		return rec
	default:
		t.Fatal("no answer")
		return nil
	}
}

const statusHeader = "X-Sablier-Session-Status"

type session struct {
	Session struct {
		Status    string
		Instances []struct {
			Instance struct {
				Name            string
				CurrentReplicas int
				DesiredReplicas int
				Status          string
				Message         string
			}
			Error string
		}
	}
}

func requireReady(t *testing.T, rec *httptest.ResponseRecorder, names ...string) {
	t.Helper()
	require.Equal(t, http.StatusOK, rec.Code, rec.Body)
	require.Equal(t, "ready", rec.Header().Get(statusHeader))
	require.Equal(t, "application/json; charset=utf-8", rec.Header().Get("Content-Type"))
	require.Equal(t, fmt.Sprint(rec.Body.Len()), rec.Header().Get("Content-Length"))
	var s session
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &s), rec.Body)
	require.Equal(t, "ready", s.Session.Status)
	var got []string
	for _, i := range s.Session.Instances {
		got = append(got, i.Instance.Name)
	}
	require.Equal(t, names, got)
}

type problem struct {
	Type, Title, Detail, Instance string
	Status                        int
	AvailableGroups               []string
	AvailableTheme                []string
	Instances                     []struct{ Name, Status, Message string }
}

func requireProblem(t *testing.T, rec *httptest.ResponseRecorder, status int, id string) problem {
	t.Helper()
	require.Equal(t, status, rec.Code, rec.Body)
	require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
	require.Empty(t, rec.Header().Get(statusHeader), "plugins take the header for an answer")
	var p problem
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &p))
	require.Equal(t, "urn:rouse:problem:sablier-"+id, p.Type)
	require.Equal(t, status, p.Status)
	require.NotEmpty(t, p.Title)
	return p
}
