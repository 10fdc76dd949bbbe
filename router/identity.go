package router

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"unsafe"
)

// An identity names a request in logs and to its workload. It is no secret.
type identity struct {
	requestID   string
	traceparent string
	traceJoined bool // the client's own trace
}

const (
	requestIDSize   = 32
	traceparentSize = 55
)

// madeIDs is room for the two that Rouse makes.
type madeIDs [requestIDSize + traceparentSize]byte

// clone gives one that shares no memory.
func (id identity) clone() identity {
	id.requestID, id.traceparent = strings.Clone(id.requestID), strings.Clone(id.traceparent)
	return id
}

// identify joins the request ID and the W3C trace context that the client
// sent, or makes them. A trace context is joined as it is: Rouse makes no
// span of its own that a child could point to. One that is made is sampled,
// as a workload without a gateway would have begun it.
// room is where they are made; nil makes it.
func identify(h http.Header, room *madeIDs) identity {
	id := identity{requestID: sentRequestID(h), traceparent: sentTraceparent(h)}
	id.traceJoined = id.traceparent != ""
	if id.requestID != "" && id.traceJoined {
		return id
	}
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
	text := unsafe.String(unsafe.SliceData(made), len(made)) // nobody else has the room
	if id.requestID == "" {
		id.requestID = text[:requestIDSize]
	}
	if !id.traceJoined {
		id.traceparent = text[requestIDSize:]
	}
	return id
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
	if sent := h["Traceparent"]; len(sent) == 1 && validTraceparent(sent[0]) {
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

// validTraceparent reports version-traceid-parentid-flags, lower-case hex, no
// part all zero. A later version than 00 may go on after the flags.
func validTraceparent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version := s[:2]
	if version == "ff" || (version == "00" && len(s) != 55) || (len(s) > 55 && s[55] != '-') {
		return false
	}
	return lowerHex(version) && lowerHex(s[53:55]) && nonZeroHex(s[3:35]) && nonZeroHex(s[36:52])
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func nonZeroHex(s string) bool { return lowerHex(s) && strings.Trim(s, "0") != "" }

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
