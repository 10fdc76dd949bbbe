package router_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/tracing/otlp"
	"github.com/rouse-dev/rouse/tracing/otlp/otlptest"
	"github.com/rouse-dev/rouse/workload"
)

// exporter sends to the collector until the test ends.
func exporter(t testing.TB, c *otlptest.Collector, sample float64) *otlp.Exporter {
	t.Helper()
	e, err := otlp.New(t.Context(), otlp.Config{Endpoint: c.URL(), Sample: sample})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return e
}

// tracedRig is a rig whose spans come to a collector.
func tracedRig(t *testing.T, sample float64, change ...func(*workload.Workload)) (*rig, *otlptest.Collector) {
	t.Helper()
	c := otlptest.Start(t)
	return newRig(t, rigConfig{router: router.Config{Tracer: exporter(t, c, sample)}}, wiki(change...)), c
}

// requests are those spans that requests have.
func requests(spans []otlptest.Span) (found []otlptest.Span) {
	for _, s := range spans {
		if s.Kind == "server" {
			found = append(found, s)
		}
	}
	return found
}

// awaitRequests waits until so many requests have ended, and gives all spans:
// a request's own is the last of them.
func awaitRequests(c *otlptest.Collector, n int) []otlptest.Span {
	return c.Await(fmt.Sprintf("%d requests", n), func(s []otlptest.Span) bool { return len(requests(s)) >= n })
}

// below is the one span of that name and kind under a parent.
func below(t *testing.T, spans []otlptest.Span, parent otlptest.Span, kind string) otlptest.Span {
	t.Helper()
	var found []otlptest.Span
	for _, s := range spans {
		if s.Parent == parent.ID && s.Kind == kind {
			found = append(found, s)
		}
	}
	require.Len(t, found, 1, "%s spans below %s %s of %+v", kind, parent.Name, parent.ID, spans)
	return found[0]
}

const (
	clientTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan  = "00f067aa0ba902b7"
)

// tellTrace answers with the trace context that the workload got.
func tellTrace(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, strings.Join(r.Header["Traceparent"], ",")+" "+strings.Join(r.Header["Tracestate"], ","))
}

// The plain one is served leanly, where that is on; one in chunks never is.
func TestColdAndWarmRequestsHaveTheirSpans(t *testing.T) {
	for name, send := range map[string]func(*rig, ...string) *http.Response{
		"plain": func(r *rig, header ...string) *http.Response { return r.get("wiki.test", "/a/b?secret=1", header...) },
		"chunked": func(r *rig, header ...string) *http.Response {
			return r.do(http.MethodGet, "wiki.test", "/a/b?secret=1", io.MultiReader(strings.NewReader("body")), header...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := tracedRig(t, 0) // the client's is kept all the same
			addr := upstream(t, tellTrace)
			rig.coldStart(addr, 20*time.Millisecond, 10*time.Millisecond)
			header := []string{"Traceparent", "00-" + clientTrace + "-" + clientSpan + "-01", "Tracestate", "v=1", "User-Agent", "probe/1", "X-Request-ID", "cold"}
			seen := body(t, send(rig, header...))

			spans := awaitRequests(c, 1)
			require.Len(t, spans, 3)
			request := requests(spans)[0]
			hold, call := below(t, spans, request, "internal"), below(t, spans, request, "client")
			for _, s := range spans {
				assert.Equal(t, clientTrace, s.Trace)
				assert.False(t, s.Failed)
				assert.False(t, s.End.Before(s.Start))
			}
			assert.Equal(t, clientSpan, request.Parent)
			assert.Equal(t, "00-"+clientTrace+"-"+call.ID+"-01 v=1", seen, "the workload's parent is the call")
			rig.woken()
			assert.Equal(t, "00-"+clientTrace+"-"+request.ID+"-01", rig.wakes[0].Traceparent, "the cold start's parent is the request")
			assert.Equal(t, "GET wiki", request.Name)
			assert.Equal(t, "hold", hold.Name)
			assert.Equal(t, "GET wiki", call.Name)
			assert.Empty(t, hold.Links, "it is in the same trace")
			assert.GreaterOrEqual(t, hold.End.Sub(hold.Start), 30*time.Millisecond)
			host, port, err := net.SplitHostPort(addr)
			require.NoError(t, err)
			for key, want := range map[string]any{
				"faas.coldstart": true, "http.request.method": "GET", "http.response.status_code": int64(200), "url.path": "/a/b", "url.scheme": "http",
				"server.address": "wiki.test", "client.address": "127.0.0.1", "user_agent.original": "probe/1", "network.protocol.version": "1.1",
				"rouse.workload": "wiki", "rouse.outcome": "held", "rouse.request_id": "cold",
			} {
				assert.Equal(t, want, request.Attributes[key], key)
			}
			assert.Equal(t, "http://"+addr+"/a/b", call.Attributes["url.full"])
			assert.Equal(t, host, call.Attributes["server.address"])
			assert.Equal(t, port, fmt.Sprint(call.Attributes["server.port"]))
			assert.Equal(t, "wiki-1-0", call.Attributes["rouse.replica"])

			seen = body(t, send(rig, header...))
			spans = awaitRequests(c, 2)[3:]
			require.Len(t, spans, 2, "nothing was held")
			request = requests(spans)[0]
			assert.Equal(t, "00-"+clientTrace+"-"+below(t, spans, request, "client").ID+"-01 v=1", seen)
			assert.Equal(t, false, request.Attributes["faas.coldstart"])
			assert.Equal(t, "warm", request.Attributes["rouse.outcome"])
		})
	}
}

