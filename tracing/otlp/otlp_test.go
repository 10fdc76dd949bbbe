package otlp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/tracing/otlp"
	"github.com/rouse-dev/rouse/tracing/otlp/otlptest"
)

// A rig is an exporter at work.
type rig struct {
	t *testing.T
	*otlp.Exporter
	reg  *prometheus.Registry
	log  *safeBuffer
	stop func()
}

func start(t *testing.T, endpoint string) *rig {
	t.Helper()
	r := &rig{t: t, reg: prometheus.NewRegistry(), log: &safeBuffer{}}
	e, err := otlp.New(t.Context(), otlp.Config{Endpoint: endpoint, Sample: 1, Instance: "gw", Version: "1.2.3",
		Logger: slog.New(slog.NewTextHandler(r.log, nil)), Registerer: r.reg})
	require.NoError(t, err)
	r.Exporter = e
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	r.stop = sync.OnceFunc(func() { cancel(); require.NoError(t, <-ended) })
	t.Cleanup(r.stop)
	return r
}

type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// counts gives rouse_trace_spans_total by result.
func (r *rig) counts() map[string]float64 {
	r.t.Helper()
	families, err := r.reg.Gather()
	require.NoError(r.t, err)
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
	}
	return counts
}

func span(name string) *tracing.Span {
	at := time.Unix(1, 5)
	return &tracing.Span{
		Trace: tracing.TraceID{1}, ID: tracing.NewSpanID(), Parent: tracing.SpanID{9}, Name: name, Kind: tracing.Client, Start: at, End: at.Add(time.Second),
		Failed: true, Reason: "why", Links: []tracing.Context{{Trace: tracing.TraceID{7}, Span: tracing.SpanID{8}}},
		Attributes: []tracing.Attribute{tracing.Text("text", "a"), tracing.Number("number", 3), tracing.Flag("flag", true)},
	}
}

func TestASpanArrivesWhole(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "front")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	c := otlptest.Start(t)
	r := start(t, c.URL())
	sent := span("GET wiki")
	r.Record(sent)
	got := c.Await("the span", func(s []otlptest.Span) bool { return len(s) == 1 })[0]
	assert.Equal(t, otlptest.Span{
		Trace: "01" + strings.Repeat("0", 30), ID: tracing.Context{Span: sent.ID}.String()[36:52], Parent: "0900000000000000",
		Name: "GET wiki", Kind: "client", Start: sent.Start, End: sent.End, Failed: true, Reason: "why",
		Attributes: map[string]any{"text": "a", "number": int64(3), "flag": true}, Links: []string{"0800000000000000"},
		Resource: map[string]any{"service.name": "front", "service.version": "1.2.3", "service.instance.id": "gw", "deployment.environment": "test"},
	}, got)
	paths, headers := c.Calls()
	assert.Equal(t, []string{"/v1/traces"}, paths)
	assert.Equal(t, "secret", headers[0].Get("Api-Key"))
	require.Eventually(t, func() bool { return r.counts()["sent"] == 1 }, time.Minute, time.Millisecond)
}

// One that is no UTF-8 would be refused with all that are sent along.
func TestNoTextCanSpoilABatch(t *testing.T) {
	c := otlptest.Start(t)
	r := start(t, c.URL()+"/v1/traces")
	s := span("bad")
	s.Attributes = []tracing.Attribute{tracing.Text("path", "/\xff\xfe"), tracing.Text("long", strings.Repeat("ä", 4000))}
	r.Record(s)
	r.Record(span("good"))
	r.stop()
	spans := c.Spans()
	require.Len(t, spans, 2)
	assert.Equal(t, "/\uFFFD", spans[0].Attributes["path"])
	assert.LessOrEqual(t, len(spans[0].Attributes["long"].(string)), 1<<10+2)
}

func TestWhatIsLeftIsSentAtTheStop(t *testing.T) {
	c := otlptest.Start(t)
	r := start(t, c.URL())
	for range 2000 {
		r.Record(span("one"))
	}
	r.stop()
	assert.Len(t, c.Spans(), 2000)
	assert.EqualValues(t, 2000, r.counts()["sent"])
}

// A span may be made of memory that is used again for the next request.
func TestNothingOfASpanIsKept(t *testing.T) {
	c := otlptest.Start(t)
	r := start(t, c.URL())
	s := span("first")
	r.Record(s)
	s.Name, s.ID, s.Attributes[0].Text = "second", tracing.SpanID{5}, "b"
	r.stop()
	require.Len(t, c.Spans(), 1)
	assert.Equal(t, "first", c.Spans()[0].Name)
	assert.Equal(t, "a", c.Spans()[0].Attributes["text"])
}

