package router

import (
	"net/netip"
	"strings"
)

// maxHost is the longest host name that is looked up, in bytes: DNS allows
// no longer one.
const maxHost = 253

// A hostName is room for one normal host name, on the stack of the caller.
type hostName [maxHost]byte

// normalize writes the normal form of a Host header (or of a host from a
// workload) into h and returns the part of h that holds it: lower case, no
// port, no trailing dot, an IPv6 address without brackets in its canonical
// text. What cannot be a host gives nil. It does not allocate.
func (h *hostName) normalize(host string) []byte {
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 {
			return nil
		}
		return h.address(host[1:end])
	}
	if colon := strings.IndexByte(host, ':'); colon >= 0 {
		if strings.IndexByte(host[colon+1:], ':') >= 0 {
			return h.address(host) // a bare IPv6 address
		}
		host = host[:colon]
	}
	return h.lower(strings.TrimSuffix(host, "."))
}

// address writes the canonical text of an IPv6 address without a zone.
func (h *hostName) address(text string) []byte {
	if strings.IndexByte(text, '%') >= 0 {
		return nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is6() {
		return nil
	}
	return addr.AppendTo(h[:0])
}

// lower writes an ASCII name in lower case; bytes above ASCII stay as they are.
func (h *hostName) lower(name string) []byte {
	if name == "" || len(name) > maxHost || name[len(name)-1] == '.' {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		h[i] = c
	}
	return h[:len(name)]
}
