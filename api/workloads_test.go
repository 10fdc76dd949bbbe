package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/workload"
)

func TestWorkloadsListsAllWithTheirProblems(t *testing.T) {
	f := newFake()
	f.problems = []workload.Problem{
		{Workload: "wiki", Place: "wiki (container)", Message: "no port"},
		{Workload: "gone", Place: "rouse.yaml:3:5", Message: "unknown key"},
	}
	w := get(f, "/api/v1/workloads")
	require.Equal(t, http.StatusOK, w.Code)
	list := decode[api.WorkloadList](t, w.Body)
	require.Len(t, list.Workloads, 2)
	assert.Equal(t, f.problems[:1], list.Workloads[0].Problems)
	assert.Empty(t, list.Workloads[1].Problems)
	assert.Equal(t, f.problems, list.Problems)
}

func TestWorkloadHasTheKeysOfTheContract(t *testing.T) {
	f := newFake()
	now := time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)
	f.workloads[0].Reason = workload.Reason{Code: workload.ReasonIdle}
	f.workloads[0].LastRequestAt, f.workloads[0].SleepsAt = now, now
	got := decode[map[string]any](t, get(f, "/api/v1/workloads/wiki").Body)
	for _, key := range []string{"name", "phase", "since", "reason", "hosts", "replicas", "queued", "in_flight", "last_request_at", "sleeps_at", "cold_starts", "generation"} {
		assert.Contains(t, got, key)
	}
	assert.Equal(t, "ready", got["phase"])
	assert.Equal(t, "2026-05-01T12:00:00.000000005Z", got["sleeps_at"])
	assert.Equal(t, []any{map[string]any{"id": "r1", "address": "10.0.0.2:80", "in_flight": 2.0}}, got["replicas"])
}

func TestListsAreNeverNull(t *testing.T) {
	f := newFake()
	f.config = map[string]any{}
	for path, want := range map[string]string{
		"/api/v1/workloads/blog":      `"hosts":[],"replicas":[]`,
		"/api/v1/workloads":           `"problems":[]`,
		"/api/v1/wakes":               `"wakes":[]`,
		"/api/v1/workloads/blog/logs": `"lines":[]`,
		"/readyz":                     `"checks":[]`,
	} {
		assert.Contains(t, get(f, path).Body.String(), want, path)
	}
	f.workloads = nil
	assert.Contains(t, get(f, "/api/v1/workloads").Body.String(), `"workloads":[]`)
}

func TestEveryErrorHasItsStatusAndTypeAndReachesTheCallerAsItself(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{api.ErrNoWorkload, 404, "no-workload"},
		{api.ErrNoWake, 404, "no-wake"},
		{api.ErrInUse, 409, "in-use"},
		{api.ErrNotReady, 504, "not-ready"},
		{api.ErrFailed, 502, "failed"},
		{api.ErrUnavailable, 503, "unavailable"},
		{context.Canceled, 503, "unavailable"},
		{context.DeadlineExceeded, 503, "unavailable"},
		{errors.New("disk on fire"), 500, "internal"},
	} {
		f := newFake()
		f.err = fmt.Errorf("wake wiki: %w", c.err)
		p := problem(t, post(f, "/api/v1/workloads/wiki/wake"))
		assert.Equal(t, c.status, p.Status, c.err)
		assert.Equal(t, "urn:rouse:problem:"+c.code, p.Type)
		assert.Equal(t, "wiki", p.Workload)
		assert.Contains(t, p.Detail, c.err.Error())
		for _, sentinel := range []error{api.ErrNoWorkload, api.ErrNoWake, api.ErrInUse, api.ErrNotReady, api.ErrFailed, api.ErrUnavailable} {
			want := sentinel == c.err || (c.code == "unavailable" && sentinel == api.ErrUnavailable)
			assert.Equal(t, want, errors.Is(&p, sentinel), "%v is %v", c.err, sentinel)
		}
	}
}

func TestMissingWorkloadIsExplainedByItsProblem(t *testing.T) {
	f := newFake()
	f.problems = []workload.Problem{{Workload: "shop", Place: "shop (container)", Message: "two ports", Fix: "set rouse.port"}}
	for _, w := range []func() (string, int){
		func() (string, int) { w := get(f, "/api/v1/workloads/shop"); return w.Body.String(), w.Code },
		func() (string, int) { w := post(f, "/api/v1/workloads/shop/wake"); return w.Body.String(), w.Code },
	} {
		body, code := w()
		assert.Equal(t, http.StatusNotFound, code)
		p := decode[api.ProblemDetails](t, strings.NewReader(body))
		assert.Equal(t, f.problems, p.Problems)
		assert.Equal(t, "no such workload; shop (container): two ports (set rouse.port)", p.Detail)
	}
}

func TestNameThatNoWorkloadCanHaveIsNotFound(t *testing.T) {
	for _, name := range []string{"..%2f..%2fcontainers", "a%20b", "-x", strings.Repeat("a", 81)} {
		p := problem(t, post(newFake(), "/api/v1/workloads/"+name+"/sleep"))
		assert.ErrorIs(t, &p, api.ErrNoWorkload, name)
	}
}

func TestWakePassesTheWaitOnAndTellsReadyFromUnderWay(t *testing.T) {
	f := newFake()
	assert.Equal(t, http.StatusOK, post(f, "/api/v1/workloads/wiki/wake?wait=1m30s").Code)
	w := post(f, "/api/v1/workloads/blog/wake")
	assert.Equal(t, http.StatusAccepted, w.Code)
	assert.Equal(t, "blog", decode[api.Workload](t, w.Body).Name)
	assert.Equal(t, []time.Duration{90 * time.Second, 0}, f.waits)
}

