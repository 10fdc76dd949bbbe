package router

import (
	"errors"
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hopByHop reports a canonical header name that is about one connection, and
// so is never passed on, in neither direction. Trailer is not passed on as it
// is: net/http writes its own from the trailers that there are.
func hopByHop(name string) bool {
	switch name {
	case "Connection", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return false
}

// dropHopByHop deletes the headers that are about one connection.
func dropHopByHop(h http.Header) {
	dropNamed(h)
	for name := range h {
		if hopByHop(name) {
			delete(h, name)
		}
	}
}

// dropNamed deletes the headers that Connection says are about it alone.
func dropNamed(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			// "keep-alive" comes with nearly every request, and the header of
			// that name is dropped anyway.
			if name = textproto.TrimString(name); name != "" && name != "keep-alive" {
				h.Del(name)
			}
		}
	}
}

// takesTrailers reports a client that said so. gRPC servers insist on it, and
// as for Rouse, it passes trailers.
func takesTrailers(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Te"], "trailers")
}

var errBadUpgrade = errors.New("the protocol to upgrade to is no name")

// upgradeOf is the protocol that a request asks to go on in; empty for the
// usual case that it does not, and for what HTTP/1.0 asks.
func upgradeOf(r *http.Request) (string, error) {
	if !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "Upgrade") || !r.ProtoAtLeast(1, 1) {
		return "", nil
	}
	protocol := strings.Join(r.Header["Upgrade"], ", ")
	for _, c := range []byte(protocol) {
		if c < ' ' || c > '~' {
			return "", errBadUpgrade
		}
	}
	if carriesRequests(protocol) {
		return "", nil
	}
	return protocol, nil
}

// carriesRequests reports protocols that are HTTP again, or hide it: what a
// client sent in such a tunnel would pass neither routes nor rules. RFC 9113
// took h2c away, RFC 8446 knows no TLS by upgrade. As a server may, Rouse
// goes on in HTTP/1.1 as if it had not been asked.
func carriesRequests(protocols string) bool {
	for protocol := range strings.SplitSeq(protocols, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/")
		switch strings.ToLower(name) {
		case "h2c", "h2", "http", "tls":
			return true
		}
	}
	return false
}

// setUpgrade asks for the upgrade on the connection to the replica too.
func setUpgrade(h http.Header, protocol string) {
	if protocol != "" {
		h["Connection"] = []string{"Upgrade"}
		h["Upgrade"] = []string{protocol}
	}
}
