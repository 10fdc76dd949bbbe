package router_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail"`
	Workload  string `json:"workload"`
	RequestID string `json:"request_id"`
	Reason    string `json:"reason"`
	ExitCode  *int   `json:"exit_code"`
}

// problemOf reads a problem and checks what is true of each of them.
func problemOf(t *testing.T, res *http.Response) problem {
	t.Helper()
	require.Equal(t, "application/problem+json", res.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	var p problem
	require.NoError(t, json.Unmarshal([]byte(body(t, res)), &p))
	assert.Equal(t, res.StatusCode, p.Status)
	assert.Equal(t, res.Header.Get("X-Request-Id"), p.RequestID)
	assert.NotEmpty(t, p.RequestID)
	assert.Regexp(t, `^urn:rouse:problem:[a-z-]+$`, p.Type)
	assert.NotEmpty(t, p.Title)
	return p
}

var browser = []string{"Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}

func ok(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// coldStart makes the rig wake its workload as a scaler would, with a record
// that has the given start and probe times.
func (r *rig) coldStart(addr string, start, probe time.Duration) {
	r.whenWoken(func(w workload.Wake) {
		received := time.Now()
		time.Sleep(start + probe) // the workload really takes that long
		w.ReceivedAt, w.StartAt = received, received
		w.StartedAt = received.Add(start)
		w.ReadyAt = w.StartedAt.Add(probe)
		r.observe(workload.State{Workload: w.Workload, Phase: workload.Ready, Generation: w.Generation + 1, Wake: &w,
			Replicas: []workload.Replica{{ID: replicaID(w.Workload, w.Generation+1, 0), Address: addr}}})
	})
}

func TestSleepingWorkloadIsWokenAndTheTimesAreTold(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	addr := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server-Timing", "db;dur=1")
		_, _ = io.Copy(w, r.Body)
	})
	rig.coldStart(addr, 40*time.Millisecond, 20*time.Millisecond)
	const traced = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	res := rig.do(http.MethodPost, "wiki.test", "/", strings.NewReader("form"), "X-Request-ID", "cold", "Traceparent", traced)
	assert.Equal(t, "form", body(t, res))
	assert.Equal(t, "?1", res.Header.Get("Rouse-Cold-Start"))
	timings := res.Header["Server-Timing"]
	require.Len(t, timings, 2, "the workload's own stays")
	assert.Equal(t, "db;dur=1", timings[0])
	found := regexp.MustCompile(`^queue;dur=([0-9.]+), wake;dur=([0-9.]+), start;dur=([0-9.]+), probe;dur=([0-9.]+), added;dur=([0-9.]+)$`).FindStringSubmatch(timings[1])
	require.NotNil(t, found, timings[1])
	ms := func(i int) float64 { f, err := strconv.ParseFloat(found[i], 64); require.NoError(t, err); return f }
	queue, start, probe, added := ms(1), ms(3), ms(4), ms(5)
	assert.Equal(t, 40.0, start)
	assert.Equal(t, 20.0, probe)
	assert.GreaterOrEqual(t, queue, 60.0)
	assert.Less(t, added, queue, "the wait for the workload is not Rouse's")

	e := rig.entryOf("cold")
	assert.True(t, e.Cold)
	assert.Equal(t, "held", e.Outcome)
	assert.InDelta(t, queue/1000, e.Queued, 0.001)
	assert.InDelta(t, added/1000, e.Added, 0.001)
	rig.woken()
	assert.Equal(t, traced, rig.wakes[0].Traceparent)
	assert.EqualValues(t, 1, rig.metric("rouse_added_latency_seconds", map[string]string{"path": "cold"}))

	again := rig.get("wiki.test", "/")
	body(t, again)
	assert.NotContains(t, again.Header, "Rouse-Cold-Start", "a warm one is untouched")
	assert.Equal(t, []string{"db;dur=1"}, again.Header["Server-Timing"])
}

func TestNavigationGetsThePageAfterAWhileAndTheRestIsHeld(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.PageAfter = 50 * time.Millisecond }))
	res := rig.get("wiki.test", "/", browser...)
	page := body(t, res)
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	assert.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	assert.NotEmpty(t, res.Header.Get("Retry-After"))
	assert.NotEmpty(t, res.Header.Get("Content-Security-Policy"))
	assert.Contains(t, page, `data-status="/.rouse/status?workload=wiki"`)
	assert.EqualValues(t, 1, rig.counted("wiki", "page"))
	rig.woken()

	form := rig.start(http.MethodPost, "wiki.test", "/", strings.NewReader("a=1"), browser...)
	style := rig.start(http.MethodGet, "wiki.test", "/a.css", nil, "Accept", "text/css,*/*;q=0.1")
	rig.queued("wiki", 2)
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Method) }))
	assert.Equal(t, "POST", body(t, <-form))
	assert.Equal(t, "GET", body(t, <-style))
}

