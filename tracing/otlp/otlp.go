// Package otlp sends the spans of package tracing to a collector, by OTLP over
// HTTP. It is the one place that knows OpenTelemetry.
//
// Nobody waits for the collector: spans wait in a bounded queue, what finds no
// room there and what the collector does not take is dropped and counted.
//
// What the configuration leaves open is taken from the variables that every
// OpenTelemetry exporter reads: OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT,
// _COMPRESSION, _CERTIFICATE, _CLIENT_CERTIFICATE and _CLIENT_KEY, each also
// with TRACES_ behind OTLP_, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
package otlp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/rouse-dev/rouse/tracing"
)

const (
	// queueSize bounds the spans that wait, of a few KiB at most each.
	queueSize = 4096
	// batchSize bounds those of one call, and batchPause how long the first of
	// them waits for others.
	batchSize  = 512
	batchPause = time.Second
	// stopGrace is how long the last spans may take once everything else has
	// ended: none of it where the collector did not answer before.
	stopGrace = time.Second
)

// FromEnvironment as an endpoint takes that of OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
const FromEnvironment = "env"

// Config says where spans go, and which.
type Config struct {
	// Endpoint is the collector's URL, to which /v1/traces is added unless it
	// ends so, or FromEnvironment.
	Endpoint string
	// Sample is the part of the traces that begin here which is kept, from 0
	// to 1. Those that began elsewhere are kept if they are there.
	Sample float64
	// Instance and Version are this process's.
	Instance, Version string
	// Logger is told once when the collector stops taking spans, and once when
	// it does again; nil discards.
	Logger *slog.Logger
	// Registerer gets the metrics; nil registers nowhere.
	Registerer prometheus.Registerer
}

// An Exporter is a tracing.Tracer. It is safe for concurrent use.
type Exporter struct {
	client   otlptrace.Client
	resource *resourcepb.Resource
	reject   uint64 // the traces whose random part is below are not kept
	queue    chan *tracepb.Span
	log      *slog.Logger

	sent, full, failed prometheus.Counter

	sending atomic.Int64 // since when a call is under way, in ns of the wall clock; 0: none is
	failing atomic.Bool  // the last call was in vain
	lost    int          // spans, since then; of Run's goroutine alone
}

// New makes an exporter; nothing is sent before Run. The error says what is
// wrong with the configuration or the environment.
func New(ctx context.Context, cfg Config) (*Exporter, error) {
	options, err := endpointOptions(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	about, err := resourceOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	e := &Exporter{
		client: otlptracehttp.NewClient(append(options, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: 15 * time.Second,
		}))...),
		resource: about, reject: threshold(cfg.Sample), queue: make(chan *tracepb.Span, queueSize), log: cfg.Logger,
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.client.Start(ctx); err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	return e, e.count(cfg.Registerer)
}

// endpointOptions says where to send; the client reads the environment itself.
func endpointOptions(endpoint string) ([]otlptracehttp.Option, error) {
	if endpoint == FromEnvironment {
		return nil, checkEnvironment()
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the URL of a collector (write http://host:4318)", endpoint)
	}
	if !strings.HasSuffix(u.Path, "/v1/traces") {
		u = u.JoinPath("v1", "traces")
	}
	return []otlptracehttp.Option{otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithEncoding(otlptracehttp.EncodingProtobuf)}, nil
}

// checkEnvironment finds what the client would pass over in silence.
func checkEnvironment() error {
	const general, traces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	name := general
	if os.Getenv(traces) != "" {
		name = traces
	}
	endpoint := os.Getenv(name)
	if endpoint == "" {
		return fmt.Errorf("neither %s nor %s is set (set one, or write the URL in tracing.endpoint)", general, traces)
	}
	if u, err := url.Parse(endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%s is not the URL of a collector (write http://host:4318)", name)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch os.Getenv(name) {
		case "":
			continue
		case "grpc":
			return fmt.Errorf("%s is grpc, and traces go over HTTP alone (set it to http/protobuf and the endpoint to the collector's port for that, mostly 4318)", name)
		}
		break
	}
	return nil
}

// threshold is where the random part of a trace's name begins to be kept.
func threshold(sample float64) uint64 {
	return uint64((1 - min(max(sample, 0), 1)) * randomness)
}

// randomness is how many values that part has: by W3C Trace Context, level 2,
// the last seven bytes of a name are random.
const randomness = 1 << 56

// Samples implements tracing.Tracer.
func (e *Exporter) Samples(t tracing.TraceID) bool {
	return binary.BigEndian.Uint64(t[8:])&(randomness-1) >= e.reject
}

// resourceOf is what all spans of this process have in common.
func resourceOf(ctx context.Context, cfg Config) (*resourcepb.Resource, error) {
	r, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "rouse"), attribute.String("service.version", cfg.Version),
		attribute.String("service.instance.id", cfg.Instance),
	), resource.WithFromEnv()) // which goes before
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w (write key=value,key=value)", err)
	}
	var attributes []tracing.Attribute
	for _, a := range r.Attributes() {
		attributes = append(attributes, tracing.Text(string(a.Key), a.Value.String()))
	}
	return &resourcepb.Resource{Attributes: encodeAttributes(attributes)}, nil
}

