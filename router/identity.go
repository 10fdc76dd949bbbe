package router

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
	"unsafe"

	"github.com/rouse-dev/rouse/tracing"
)

// An identity names a request in logs and to its workload. It is no secret.
type identity struct {
	requestID   string
	traceparent string // of the request here: its span, where it has one
	passedOn    string // what the workload gets: the span of the call to it
	traceJoined bool   // the client's own trace
	traced      bool   // it has spans here
	parent      string // span of the client's, in hex; empty: none, or no spans here
}

const (
	requestIDSize   = 32
	traceparentSize = 55
)

// madeIDs is room for the two that Rouse makes.
type madeIDs [requestIDSize + traceparentSize]byte

// spanNames is room for the traceparents of the spans of one request.
type spanNames [2 * traceparentSize]byte

// clone gives one that shares no memory.
func (id identity) clone() identity {
	id.requestID, id.traceparent = strings.Clone(id.requestID), strings.Clone(id.traceparent)
	id.parent = strings.Clone(id.parent)
	if id.traced {
		id.passedOn = strings.Clone(id.passedOn)
	} else {
		id.passedOn = id.traceparent
	}
	return id
}

// identify joins the request ID and the W3C trace context that the client
// sent, or makes them. Without a tracer a trace context is joined as it is, for
// there is no span that a child could point to, and one that is made is
// sampled, as a workload without a gateway would have begun it.
// room is where they are made; nil makes it.
func identify(h http.Header, tracer tracing.Tracer, room *madeIDs) identity {
	id := identity{requestID: sentRequestID(h), traceparent: sentTraceparent(h)}
	id.traceJoined = id.traceparent != ""
	if id.requestID == "" || !id.traceJoined {
		id.fill(tracer, room)
	}
	id.passedOn = id.traceparent
	return id
}

// fill makes what the client did not send.
func (id *identity) fill(tracer tracing.Tracer, room *madeIDs) {
	if room == nil {
		room = new(madeIDs)
	}
	made := room[:]
	randomHex(made[:requestIDSize])
	trace := made[requestIDSize:]
	copy(trace, "00-")
	randomHex(trace[3:35])
	trace[35] = '-'
	randomHex(trace[36:52])
	copy(trace[52:], "-01")
	if tracer != nil && !id.traceJoined && !samples(tracer, trace) {
		copy(trace[52:], "-00")
	}
	text := unsafe.String(unsafe.SliceData(made), len(made)) // nobody else has the room
	if id.requestID == "" {
		id.requestID = text[:requestIDSize]
	}
	if !id.traceJoined {
		id.traceparent = text[requestIDSize:]
	}
}

func samples(tracer tracing.Tracer, traceparent []byte) bool {
	var trace tracing.TraceID
	_, _ = hex.Decode(trace[:], traceparent[3:35]) // it is hex
	return tracer.Samples(trace)
}

// nameSpans gives a request of a trace that is kept the names of its spans. room
// is where they are made; nil makes it.
func (id *identity) nameSpans(room *spanNames) {
	if !tracing.Sampled(id.traceparent) {
		return
	}
	if room == nil {
		room = new(spanNames)
	}
	made := room[:]
	for _, name := range [...][]byte{made[:traceparentSize], made[traceparentSize:]} {
		copy(name, id.traceparent)
		copy(name, "00") // a later version is not known here
		randomHex(name[36:52])
	}
	id.traced = true
	if id.traceJoined {
		id.parent = id.traceparent[36:52]
	}
	text := unsafe.String(unsafe.SliceData(made), len(made)) // nobody else has the room
	id.traceparent, id.passedOn = text[:traceparentSize], text[traceparentSize:]
}

// sentRequestID is the client's, if it sent one that is safe to repeat.
func sentRequestID(h http.Header) string {
	if sent := h["X-Request-Id"]; len(sent) == 1 && plainID(sent[0]) {
		return sent[0]
	}
	return ""
}

// sentTraceparent is the client's, if it sent one that is valid.
func sentTraceparent(h http.Header) string {
	if sent := h["Traceparent"]; len(sent) == 1 && tracing.Valid(sent[0]) {
		return sent[0]
	}
	return ""
}

// plainID reports an ID that is safe to repeat in a header, a log line and a
// page: at most 128 letters, digits and harmless signs.
func plainID(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for _, c := range []byte(id) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("-_.:+/=@", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// traceID is the trace's name within a valid traceparent.
func traceID(traceparent string) string { return traceparent[3:35] }

// randomHex fills b, a multiple of 16 bytes long, and never with zeros alone.
func randomHex(b []byte) {
	const digits = "0123456789abcdef"
	for len(b) > 0 {
		bits := rand.Uint64() | 1
		for i := range b[:16] {
			b[i] = digits[bits&15]
			bits >>= 4
		}
		b = b[16:]
	}
}
