package otlp

import (
	"strings"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/rouse-dev/rouse/tracing"
)

// scope says who made the spans.
var scope = &commonpb.InstrumentationScope{Name: "github.com/rouse-dev/rouse"}

var kinds = [...]tracepb.Span_SpanKind{
	tracing.Internal: tracepb.Span_SPAN_KIND_INTERNAL,
	tracing.Server:   tracepb.Span_SPAN_KIND_SERVER,
	tracing.Client:   tracepb.Span_SPAN_KIND_CLIENT,
}

// encode makes the message of a span, which shares no memory with it.
func encode(s *tracing.Span) *tracepb.Span {
	p := &tracepb.Span{
		TraceId: append([]byte(nil), s.Trace[:]...), SpanId: append([]byte(nil), s.ID[:]...), Flags: 1,
		Name: text(s.Name), Kind: kinds[s.Kind],
		StartTimeUnixNano: uint64(max(0, s.Start.UnixNano())), EndTimeUnixNano: uint64(max(0, s.End.UnixNano())),
		Attributes: make([]*commonpb.KeyValue, 0, len(s.Attributes)),
	}
	if s.Parent != (tracing.SpanID{}) {
		p.ParentSpanId = append([]byte(nil), s.Parent[:]...)
	}
	if s.Failed {
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: text(s.Reason)}
	}
	for _, a := range s.Attributes {
		p.Attributes = append(p.Attributes, keyValue(a))
	}
	for _, l := range s.Links {
		p.Links = append(p.Links, &tracepb.Span_Link{
			TraceId: append([]byte(nil), l.Trace[:]...), SpanId: append([]byte(nil), l.Span[:]...),
		})
	}
	return p
}

func keyValue(a tracing.Attribute) *commonpb.KeyValue {
	v := &commonpb.AnyValue{}
	switch value := a.Value.(type) {
	case string:
		v.Value = &commonpb.AnyValue_StringValue{StringValue: text(value)}
	case int64:
		v.Value = &commonpb.AnyValue_IntValue{IntValue: value}
	case bool:
		v.Value = &commonpb.AnyValue_BoolValue{BoolValue: value}
	}
	return &commonpb.KeyValue{Key: a.Key, Value: v}
}

// maxText is what is kept of a text.
const maxText = 1 << 10

// text is a copy that a message may hold: one byte that is no UTF-8, in a path
// for instance, would cost the whole batch.
func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if utf8.ValidString(s) {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