func TestARequestBeginsATraceWhenItBringsNone(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, upstream(t, tellTrace))
	seen := body(t, rig.get("wiki.test", "/", "Traceparent", "nonsense", "Tracestate", "v=1", "X-Request-ID", "r"))
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.Empty(t, request.Parent)
	assert.Equal(t, "00-"+request.Trace+"-"+below(t, spans, request, "client").ID+"-01 ", seen)
	assert.Equal(t, request.Trace, rig.entryOf("r").TraceID)
}

// A later version of the header may say more than is known here.
func TestARequestOfALaterVersionIsPassedOnAsOneOfThis(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, upstream(t, tellTrace))
	seen := body(t, rig.get("wiki.test", "/", "Traceparent", "cc-"+clientTrace+"-"+clientSpan+"-03-what-else"))
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.Equal(t, clientSpan, request.Parent)
	assert.Equal(t, "00-"+clientTrace+"-"+below(t, spans, request, "client").ID+"-03 ", seen)
}

// The flag says 00: nobody keeps the trace, neither here nor behind.
func TestARequestThatIsNotKeptHasNoSpans(t *testing.T) {
	rig, c := tracedRig(t, 0)
	rig.coldStart(upstream(t, tellTrace), 0, 0)
	const left = "00-" + clientTrace + "-" + clientSpan + "-00"
	assert.Equal(t, left+" v=1", body(t, rig.get("wiki.test", "/", "Traceparent", left, "Tracestate", "v=1")))
	rig.woken()
	assert.Equal(t, left, rig.wakes[0].Traceparent)
	assert.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00 $", body(t, rig.get("wiki.test", "/")), "one that begins here and is not kept")
	body(t, rig.get("wiki.test", "/", "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01"))
	assert.Len(t, requests(awaitRequests(c, 1)), 1, "the last one alone")
}

func TestARequestThatJoinsAColdStartPointsToIt(t *testing.T) {
	rig, c := tracedRig(t, 1)
	first := rig.start(http.MethodGet, "wiki.test", "/1", nil, "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	rig.woken()
	second := rig.start(http.MethodGet, "wiki.test", "/2", nil)
	rig.queued("wiki", 2)
	wake := rig.wakes[0]
	wake.Generation, wake.ReceivedAt = 1, time.Now()
	rig.observe(workload.State{Workload: "wiki", Phase: workload.Ready, Generation: 1, Wake: &wake,
		Replicas: []workload.Replica{{ID: "r", Address: upstream(t, tellTrace)}}})
	body(t, <-first)
	body(t, <-second)
	var joined otlptest.Span
	spans := awaitRequests(c, 2)
	for _, s := range requests(spans) {
		if s.Attributes["url.path"] == "/2" {
			joined = s
		}
	}
	assert.NotEqual(t, clientTrace, joined.Trace)
	start := tracing.ColdStart(nil, &wake)
	assert.Equal(t, []string{start.String()[36:52]}, below(t, spans, joined, "internal").Links)
}

func TestARequestThatFailsSaysSoInItsSpans(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, nowhere(t))
	rig.whenWoken(func(w workload.Wake) {
		rig.observe(workload.State{Workload: "wiki", Phase: workload.Failed, Generation: 2, RetryAt: time.Now().Add(time.Hour),
			Reason: workload.Reason{Code: workload.ReasonExited, ExitCode: 3}})
	})
	res := rig.get("wiki.test", "/")
	body(t, res)
	require.Equal(t, http.StatusBadGateway, res.StatusCode)
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.True(t, request.Failed)
	assert.Equal(t, "error", request.Attributes["rouse.outcome"])
	call := below(t, spans, request, "client")
	assert.True(t, call.Failed)
	assert.Contains(t, call.Reason, "refused")
	hold := below(t, spans, request, "internal")
	assert.True(t, hold.Failed)
	assert.NotEmpty(t, hold.Reason)
}