func TestNavigationIsHeldWhenItIsReadySoonEnough(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.coldStart(upstream(t, ok("wiki")), 0, 0)
	assert.Equal(t, "wiki", body(t, rig.get("wiki.test", "/", browser...)))
}

func TestWaitModes(t *testing.T) {
	for _, c := range []struct {
		mode   workload.WaitMode
		html   bool
		status int
	}{
		{workload.WaitPage, true, http.StatusServiceUnavailable},
		{workload.WaitHold, true, http.StatusServiceUnavailable},
	} {
		rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.Wait, w.HoldTimeout, w.PageAfter = c.mode, 60*time.Millisecond, 0 }))
		page := body(t, rig.get("wiki.test", "/", browser...))
		assert.Equal(t, c.mode == workload.WaitPage, strings.Contains(page, "data-status"), "%s: %s", c.mode, page)
		rig.woken()
		problemOf(t, rig.get("wiki.test", "/"))
	}
}

func TestPageAsksAndHearsOfTheEnd(t *testing.T) {
	const status = "/.rouse/status?workload=wiki"
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.HoldTimeout = 300 * time.Millisecond }),
		workload.Workload{Name: "other", Hosts: []string{"other.test"}, Path: "/", HoldTimeout: time.Millisecond})

	res := rig.get("wiki.test", status)
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	assert.Equal(t, "?1", res.Header.Get("Rouse-Waiting"), "not yet: ask again")
	assert.Empty(t, res.Header.Get("Retry-After"), "it was held: the page may ask again at once")
	problemOf(t, res)
	rig.woken() // an open page keeps asking for the workload

	res = rig.get("other.test", status)
	assert.Equal(t, "other", problemOf(t, res).Workload, "a workload is asked for on its own hosts only")
	assert.Empty(t, res.Header.Get("Rouse-Waiting"))

	addr := upstream(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })
	waiting := rig.start(http.MethodGet, "wiki.test", status, nil)
	rig.queued("wiki", 1)
	rig.ready("wiki", 1, addr)
	res = <-waiting
	assert.Equal(t, http.StatusNoContent, res.StatusCode)
	assert.Empty(t, res.Header.Get("Rouse-Waiting"))

	res = rig.get("wiki.test", status)
	assert.Equal(t, "/.rouse/status", body(t, res), "awake, every path is the workload's own")
	assert.Zero(t, rig.counted("wiki", ""), "the page's own traffic is not counted")
}

func TestPageHearsOfAFailedStartAtOnce(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.whenWoken(failing(rig, workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Detail: "no config"}, time.Minute))
	res := rig.get("wiki.test", "/.rouse/status?workload=wiki")
	assert.Empty(t, res.Header.Get("Rouse-Waiting"), "the page reloads")
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	body(t, res)
	res = rig.get("wiki.test", "/", browser...)
	page := body(t, res)
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	assert.Contains(t, page, "no config")
	assert.NotContains(t, page, "<script", "and then stays")
}

func failing(rig *rig, reason workload.Reason, backOff time.Duration) func(workload.Wake) {
	return func(w workload.Wake) {
		rig.observe(workload.State{Workload: w.Workload, Phase: workload.Failed, Generation: w.Generation + 1,
			Reason: reason, RetryAt: time.Now().Add(backOff)})
	}
}

