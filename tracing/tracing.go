// Package tracing is what the router and the scaler know of distributed
// tracing: the W3C trace context, a span, and a Tracer that takes spans once
// they have ended. It knows no format and no network; package otlp below it
// sends what it takes to a collector.
//
// A span is told of when it is over, with the times that were measured anyhow.
// Only its name, in a traceparent, has to be there before.
package tracing

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"time"
)

// A Tracer takes the spans of the traces that are kept. A nil one is tracing
// turned off. Implementations are safe for concurrent use and never block.
type Tracer interface {
	// Samples decides whether a trace that begins here is kept. The answer is
	// the same for the same trace, whoever is asked.
	Samples(TraceID) bool
	// Record takes a span that has ended, and keeps nothing of what s points
	// to. What there is no room for is dropped and counted.
	Record(s *Span)
}

// A TraceID names a trace; all zero is none.
type TraceID [16]byte

// A SpanID names a span within its trace; all zero is none.
type SpanID [8]byte

// A Context is the place in a trace that something belongs to.
type Context struct {
	Trace   TraceID
	Span    SpanID
	Sampled bool // its spans are kept
}

// traceparentSize is the length of a traceparent of version 00.
const traceparentSize = 55

// Parse reads a traceparent; false where it is not Valid.
func Parse(traceparent string) (c Context, ok bool) {
	if !Valid(traceparent) {
		return Context{}, false
	}
	_, _ = hex.Decode(c.Trace[:], []byte(traceparent[3:35])) // it is hex
	_, _ = hex.Decode(c.Span[:], []byte(traceparent[36:52]))
	c.Sampled = Sampled(traceparent)
	return c, true
}

// String is c as a traceparent of version 00.
func (c Context) String() string {
	flags := "-00"
	if c.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(c.Trace[:]) + "-" + hex.EncodeToString(c.Span[:]) + flags
}

// Valid reports version-traceid-parentid-flags, lower-case hex, no part all
// zero. A later version than 00 may go on after the flags.
func Valid(traceparent string) bool {
	s := traceparent
	if len(s) < traceparentSize || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version := s[:2]
	if version == "ff" || (version == "00" && len(s) != traceparentSize) || (len(s) > traceparentSize && s[traceparentSize] != '-') {
		return false
	}
	return lowerHex(version) && lowerHex(s[53:55]) && nonZeroHex(s[3:35]) && nonZeroHex(s[36:52])
}

// Sampled reports that whoever wrote a valid traceparent keeps its spans.
func Sampled(traceparent string) bool {
	c := traceparent[54] // the last bit of the flags
	return '0' <= c && c <= '9' && c&1 == 1 || 'a' <= c && c <= 'f' && c&1 == 0
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func nonZeroHex(s string) bool { return lowerHex(s) && strings.Trim(s, "0") != "" }

// Kind says which end of a call a span is.
type Kind uint8

const (
	Internal Kind = iota // of none
	Server
	Client
)

// A Span is one piece of work that is over.
type Span struct {
	Trace  TraceID
	ID     SpanID
	Parent SpanID // zero: the trace begins with it
	Name   string // one of few: it is what spans are grouped by
	Kind   Kind
	// Start and End are the wall clock's.
	Start, End time.Time
	// Failed says that it came to nothing, and Reason why; it may be empty.
	Failed     bool
	Reason     string
	Attributes []Attribute
	Links      []Context // into other traces
}

// An Attribute is a fact about a span: make one by Text, Number or Flag. An
// empty text is none.
type Attribute struct {
	Key    string
	Type   Type
	Text   string
	Number int64 // a flag's is 0 or 1
}

// Type says what an attribute holds.
type Type uint8

const (
	TypeText Type = iota
	TypeNumber
	TypeFlag
)

// Text is an attribute.
func Text(key, value string) Attribute { return Attribute{Key: key, Text: value} }

// Number is an attribute.
func Number(key string, value int64) Attribute {
	return Attribute{Key: key, Type: TypeNumber, Number: value}
}

// Flag is an attribute.
func Flag(key string, value bool) Attribute {
	a := Attribute{Key: key, Type: TypeFlag}
	if value {
		a.Number = 1
	}
	return a
}

// NewSpanID gives one that is new. It is no secret.
func NewSpanID() (id SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) // never zero
	return id
}
