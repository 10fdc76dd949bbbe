package router_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

const wikiStatus = "/.rouse/status?workload=wiki"

// A journal is one that the test writes.
type journal struct {
	mu    sync.Mutex
	wake  workload.Wake
	usual time.Duration
}

func (j *journal) LastWake(string) (workload.Wake, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.wake, j.wake.ID != "" && j.wake.ReadyAt.IsZero()
}

func (j *journal) UsualWake(string) time.Duration { return j.usual }

func (j *journal) write(change func(*workload.Wake)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wake.ID = "w1"
	change(&j.wake)
}

// An event is one of a waiting page's stream.
type event struct {
	name string
	data string
}

type progress struct {
	Steps []struct {
		Name, State string
		MS          int64
	}
	Elapsed  int64  `json:"elapsed_ms"`
	Expected int64  `json:"expected_ms"`
	Note     string `json:"note"`
	Position int    `json:"position"`
	Waiting  int    `json:"waiting"`
}

func (e event) progress(t testing.TB) (p progress) {
	t.Helper()
	require.Equal(t, "progress", e.name, e.data)
	require.NoError(t, json.Unmarshal([]byte(e.data), &p))
	return p
}

// A page is one that listens.
type page struct {
	t    testing.TB
	res  *http.Response
	line *bufio.Reader
}

// listen opens the stream of events of a waiting page of the wiki.
func (r *rig) listen() *page {
	r.t.Helper()
	req := r.request(r.t.Context(), http.MethodGet, "wiki.test", wikiStatus, nil, "Accept", "text/event-stream")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = res.Body.Close() })
	return &page{r.t, res, bufio.NewReader(res.Body)}
}

// next gives the next event; false at the end of the stream.
func (p *page) next() (e event, ok bool) {
	p.t.Helper()
	for {
		line, err := p.line.ReadString('\n')
		if err != nil {
			return event{}, false
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch {
		case name == "event":
			e.name = value
		case name == "data":
			e.data = value
		case line == "\n" && e.name != "":
			return e, true
		}
	}
}

func (p *page) must() event {
	p.t.Helper()
	e, ok := p.next()
	require.True(p.t, ok, "the stream has ended")
	return e
}

// until gives the first progress that is as wanted.
func (p *page) until(want func(progress) bool) progress {
	p.t.Helper()
	for {
		if got := p.must().progress(p.t); want(got) {
			return got
		}
	}
}

func TestPageHearsOfEachStepAndThenOfTheEnd(t *testing.T) {
	j := &journal{usual: 3 * time.Second}
	rig := newRig(t, rigConfig{router: router.Config{Journal: j}}, wiki())
	asked := time.Now().Add(-time.Second)
	j.write(func(w *workload.Wake) { w.RequestedAt = asked })
	p := rig.listen()
	assert.Equal(t, http.StatusOK, p.res.StatusCode)
	assert.Equal(t, "text/event-stream", p.res.Header.Get("Content-Type"))
	assert.Equal(t, "no-store", p.res.Header.Get("Cache-Control"))
	assert.Equal(t, "no", p.res.Header.Get("X-Accel-Buffering"))

	first := p.must().progress(t)
	assert.GreaterOrEqual(t, first.Elapsed, int64(1000), "it was asked for before the page came")
	assert.EqualValues(t, 3000, first.Expected)
	require.Len(t, first.Steps, 3)
	assert.Equal(t, "now", first.Steps[0].State)

	j.write(func(w *workload.Wake) { w.ReceivedAt = asked.Add(5 * time.Millisecond) })
	taken := p.until(func(p progress) bool { return p.Steps[1].State == "now" })
	assert.EqualValues(t, 5, taken.Steps[0].MS)
	j.write(func(w *workload.Wake) { w.StartedAt = asked.Add(205 * time.Millisecond) })
	started := p.until(func(p progress) bool { return p.Steps[2].State == "now" })
	assert.EqualValues(t, 200, started.Steps[1].MS)

	rig.ready("wiki", 1, upstream(t, ok("wiki")))
	assert.Equal(t, event{"ready", "{}"}, p.must())
	_, more := p.next()
	assert.False(t, more, "and nothing after it")
	assert.Zero(t, rig.counted("wiki", ""), "the page's own traffic is not counted")
}

func TestPageThatPollsHearsOfEachStep(t *testing.T) {
	j := &journal{}
	rig := newRig(t, rigConfig{router: router.Config{Journal: j}}, wiki())
	j.write(func(w *workload.Wake) { w.RequestedAt = time.Now(); w.ReceivedAt = time.Now() })
	res := rig.get("wiki.test", wikiStatus, "Accept", "application/json")
	assert.Equal(t, "?1", res.Header.Get("Rouse-Waiting"))
	var problem struct {
		Progress  progress `json:"progress"`
		RequestID string   `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(body(t, res)), &problem))
	require.Len(t, problem.Progress.Steps, 3)
	assert.Equal(t, "now", problem.Progress.Steps[1].State)
	assert.Equal(t, res.Header.Get("X-Request-Id"), problem.RequestID)
}

func TestPageHearsWhyItDoesNotCome(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	p := rig.listen()
	p.must()
	rig.whenWoken(nil)
	failing(rig, workload.Reason{Code: workload.ReasonExited, ExitCode: 3, Detail: "no config"}, time.Minute)(workload.Wake{Workload: "wiki"})
	e := p.must()
	require.Equal(t, "failed", e.name)
	var problem struct {
		Title, Detail string
		Status        int
		RequestID     string `json:"request_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(e.data), &problem))
	assert.Equal(t, "wiki could not be started", problem.Title)
	assert.Contains(t, problem.Detail, "no config")
	assert.NotEmpty(t, problem.RequestID)
	_, more := p.next()
	assert.False(t, more)
}

func TestPageIsNotForThoseWhoMayNotWake(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.WakeAllow = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} }))
	res := rig.get("wiki.test", wikiStatus, "Accept", "text/event-stream")
	assert.Equal(t, http.StatusForbidden, res.StatusCode)
	assert.Empty(t, res.Header.Get("Rouse-Waiting"))
	assert.Contains(t, body(t, res), "wake-not-allowed")
	assert.Zero(t, rig.wakeCount())
}