func TestWhatACallerSees(t *testing.T) {
	rig := newRig(t, rigConfig{router: router.Config{NoWake: router.NoWake{Paths: []string{"/favicon.ico"}, Answer: 418}}},
		wiki(func(w *workload.Workload) { w.HoldTimeout = 300 * time.Millisecond }))
	code := 3
	for _, c := range []struct {
		name, host, path string
		wake             func(workload.Wake)
		want             problem
		retry            bool
		outcome          string
	}{
		{"no such host", "nobody.test", "/", nil, problem{Type: "no-such-host", Status: 404}, false, "error"},
		{"no-wake while asleep", "wiki.test", "/favicon.ico", nil, problem{Type: "asleep", Status: 418, Workload: "wiki"}, true, "nowake"},
		{"hold timeout", "wiki.test", "/", nil, problem{Type: "hold-timeout", Status: 503, Workload: "wiki"}, true, "timeout"},
		{"wake timeout", "wiki.test", "/", failing(rig, workload.Reason{Code: workload.ReasonTimeout, Detail: "not ready"}, 0),
			problem{Type: "wake-timeout", Status: 504, Workload: "wiki", Reason: "timeout"}, false, "timeout"},
		{"exited", "wiki.test", "/", failing(rig, workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Detail: "bad flag"}, 0),
			problem{Type: "start-failed", Status: 502, Workload: "wiki", Reason: "exited", ExitCode: &code}, false, "error"},
		{"no such container", "wiki.test", "/", failing(rig, workload.Reason{Code: workload.ReasonNotFound, Detail: "no container wiki"}, time.Minute),
			problem{Type: "start-failed", Status: 502, Workload: "wiki", Reason: "not_found"}, true, "error"},
		{"still backing off", "wiki.test", "/", nil, problem{Type: "start-failed", Status: 502, Workload: "wiki", Reason: "not_found"}, true, "error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rig.whenWoken(c.wake)
			before := rig.counted(c.want.Workload, c.outcome)
			res := rig.get(c.host, c.path)
			retry := res.Header.Get("Retry-After")
			got := problemOf(t, res)
			c.want.Type = "urn:rouse:problem:" + c.want.Type
			c.want.Title, c.want.Detail, c.want.RequestID = got.Title, got.Detail, got.RequestID
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.retry, retry != "", "Retry-After %q", retry)
			assert.EqualValues(t, 1, rig.counted(c.want.Workload, c.outcome)-before, c.outcome)

			page := rig.get(c.host, c.path, browser...)
			assert.Equal(t, "text/html; charset=utf-8", page.Header.Get("Content-Type"), "a short page to a navigation")
			assert.Contains(t, body(t, page), page.Header.Get("X-Request-Id"))
			head := rig.do(http.MethodHead, c.host, c.path, nil)
			assert.Empty(t, body(t, head))
		})
	}
	for _, e := range rig.log.entries(t) {
		assert.NotEqual(t, "/favicon.ico", e.Path, "no-wake traffic is not logged")
	}
}

func TestFullQueueIsRefusedAtOnce(t *testing.T) {
	rig := newRig(t, rigConfig{activator: activator.Config{QueueRequests: 1}}, wiki())
	first := rig.start(http.MethodGet, "wiki.test", "/", nil)
	rig.queued("wiki", 1)
	res := rig.get("wiki.test", "/", "X-Request-ID", "full")
	assert.NotEmpty(t, res.Header.Get("Retry-After"))
	p := problemOf(t, res)
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.Equal(t, "urn:rouse:problem:queue-full", p.Type)
	assert.EqualValues(t, 1, rig.counted("wiki", "shed"))
	rig.ready("wiki", 1, upstream(t, ok("held")))
	assert.Equal(t, "held", body(t, <-first))
}

