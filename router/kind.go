package router

import (
	"net/http"
	"strings"
)

// navigation reports a request whose answer a person will look at as a page
// of its own, so that HTML of Rouse's may stand in for it. Browsers say so in
// Sec-Fetch-Mode, but only to https and localhost; to a plain http name of
// the local network they send none, and asking for HTML has to do. A script
// that asks for HTML by XMLHttpRequest says so in X-Requested-With.
func navigation(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false // a form's answer must be the workload's
	}
	h := r.Header
	if !accepts(h, "text/html") || h.Get("Upgrade") != "" || prefetched(h) {
		return false
	}
	if mode := h.Get("Sec-Fetch-Mode"); mode != "" {
		// Dest is "empty" when a service worker makes the request on.
		return mode == "navigate"
	}
	return h.Get("X-Requested-With") == ""
}

// prefetched reports a request that a browser makes on a guess, before
// anybody has asked for its answer.
func prefetched(h http.Header) bool {
	return strings.Contains(h.Get("Sec-Purpose"), "prefetch") ||
		h.Get("Purpose") == "prefetch" || h.Get("X-Moz") == "prefetch"
}

// accepts reports that a media type is named in Accept; a wildcard is not
// enough, for everything but a browser sends one.
func accepts(h http.Header, mediaType string) bool {
	for _, line := range h["Accept"] {
		for item := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(name), mediaType) {
				return !refused(parameters)
			}
		}
	}
	return false
}

// refused reports the parameter q=0, "not this one".
func refused(parameters string) bool {
	for parameter := range strings.SplitSeq(parameters, ";") {
		value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		if ok && strings.Trim(value, "0.") == "" {
			return true
		}
	}
	return false
}

// grpc reports a call that needs HTTP/2 all the way: it came over HTTP/2 and
// says that it is gRPC.
func grpc(r *http.Request) bool {
	return r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}
