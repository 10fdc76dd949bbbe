package router_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAwakeWorkloadIsPassedThroughUntouched(t *testing.T) {
	seen := make(chan *http.Request, 1)
	addr := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Clone(context.Background())
		w.Header().Set("X-App", "yes")
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "tea")
	})
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	res := rig.get("wiki.test:8080", "/a%2Fb//c?x=1;y=%zz&&z", "Accept-Encoding", "br", "X-Request-ID", "r-1",
		"Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "Tracestate", "v=1",
		"X-Forwarded-For", "1.1.1.1", "Connection", "X-Forwarded-For, X-Request-Id, Traceparent, X-Drop", "X-Drop", "1")
	assert.Equal(t, "tea", body(t, res))
	assert.Equal(t, http.StatusTeapot, res.StatusCode)
	assert.Equal(t, []string{"a=1", "b=2"}, res.Header["Set-Cookie"])
	for _, name := range []string{"Rouse-Cold-Start", "Server-Timing", "X-Request-Id", "Via"} {
		assert.NotContains(t, res.Header, name)
	}
	got := <-seen
	assert.Equal(t, "wiki.test:8080", got.Host, "the Host header is the client's")
	assert.Equal(t, "/a%2Fb//c?x=1;y=%zz&&z", got.RequestURI)
	assert.Equal(t, []string{"127.0.0.1"}, got.Header["X-Forwarded-For"], "Connection must not take it away")
	assert.Equal(t, []string{"wiki.test:8080"}, got.Header["X-Forwarded-Host"])
	assert.Equal(t, []string{"http"}, got.Header["X-Forwarded-Proto"])
	assert.Equal(t, []string{"r-1"}, got.Header["X-Request-Id"])
	assert.Equal(t, []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, got.Header["Traceparent"])
	assert.Equal(t, []string{"v=1"}, got.Header["Tracestate"])
	assert.Equal(t, []string{"br"}, got.Header["Accept-Encoding"])
	assert.NotContains(t, got.Header, "X-Drop")

	e := rig.entryOf("r-1")
	assert.Equal(t, http.StatusTeapot, e.Status)
	assert.Equal(t, "warm", e.Outcome)
	assert.Equal(t, "127.0.0.1", e.Client)
	assert.Equal(t, "wiki", e.Workload)
	assert.Equal(t, "wiki-1-0", e.Replica)
	assert.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", e.TraceID)
	assert.EqualValues(t, 3, e.Bytes)
	assert.False(t, e.Cold)
	assert.Greater(t, e.Upstream, 0.0)
	assert.InDelta(t, e.Total, e.Added+e.Upstream, e.Total, "the parts are of the whole")
	assert.EqualValues(t, 1, rig.counted("wiki", "warm"))
	assert.EqualValues(t, 1, rig.metric("rouse_added_latency_seconds", map[string]string{"path": "warm"}))
}

func TestIDsAreMadeWhereNoneCame(t *testing.T) {
	seen := make(chan http.Header, 1)
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	body(t, rig.get("wiki.test", "/", "X-Request-ID", "no good", "Traceparent", "nonsense", "Tracestate", "v=1", "Rouse-Cold-Start", "?1"))
	got := <-seen
	assert.Regexp(t, "^[0-9a-f]{32}$", got.Get("X-Request-Id"))
	assert.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", got.Get("Traceparent"))
	assert.NotContains(t, got, "Tracestate", "it belongs to the trace that was not joined")
	assert.NotContains(t, got, "Rouse-Cold-Start")
	rig.entryOf(got.Get("X-Request-Id"))
}

func TestTrailersPassBothWays(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Announced", r.Trailer.Get("X-Sum"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	}))
	req := rig.request(t.Context(), http.MethodPost, "wiki.test", "/", io.MultiReader(strings.NewReader("body")))
	req.Trailer = http.Header{"X-Sum": {"42"}}
	res, err := client.Do(req)
	require.NoError(t, err)
	assert.Equal(t, "body", body(t, res))
	assert.Equal(t, "42", res.Trailer.Get("X-Announced"), "the request's trailer reached the workload, and its own came back")
	assert.Equal(t, "late", res.Trailer.Get("X-Late"))
}

func TestInformationalAnswersPass(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusNoContent)
	}))
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, " ", h.Get("Link")))
		return nil
	}})
	res, err := client.Do(rig.request(ctx, http.MethodGet, "wiki.test", "/", nil, "X-Request-ID", "hints"))
	require.NoError(t, err)
	body(t, res)
	assert.Equal(t, http.StatusNoContent, res.StatusCode)
	assert.Equal(t, []string{"103 </a.css>; rel=preload"}, hints)
	assert.Empty(t, res.Header.Get("Link"))
	assert.Equal(t, http.StatusNoContent, rig.entryOf("hints").Status)
}

// watched is a body that tells when it is first read.
type watched struct {
	io.Reader
	read chan struct{}
}

func (w *watched) Read(p []byte) (int, error) {
	select {
	case <-w.read:
	default:
		close(w.read)
	}
	return w.Reader.Read(p)
}

func TestExpectContinueIsTheWorkloadsToAnswer(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.WriteHeader(http.StatusForbidden) // without a look at the body
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	send := func(path string) (*http.Response, *watched) {
		b := &watched{strings.NewReader("precious"), make(chan struct{})}
		req := rig.request(t.Context(), http.MethodPost, "wiki.test", path, b, "Expect", "100-continue")
		req.ContentLength = 8
		res, err := client.Do(req)
		require.NoError(t, err)
		return res, b
	}
	res, b := send("/refuse")
	assert.Equal(t, http.StatusForbidden, res.StatusCode)
	select {
	case <-b.read:
		t.Error("the body was sent, though the workload had refused it")
	default:
	}
	body(t, res)
	res, _ = send("/take")
	assert.Equal(t, "precious", body(t, res))
}