func TestTooManyWakesAreLimited(t *testing.T) {
	rig := newRig(t, rigConfig{activator: activator.Config{WakesPerMinute: 1}}, wiki())
	addr := upstream(t, ok("x"))
	rig.coldStart(addr, 0, 0)
	body(t, rig.get("wiki.test", "/"))
	rig.whenWoken(nil)
	rig.observe(workload.State{Workload: "wiki", Phase: workload.Asleep, Generation: 1})
	res := rig.get("wiki.test", "/")
	retry, err := strconv.Atoi(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	assert.Greater(t, retry, 5)
	assert.Equal(t, "urn:rouse:problem:wake-limited", problemOf(t, res).Type)
}

func TestOnlyAllowedNetworksWake(t *testing.T) {
	rig := newRig(t, rigConfig{router: router.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}},
		wiki(func(w *workload.Workload) {
			w.WakeAllow, w.HoldTimeout = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}, 60*time.Millisecond
		}))
	p := problemOf(t, rig.get("wiki.test", "/", "X-Forwarded-For", "203.0.113.5"))
	assert.Equal(t, http.StatusForbidden, p.Status)
	assert.Equal(t, "urn:rouse:problem:wake-not-allowed", p.Type)
	assert.Zero(t, rig.wakeCount())
	p = problemOf(t, rig.get("wiki.test", "/", "X-Forwarded-For", "203.0.113.5, 192.168.7.7"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status, "this one may wake it, and is held")
	rig.woken()
	rig.ready("wiki", 1, upstream(t, ok("awake")))
	assert.Equal(t, "awake", body(t, rig.get("wiki.test", "/", "X-Forwarded-For", "203.0.113.5")), "what is awake is for all")
}

func TestNoWakeRequestPassesToAnAwakeWorkload(t *testing.T) {
	rig := newRig(t, rigConfig{router: router.Config{NoWake: router.NoWake{Prefetch: true}}}, wiki())
	rig.ready("wiki", 1, upstream(t, ok("icon")))
	assert.Equal(t, "icon", body(t, rig.get("wiki.test", "/", "Sec-Purpose", "prefetch")))
	for _, load := range rig.act.Activity().Loads {
		assert.EqualValues(t, -1, load.IdleMS, "it does not count as use")
	}
}

func TestClientThatLeavesWhileHeldFreesItsPlace(t *testing.T) {
	for name, request := range map[string]string{
		"without a body":      "GET / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: left\r\n\r\n",
		"with its body":       "POST / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: left\r\nContent-Length: 4\r\n\r\nbody",
		"in its body":         "POST / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: left\r\nContent-Length: 4000\r\n\r\nbody",
		"before its body":     "POST / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: left\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
		"in its chunked body": "POST / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: left\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t, rigConfig{}, wiki())
			conn, err := net.Dial("tcp", rig.addr)
			require.NoError(t, err)
			fmt.Fprint(conn, request)
			rig.queued("wiki", 1)
			require.NoError(t, conn.Close())
			rig.queued("wiki", 0)
			e := rig.entryOf("left")
			assert.Equal(t, 499, e.Status)
			assert.Equal(t, "canceled", e.Outcome)
			rig.woken() // the wake goes on
		})
	}
}

func TestRemovedWorkloadEndsItsWait(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	held := rig.start(http.MethodGet, "wiki.test", "/", nil)
	rig.queued("wiki", 1)
	rig.act.Update(nil)
	rig.router.Update(nil)
	assert.Equal(t, http.StatusNotFound, problemOf(t, <-held).Status)
	assert.Equal(t, "urn:rouse:problem:no-such-host", problemOf(t, rig.get("wiki.test", "/")).Type)
}

// Who waits for a workload that must not run beside another hears which one.
func TestAWaitForAConflictIsToldToWhoWaits(t *testing.T) {
	const detail = "it waits until llama sleeps, which it never runs beside"
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) {
		w.Wait, w.HoldTimeout = workload.WaitPage, 300*time.Millisecond
	}))
	rig.observe(workload.State{Workload: "wiki", Phase: workload.Waking, Generation: 1, Reason: workload.Reason{Code: workload.ReasonConflict, Detail: detail}})
	assert.Contains(t, body(t, rig.get("wiki.test", "/", browser...)), "At the moment "+detail)
	p := problemOf(t, rig.get("wiki.test", "/"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	assert.Contains(t, p.Detail, detail)

	failing(rig, workload.Reason{Code: workload.ReasonConflict, Detail: "llama did not sleep"}, time.Minute)(workload.Wake{Workload: "wiki"})
	p = problemOf(t, rig.get("wiki.test", "/"))
	assert.Equal(t, http.StatusGatewayTimeout, p.Status)
	assert.Equal(t, "urn:rouse:problem:conflict", p.Type)
}
