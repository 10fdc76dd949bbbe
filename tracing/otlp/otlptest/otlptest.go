// Package otlptest gives tests a collector: an HTTP server that decodes the
// spans which are sent to it by OTLP, and keeps them.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is one that came, its names in hex.
type Span struct {
	Trace, ID, Parent string // Parent is empty where the trace begins
	Name              string
	Kind              string // internal, server or client
	Start, End        time.Time
	Failed            bool
	Reason            string
	Attributes        map[string]any
	Links             []string // the spans linked to
	Resource          map[string]any
}

// A Collector keeps every span that it is sent. It is safe for concurrent use.
type Collector struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	spans    []Span        // guarded by mu
	requests []http.Header // guarded by mu
	paths    []string      // guarded by mu
	status   int           // of answers; 0: 200; guarded by mu
	arrived  chan struct{} // closed with the next call; guarded by mu
}

// Start starts a collector that ends with the test.
func Start(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{t: t, arrived: make(chan struct{})}
	c.server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.server.Close)
	return c
}

// URL is where it listens.
func (c *Collector) URL() string { return c.server.URL }

// Answer has calls answered with a status from now on; what they bring is not
// kept unless it is 200.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Spans gives all that came so far, in order.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Calls gives the path and the header of each call so far.
func (c *Collector) Calls() (paths []string, headers []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.paths), slices.Clone(c.requests)
}

// Await waits until what came is enough, and gives it; the test fails when
// that takes more than a minute.
func (c *Collector) Await(what string, enough func([]Span) bool) []Span {
	c.t.Helper()
	patience := time.After(time.Minute)
	for {
		c.mu.Lock()
		spans, next := slices.Clone(c.spans), c.arrived
		c.mu.Unlock()
		if enough(spans) {
			return spans
		}
		select {
		case <-next:
		case <-patience:
			c.t.Fatalf("waited in vain: %s; there are %+v", what, spans)
		}
	}
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	spans, err := read(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths, c.requests = append(c.paths, r.URL.Path), append(c.requests, r.Header.Clone())
	close(c.arrived)
	c.arrived = make(chan struct{})
	switch {
	case err != nil:
		c.t.Errorf("what came is no OTLP: %v", err)
		w.WriteHeader(http.StatusBadRequest)
	case c.status != 0 && c.status != http.StatusOK:
		w.WriteHeader(c.status)
	default:
		c.spans = append(c.spans, spans...)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}
}

func read(r *http.Request) ([]Span, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	var req collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &req); err != nil {
		return nil, err
	}
	var spans []Span
	for _, of := range req.ResourceSpans {
		resource := attributes(of.Resource.GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				spans = append(spans, span(s, resource))
			}
		}
	}
	return spans, nil
}

var kinds = map[tracepb.Span_SpanKind]string{
	tracepb.Span_SPAN_KIND_INTERNAL: "internal", tracepb.Span_SPAN_KIND_SERVER: "server", tracepb.Span_SPAN_KIND_CLIENT: "client",
}

func span(s *tracepb.Span, resource map[string]any) Span {
	out := Span{
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
		Name: s.Name, Kind: kinds[s.Kind],
		Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
		Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, Reason: s.Status.GetMessage(),
		Attributes: attributes(s.Attributes), Resource: resource,
	}
	for _, l := range s.Links {
		out.Links = append(out.Links, hex.EncodeToString(l.SpanId))
	}
	return out
}

func attributes(kvs []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range kvs {
		switch v := kv.Value.GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.Key] = v.BoolValue
		}
	}
	return out
}