// deaf takes connections and never answers.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return "http://" + l.Addr().String()
}

// Whoever records waits for nobody, what there is no room for is counted, and
// so is what was left at the stop, which the collector cannot hold up.
func TestACollectorThatNeverAnswersHoldsNobodyUp(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000") // no call ends by itself
	r := start(t, deaf(t))
	const spans = 20_000
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		for range spans {
			r.Record(span("one"))
		}
	}()
	select {
	case <-recorded:
	case <-time.After(time.Minute):
		t.Fatal("a span waited for the collector")
	}
	assert.Positive(t, r.counts()["full"])
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Fatal("the stop waited for the collector")
	}
	counts := r.counts()
	assert.EqualValues(t, spans, counts["full"]+counts["failed"])
	assert.Zero(t, counts["sent"])
}

func TestACollectorThatRefusesIsToldOfOnceAndTriedAgain(t *testing.T) {
	c := otlptest.Start(t)
	c.Answer(http.StatusForbidden)
	r := start(t, c.URL())
	for i := range 2 {
		r.Record(span("lost"))
		require.Eventually(t, func() bool { return r.counts()["failed"] == float64(i+1) }, time.Minute, time.Millisecond)
	}
	assert.Equal(t, 1, strings.Count(r.log.String(), "does not take traces"), r.log)
	assert.Contains(t, r.log.String(), "403")
	c.Answer(http.StatusOK)
	r.Record(span("there"))
	c.Await("the span", func(s []otlptest.Span) bool { return len(s) == 1 && s[0].Name == "there" })
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "takes traces again") }, time.Minute, time.Millisecond)
	assert.Contains(t, r.log.String(), "spans_lost=2")
}

func TestNothingListensAndTheStopIsImmediate(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	r := start(t, "http://"+l.Addr().String())
	r.Record(span("lost"))
	require.Eventually(t, func() bool { return r.counts()["failed"] == 1 }, time.Minute, time.Millisecond)
	r.Record(span("lost"))
	r.stop()
	assert.EqualValues(t, 2, r.counts()["failed"])
}

func TestTheEnvironmentNamesTheCollector(t *testing.T) {
	c := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL()+"/base")
	r := start(t, otlp.FromEnvironment)
	r.Record(span("one"))
	r.stop()
	paths, _ := c.Calls()
	assert.Equal(t, []string{"/base/v1/traces"}, paths)

	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL()+"/as/it/is")
	r = start(t, otlp.FromEnvironment)
	r.Record(span("two"))
	r.stop()
	paths, _ = c.Calls()
	assert.Equal(t, "/as/it/is", paths[1])
}

func TestAWrongSettingIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		endpoint string
		env      map[string]string
		want     string
	}{
		"no url":       {endpoint: "collector:4318", want: `"collector:4318" is not the URL of a collector (write http://host:4318)`},
		"nothing set":  {endpoint: "env", want: "neither OTEL_EXPORTER_OTLP_ENDPOINT nor OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set"},
		"no url there": {endpoint: "env", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, want: "OTEL_EXPORTER_OTLP_ENDPOINT is not the URL of a collector"},
		"grpc": {endpoint: "env", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
			want: "OTEL_EXPORTER_OTLP_PROTOCOL is grpc"},
		"resource": {endpoint: "http://c:4318", env: map[string]string{"OTEL_RESOURCE_ATTRIBUTES": "nonsense"}, want: "OTEL_RESOURCE_ATTRIBUTES"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, err := otlp.New(t.Context(), otlp.Config{Endpoint: c.endpoint})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestAsManyTracesAreKeptAsAreWanted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, part := range []float64{0, 0.1, 0.5, 1} {
		e, err := otlp.New(t.Context(), otlp.Config{Endpoint: "http://c:4318", Sample: part})
		require.NoError(t, err)
		const traces = 20_000
		kept := 0
		for range traces {
			var id tracing.TraceID
			binary.BigEndian.PutUint64(id[8:], random.Uint64())
			if e.Samples(id) {
				kept++
				require.True(t, e.Samples(id))
			}
		}
		assert.InDelta(t, part, float64(kept)/traces, 0.02)
	}
}

func BenchmarkRecord(b *testing.B) {
	c := otlptest.Start(b)
	e, err := otlp.New(b.Context(), otlp.Config{Endpoint: c.URL(), Sample: 1})
	require.NoError(b, err)
	s := span("GET wiki")
	for i := range 12 {
		s.Attributes = append(s.Attributes, tracing.Text("key", strings.Repeat("v", i)))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%4000 == 0 { // makes room, unmeasured
			b.StopTimer()
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			require.NoError(b, e.Run(ctx))
			b.StartTimer()
		}
		e.Record(s)
	}
}