// Each try is a span of its own.
func TestARequestThatIsSentAgainHasASpanForEachTry(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, nowhere(t))
	addr := upstream(t, tellTrace)
	rig.whenWoken(func(workload.Wake) { rig.ready("wiki", 2, addr) })
	seen := body(t, rig.get("wiki.test", "/"))
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	var calls []otlptest.Span
	for _, s := range spans {
		if s.Parent == request.ID && s.Kind == "client" {
			calls = append(calls, s)
		}
	}
	require.Len(t, calls, 2)
	assert.True(t, calls[0].Failed)
	assert.Equal(t, "wiki-1-0", calls[0].Attributes["rouse.replica"])
	assert.False(t, calls[1].Failed)
	assert.Equal(t, "wiki-2-0", calls[1].Attributes["rouse.replica"])
	assert.Contains(t, seen, calls[1].ID)
}

func TestARequestThatNobodyServesIsTracedToo(t *testing.T) {
	rig, c := tracedRig(t, 1)
	body(t, rig.do("BREW", "nobody.test", "/", nil, "User-Agent", ""))
	spans := awaitRequests(c, 1)
	require.Len(t, spans, 1)
	assert.Equal(t, "_OTHER", spans[0].Name)
	assert.Equal(t, "BREW", spans[0].Attributes["http.request.method_original"])
	assert.Equal(t, int64(http.StatusNotFound), spans[0].Attributes["http.response.status_code"])
	assert.NotContains(t, spans[0].Attributes, "rouse.workload")
	assert.False(t, spans[0].Failed, "it is the client's mistake")
}

// A tunnel's spans last as long as it does.
func TestARequestThatBecomesATunnelIsTracedToItsEnd(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(conn, conn)
	}))
	conn, err := net.Dial("tcp", rig.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	require.NoError(t, err)
	rig.inFlight("wiki", 1)
	_, _ = io.WriteString(conn, "hello")
	time.Sleep(50 * time.Millisecond) // a time that is to be seen in the spans
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, _ = io.Copy(io.Discard, conn)
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.Equal(t, int64(http.StatusSwitchingProtocols), request.Attributes["http.response.status_code"])
	call := below(t, spans, request, "client")
	assert.GreaterOrEqual(t, call.End.Sub(call.Start), 50*time.Millisecond)
	assert.False(t, call.Failed)
}

func TestARequestWhoseAnswerBreaksOffHasFailed(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "ten bytes.")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	res, err := client.Do(rig.request(t.Context(), http.MethodGet, "wiki.test", "/", nil))
	if err == nil { // net/http may end the connection before it has sent the head
		_, err = io.ReadAll(res.Body)
		_ = res.Body.Close()
	}
	require.Error(t, err)
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.True(t, request.Failed)
	assert.Equal(t, int64(http.StatusOK), request.Attributes["http.response.status_code"])
	assert.True(t, below(t, spans, request, "client").Failed)
}

func TestARequestOverHTTP2IsTraced(t *testing.T) {
	rig, c := tracedRig(t, 1)
	rig.ready("wiki", 1, upstream(t, tellTrace))
	transport := h2c()
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(rig.request(t.Context(), http.MethodGet, "wiki.test", "/", nil, "Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01"))
	require.NoError(t, err)
	seen := body(t, res)
	spans := awaitRequests(c, 1)
	request := requests(spans)[0]
	assert.Equal(t, "2", request.Attributes["network.protocol.version"])
	assert.Equal(t, clientSpan, request.Parent)
	assert.Contains(t, seen, below(t, spans, request, "client").ID)
}