func TestOpenPagesShareOnePlaceInTheQueue(t *testing.T) {
	rig := newRig(t, rigConfig{activator: activator.Config{QueueRequests: 2}}, wiki())
	pages := make([]*page, 20)
	for i := range pages {
		pages[i] = rig.listen()
		pages[i].must()
	}
	rig.queued("wiki", 1)
	held := rig.start(http.MethodGet, "wiki.test", "/", nil)
	rig.queued("wiki", 2)
	last := pages[19].until(func(p progress) bool { return p.Waiting == 20 })
	assert.Equal(t, 20, last.Position)
	first := pages[0].until(func(p progress) bool { return p.Waiting == 20 })
	assert.Equal(t, 1, first.Position)

	rig.ready("wiki", 1, upstream(t, ok("wiki")))
	assert.Equal(t, "wiki", body(t, <-held))
	for _, p := range pages {
		for e := p.must(); e.name != "ready"; e = p.must() {
			e.progress(t)
		}
	}
}

func TestPageWaitsOnWhereItIsTooMuch(t *testing.T) {
	rig := newRig(t, rigConfig{activator: activator.Config{QueueRequests: 1}}, wiki())
	held := rig.start(http.MethodGet, "wiki.test", "/", nil)
	rig.queued("wiki", 1)
	p := rig.listen()
	noted := p.until(func(p progress) bool { return p.Note != "" })
	assert.Equal(t, "Too many requests wait for it.", noted.Note)
	rig.ready("wiki", 1, upstream(t, ok("wiki")))
	assert.Equal(t, "wiki", body(t, <-held))
	e := p.must()
	for e.name == "progress" {
		e = p.must()
	}
	assert.Equal(t, "ready", e.name, "it is held again in a while")
}

func TestNothingIsAskedForOnceAllPagesAreClosed(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	ctx, leave := context.WithCancel(t.Context())
	req := rig.request(ctx, http.MethodGet, "wiki.test", wikiStatus, nil, "Accept", "text/event-stream")
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	rig.queued("wiki", 1)
	leave()
	rig.queued("wiki", 0)
}

func TestStreamOfAPageEndsWithItsGateway(t *testing.T) {
	rig := newRig(t, rigConfig{server: router.ServerConfig{Grace: patience}}, wiki())
	p := rig.listen()
	p.must()
	rig.stop()
	_, more := p.next()
	assert.False(t, more, "it says neither ready nor failed: the page asks the successor")
}

func TestThousandsOfOpenPagesReload(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	conns := make([]net.Conn, 2000)
	for i := range conns {
		conn, err := net.Dial("tcp", rig.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: wiki.test\r\nAccept: text/event-stream\r\n\r\n", wikiStatus)
		require.NoError(t, err)
		conns[i] = conn
	}
	rig.queued("wiki", 1)
	read := func(conn net.Conn, until string) {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(4*patience)))
		lines := bufio.NewReader(conn)
		for {
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(line, until) {
				return
			}
		}
	}
	for _, conn := range conns {
		read(conn, "event: progress")
	}
	rig.queued("wiki", 1)
	rig.ready("wiki", 1, upstream(t, ok("wiki")))
	for _, conn := range conns {
		read(conn, "event: ready")
	}
}