func (e *Exporter) count(registerer prometheus.Registerer) error {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rouse_trace_spans_total",
		Help: "Spans by what became of them: sent, or dropped because the queue was full or the collector did not take them.",
	}, []string{"result"})
	e.sent, e.full, e.failed = spans.WithLabelValues("sent"), spans.WithLabelValues("full"), spans.WithLabelValues("failed")
	if registerer == nil {
		return nil
	}
	if err := registerer.Register(spans); err != nil {
		return fmt.Errorf("register metrics of traces: %w", err)
	}
	return nil
}

// Record implements tracing.Tracer.
func (e *Exporter) Record(s *tracing.Span) {
	if len(e.queue) == cap(e.queue) { // spares making what would be dropped
		e.full.Inc()
		return
	}
	select {
	case e.queue <- encode(s):
	default:
		e.full.Inc()
	}
}

// Run sends what is recorded until ctx ends, and then what is left: for a
// second at most, and not at all to a collector that does not answer. It
// returns nil and is called once.
func (e *Exporter) Run(ctx context.Context) error {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(e.grace(time.Now()), cancel)
		context.AfterFunc(out, func() { timer.Stop() })
	})()
	for {
		batch := e.collect(ctx)
		if len(batch) == 0 {
			return nil
		}
		e.send(out, batch)
	}
}

// grace is how long the last calls may take.
func (e *Exporter) grace(now time.Time) time.Duration {
	if e.failing.Load() {
		return 0
	}
	if since := e.sending.Load(); since != 0 {
		return max(0, stopGrace-now.Sub(time.Unix(0, since)))
	}
	return stopGrace
}

// collect waits for a batch; an empty one says that ctx has ended and nothing
// is left.
func (e *Exporter) collect(ctx context.Context) (batch []*tracepb.Span) {
	var pause <-chan time.Time
	for len(batch) < batchSize {
		select {
		case s := <-e.queue:
			if batch = append(batch, s); pause == nil {
				timer := time.NewTimer(batchPause)
				defer timer.Stop()
				pause = timer.C
			}
		case <-pause:
			return batch
		case <-ctx.Done():
			return e.rest(batch)
		}
	}
	return batch
}

// rest fills the batch with what waits.
func (e *Exporter) rest(batch []*tracepb.Span) []*tracepb.Span {
	for len(batch) < batchSize {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

// send makes one call, and blocks for as long as the exporter's timeout and
// repetitions last.
func (e *Exporter) send(ctx context.Context, batch []*tracepb.Span) {
	err := ctx.Err()
	if err == nil {
		e.sending.Store(time.Now().UnixNano())
		err = e.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{
			Resource:   e.resource,
			ScopeSpans: []*tracepb.ScopeSpans{{Scope: scope, Spans: batch}},
		}})
		e.sending.Store(0)
	}
	if err != nil {
		e.inVain(err, len(batch))
		return
	}
	e.sent.Add(float64(len(batch)))
	if e.failing.Swap(false) {
		e.log.Info("the collector takes traces again", "spans_lost", e.lost)
		e.lost = 0
	}
}

func (e *Exporter) inVain(err error, spans int) {
	e.failed.Add(float64(spans))
	e.lost += spans
	if !e.failing.Swap(true) && !errors.Is(err, context.Canceled) {
		e.log.Warn("the collector does not take traces, they are dropped", "error", err)
	}
}