func TestEventStreamIsFlushedEventByEvent(t *testing.T) {
	next := make(chan struct{})
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select { // the next one is made only when the client has this one
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	}))
	res := rig.get("wiki.test", "/", "Accept", "text/event-stream")
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := events.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = events.ReadString('\n')
		require.NoError(t, err)
		next <- struct{}{}
	}
}

func TestFullDuplexOverHTTP1(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		_ = rc.Flush()
		words := bufio.NewScanner(r.Body)
		for words.Scan() {
			fmt.Fprintln(w, "echo", words.Text())
			_ = rc.Flush()
		}
	}))
	conn, err := net.Dial("tcp", rig.addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: wiki.test\r\nTransfer-Encoding: chunked\r\n\r\n")
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, nil)
	require.NoError(t, err)
	words := bufio.NewReader(res.Body)
	for _, word := range []string{"one", "two", "three"} {
		fmt.Fprintf(conn, "%x\r\n%s\n\r\n", len(word)+1, word)
		line, err := words.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "echo "+word+"\n", line)
	}
}

// A workload may answer without reading the body; then the connection ends,
// whatever the client sends on.
func TestEarlyAnswerLeavesTheConnectionInOrder(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/read" {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		fmt.Fprint(w, r.Method)
	}))
	conn, err := net.Dial("tcp", rig.addr)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	answers := bufio.NewReader(conn)
	fmt.Fprint(conn, "POST /read HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: 4\r\n\r\nbody")
	res, err := http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, "POST", body(t, res))
	assert.False(t, res.Close, "the body was read: the connection is kept")

	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: 10000\r\n\r\n0123456789")
	res, err = http.ReadResponse(answers, nil)
	require.NoError(t, err)
	assert.Equal(t, "POST", body(t, res), "before the body is there")
	assert.True(t, res.Close)
	fmt.Fprint(conn, strings.Repeat("x", 9990)+"GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
	_, err = http.ReadResponse(answers, nil)
	require.Error(t, err, "and not another request, be it made of the rest of the body")
}

// huge has the test of large bodies send as many as no 32-bit length can say.
var huge = flag.Bool("huge", false, "send bodies of 2 GiB and more")

func TestLargeBodiesPassWholeInConstantMemory(t *testing.T) {
	const room = 16 << 20
	size := int64(64 << 20)
	if *huge {
		size = 2<<30 + 1
	}
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, _ := io.Copy(sum, r.Body)
		w.Header().Set("X-Sum", fmt.Sprintf("%d %x", n, sum.Sum(nil)))
		_, _ = io.CopyN(w, pattern{}, size)
	}))
	sum := sha256.New()
	_, _ = io.CopyN(sum, pattern{}, size)
	want := fmt.Sprintf("%d %x", size, sum.Sum(nil))
	gauge := &heapGauge{}
	patient := *client
	patient.Timeout = 10 * time.Minute
	res, err := patient.Do(rig.request(t.Context(), http.MethodPost, "wiki.test", "/", io.TeeReader(io.LimitReader(pattern{}, size), gauge)))
	require.NoError(t, err)
	assert.Equal(t, want, res.Header.Get("X-Sum"))
	sum.Reset()
	n, err := io.Copy(io.MultiWriter(sum, gauge), res.Body)
	require.NoError(t, err)
	assert.Equal(t, want, fmt.Sprintf("%d %x", n, sum.Sum(nil)))
	t.Logf("%d bytes each way, at most %d bytes of heap", size, gauge.most)
	assert.Less(t, gauge.most-min(gauge.most, before.HeapAlloc), uint64(room), "bytes of heap beyond what there was before")
}

// heapGauge looks at the heap every 2 MiB that are written to it.
type heapGauge struct {
	written int
	most    uint64
}

func (g *heapGauge) Write(p []byte) (int, error) {
	if before := g.written; (before+len(p))>>21 != before>>21 {
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		g.most = max(g.most, now.HeapAlloc)
	}
	g.written += len(p)
	return len(p), nil
}

// pattern is an endless body.
type pattern struct{}

var patternBlock = bytes.Repeat([]byte("0123456789abcdef"), 4096)

func (pattern) Read(p []byte) (int, error) { return copy(p, patternBlock), nil }

// echo answers with the whole of the request's body.
func echo(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(b)
}

func TestWebSocketIsHeldAndKeepsItsLeaseUntilTheTunnelEnds(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.coldStart(upstream(t, func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		for {
			kind, message, err := conn.Read(r.Context())
			if err != nil {
				return
			}
			_ = conn.Write(r.Context(), kind, append([]byte("echo "), message...))
		}
	}), 0, 0)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, res, err := websocket.Dial(ctx, "ws://"+rig.addr+"/ws", &websocket.DialOptions{Host: "wiki.test",
		HTTPHeader: http.Header{"X-Request-Id": {"ws"}}})
	require.NoError(t, err)
	assert.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	for _, word := range []string{"one", strings.Repeat("long", 5000)} {
		require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(word)))
		_, message, err := conn.Read(ctx)
		require.NoError(t, err)
		assert.Equal(t, "echo "+word, string(message))
	}
	rig.inFlight("wiki", 1)
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
	rig.inFlight("wiki", 0)
	e := rig.entryOf("ws")
	assert.Equal(t, http.StatusSwitchingProtocols, e.Status)
	assert.Equal(t, "held", e.Outcome)
}