func TestWakeRefusesAWaitThatIsNone(t *testing.T) {
	f := newFake()
	for _, wait := range []string{"30", "-1s", "soon"} {
		p := problem(t, post(f, "/api/v1/workloads/wiki/wake?wait="+wait))
		assert.Equal(t, http.StatusBadRequest, p.Status)
		assert.Contains(t, p.Detail, wait)
	}
	assert.Empty(t, f.waits)
}

func TestFailedWakeTellsTheReasonAndTheLog(t *testing.T) {
	f := newFake()
	f.err = fmt.Errorf("%w: exited with code 3", api.ErrFailed)
	f.workloads[0].Reason = workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Log: []string{"no database"}}
	p := problem(t, post(f, "/api/v1/workloads/wiki/wake?wait=5s"))
	assert.Equal(t, http.StatusBadGateway, p.Status)
	assert.Equal(t, f.workloads[0].Reason, p.Reason)
}

func TestSleepAnswersWithTheWorkload(t *testing.T) {
	f := newFake()
	w := post(f, "/api/v1/workloads/blog/sleep")
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, workload.Asleep, decode[api.Workload](t, w.Body).Phase)
	assert.Equal(t, []string{"blog"}, f.slept)
}

func TestLogsGivesAsManyLinesAsAskedFor(t *testing.T) {
	f := newFake()
	f.lines = []string{"one", "two"}
	got := decode[api.LogLines](t, get(f, "/api/v1/workloads/wiki/logs").Body)
	assert.Equal(t, api.LogLines{Workload: "wiki", Lines: f.lines}, got)
	assert.Equal(t, 100, f.asked)
	get(f, "/api/v1/workloads/wiki/logs?lines=7")
	assert.Equal(t, 7, f.asked)
	for _, lines := range []string{"-1", "many", "10001"} {
		assert.Equal(t, http.StatusBadRequest, get(f, "/api/v1/workloads/wiki/logs?lines="+lines).Code)
	}
}

func TestWakesAreFilteredAndLimited(t *testing.T) {
	f := newFake()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i, name := range []string{"wiki", "blog", "wiki", "wiki"} {
		at := at.Add(time.Duration(i) * time.Minute)
		f.Add(workload.Event{Workload: name, Kind: workload.EventWoken, At: at,
			Wake: &workload.Wake{ID: fmt.Sprint("w", i), Workload: name, RequestedAt: at}})
	}
	for path, want := range map[string]string{
		"":                       "[w3 w2 w1 w0]",
		"?workload=wiki":         "[w3 w2 w0]",
		"?workload=wiki&limit=1": "[w3]",
		"?workload=none":         "[]",
	} {
		var ids []string
		for _, w := range decode[api.WakeList](t, get(f, "/api/v1/wakes"+path).Body).Wakes {
			ids = append(ids, w.ID)
		}
		assert.Equal(t, want, fmt.Sprint(ids), path)
	}
	assert.Equal(t, "blog", decode[api.Wake](t, get(f, "/api/v1/wakes/w1").Body).Workload)
	assert.Equal(t, http.StatusNotFound, get(f, "/api/v1/wakes/w9").Code)
	assert.Equal(t, http.StatusBadRequest, get(f, "/api/v1/wakes?limit=x").Code)
}

func TestConfigIsGivenAsItIs(t *testing.T) {
	f := newFake()
	f.config = json.RawMessage(`{"listen":":8080"}`)
	assert.JSONEq(t, `{"listen":":8080"}`, get(f, "/api/v1/config").Body.String())
	f.err = errors.New("no")
	assert.Equal(t, http.StatusInternalServerError, get(f, "/api/v1/config").Code)
	assert.Equal(t, http.StatusInternalServerError, get(f, "/api/v1/workloads").Code)
}

func TestDescribeTakesWhatDescriptionAndStateTell(t *testing.T) {
	since := time.Unix(100, 0)
	got := api.Describe(
		workload.Workload{Name: "wiki", Node: "n1", Runtime: "docker", Hosts: []string{"w"}, Path: "/", Origin: "wiki (container)"},
		workload.State{Phase: workload.Ready, Generation: 4, Since: since, RetryAt: since,
			Reason: workload.Reason{Code: workload.ReasonIdle}, Replicas: []workload.Replica{{ID: "r", Address: "a:1"}}})
	assert.Equal(t, api.Workload{Name: "wiki", Phase: workload.Ready, Since: since, RetryAt: since, Generation: 4,
		Reason: workload.Reason{Code: workload.ReasonIdle}, Hosts: []string{"w"}, Path: "/", Node: "n1", Runtime: "docker",
		Origin: "wiki (container)", Replicas: []api.Replica{{ID: "r", Address: "a:1"}}}, got)
}

func TestAWorkloadIsKeptAwake(t *testing.T) {
	f := newFake()
	w := post(f, "/api/v1/workloads/wiki/keep?for=1h")
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	assert.Equal(t, "2026-05-01T13:00:00Z", decode[map[string]any](t, w.Body)["kept_until"])
	require.Equal(t, http.StatusOK, post(f, "/api/v1/workloads/wiki/keep?for=0").Code)
	assert.Equal(t, []time.Duration{time.Hour, 0}, f.kept)
	for _, bad := range []string{"", "?for=", "?for=soon", "?for=-1s", "?for=24h1s", "?for=1ns"} {
		p := problem(t, post(f, "/api/v1/workloads/wiki/keep"+bad))
		assert.Equal(t, http.StatusBadRequest, p.Status)
		assert.Contains(t, p.Detail, "from 1s to 24h")
	}
	assert.Equal(t, http.StatusNotFound, post(f, "/api/v1/workloads/none/keep?for=1h").Code)
}
