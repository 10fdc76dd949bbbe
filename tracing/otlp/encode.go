package otlp

import (
	"bytes"
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

// encode makes the message of a span, which shares no memory with it. It is
// made in few pieces: a span is told of on the goroutine of a request.
func encode(s *tracing.Span) *tracepb.Span {
	ids := append(append(append(make([]byte, 0, 32), s.Trace[:]...), s.ID[:]...), s.Parent[:]...)
	p := &tracepb.Span{
		TraceId: ids[:16:16], SpanId: ids[16:24:24], Flags: 1,
		Name: text(s.Name), Kind: kinds[s.Kind],
		StartTimeUnixNano: uint64(max(0, s.Start.UnixNano())), EndTimeUnixNano: uint64(max(0, s.End.UnixNano())),
		Attributes: encodeAttributes(s.Attributes),
	}
	if s.Parent != (tracing.SpanID{}) {
		p.ParentSpanId = ids[24:]
	}
	if s.Failed {
		p.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: text(s.Reason)}
	}
	for _, l := range s.Links {
		p.Links = append(p.Links, &tracepb.Span_Link{TraceId: bytes.Clone(l.Trace[:]), SpanId: bytes.Clone(l.Span[:])})
	}
	return p
}

// An encoded is an attribute as a message, in one piece of memory.
type encoded struct {
	pair   commonpb.KeyValue
	value  commonpb.AnyValue
	text   commonpb.AnyValue_StringValue
	number commonpb.AnyValue_IntValue
	flag   commonpb.AnyValue_BoolValue
}

func encodeAttributes(attributes []tracing.Attribute) []*commonpb.KeyValue {
	room, pairs := make([]encoded, len(attributes)), make([]*commonpb.KeyValue, 0, len(attributes))
	for i := range attributes {
		a, e := &attributes[i], &room[i]
		if a.Type == tracing.TypeText && a.Text == "" {
			continue // it is not known
		}
		switch a.Type {
		case tracing.TypeText:
			e.text.StringValue = text(a.Text)
			e.value.Value = &e.text
		case tracing.TypeNumber:
			e.number.IntValue = a.Number
			e.value.Value = &e.number
		case tracing.TypeFlag:
			e.flag.BoolValue = a.Number == 1
			e.value.Value = &e.flag
		}
		e.pair.Key, e.pair.Value = a.Key, &e.value
		pairs = append(pairs, &e.pair)
	}
	return pairs
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
