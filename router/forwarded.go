package router

import (
	"net/http"
	"net/netip"
	"strings"
)

// A peer is who opened the connection that a request came over.
type peer struct {
	host    string     // its address as text, without the port; empty if unknown
	addr    netip.Addr // the same, parsed; not valid if unknown
	trusted bool       // it is one of the trusted proxies: what it says of the client holds
}

// peerOf reads the far end of the connection of a request.
func (p *policy) peerOf(r *http.Request) peer {
	far, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return peer{}
	}
	host := r.RemoteAddr[:strings.LastIndexByte(r.RemoteAddr, ':')]
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	addr := far.Addr().Unmap().WithZone("")
	return peer{host: host, addr: addr, trusted: within(p.trusted, addr)}
}

// clientAddr is the address of the client itself: the peer, or what the
// trusted proxies say, read from the nearest hop outward to the first that is
// not trusted. It is not valid where a trusted proxy said something that is
// no address.
func (p *policy) clientAddr(from peer, r *http.Request) netip.Addr {
	addr := from.addr
	if !from.trusted {
		return addr
	}
	lines := r.Header["X-Forwarded-For"]
	for i := len(lines) - 1; i >= 0; i-- {
		rest := lines[i]
		for rest != "" {
			var hop string
			rest, hop = cutLast(rest)
			addr = parseHop(hop)
			if !within(p.trusted, addr) {
				return addr
			}
		}
	}
	return addr
}

// clientText is the client's address as the access log has it.
func (p *policy) clientText(from peer, r *http.Request) string {
	if !from.trusted {
		return from.host
	}
	if addr := p.clientAddr(from, r); addr.IsValid() {
		return addr.String()
	}
	return from.host
}

// cutLast splits a comma-separated list into its last member and what is
// before it.
func cutLast(list string) (rest, last string) {
	comma := strings.LastIndexByte(list, ',')
	if comma < 0 {
		return "", strings.TrimSpace(list)
	}
	return list[:comma], strings.TrimSpace(list[comma+1:])
}

// parseHop reads an address with or without a port; not valid if it is none.
func parseHop(hop string) netip.Addr {
	if addr, err := netip.ParseAddr(strings.Trim(hop, "[]")); err == nil {
		return addr.Unmap().WithZone("")
	}
	addrPort, err := netip.ParseAddrPort(hop)
	if err != nil {
		return netip.Addr{}
	}
	return addrPort.Addr().Unmap().WithZone("")
}

func within(networks []netip.Prefix, addr netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// dropForeign deletes from the headers that go out everything that only
// Rouse or a trusted proxy may say. Spellings with "_" go whoever sent them:
// many servers read "X_Forwarded_For" and "X-Forwarded-For" as one.
func dropForeign(h http.Header, trusted bool) {
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 {
			if plain := http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")); reserved(plain) {
				delete(h, name)
			}
			continue
		}
		if strings.HasPrefix(name, "Rouse-") || (!trusted && reserved(name)) {
			delete(h, name)
		}
	}
}

// reserved reports a canonical header name that tells who the client is or
// how Rouse handled the request.
func reserved(name string) bool {
	switch name {
	case "Forwarded", "X-Forwarded", "X-Real-Ip":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "Rouse-")
}

// forwarding reads from the request that came in what the one that goes out
// says of who asked and how: added to what a trusted proxy said, in place of
// what anybody else did. Forwarded is told only where one came in, for a
// server that prefers it to the X-Forwarded ones would otherwise no longer see
// what those say.
func (v *values) forwarding(in *http.Request, from peer) {
	v[valueFor], v[valueHost], v[valueProto] = from.host, in.Host, scheme(in)
	if from.trusted {
		v[valueFor] = joined(in.Header["X-Forwarded-For"], v[valueFor])
		v[valueHost] = first(in.Header["X-Forwarded-Host"], v[valueHost])
		v[valueProto] = first(in.Header["X-Forwarded-Proto"], v[valueProto])
	}
	if said := in.Header["Forwarded"]; len(said) > 0 {
		v[valueForwarded] = forwarded(said, in, from)
	}
}

// setForwarded writes what forwarding has read into the headers that go out.
func setForwarded(out http.Header, v *values) {
	if v[valueFor] != "" {
		out["X-Forwarded-For"] = v.header(valueFor)
	}
	out["X-Forwarded-Host"] = v.header(valueHost)
	out["X-Forwarded-Proto"] = v.header(valueProto)
	if v[valueForwarded] != "" {
		out["Forwarded"] = v.header(valueForwarded)
	}
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// forwarded is the Forwarded header (RFC 7239) after this hop.
func forwarded(said []string, in *http.Request, from peer) string {
	hop := "for=" + node(from) + ";host=" + quoted(in.Host) + ";proto=" + scheme(in)
	if !from.trusted {
		return hop
	}
	return joined(said, hop)
}

// node is a peer as RFC 7239 writes it.
func node(from peer) string {
	switch {
	case from.host == "":
		return "unknown"
	case from.addr.Is6():
		return "\"[" + from.addr.String() + "]\""
	}
	return from.addr.String()
}

// quoted is a quoted-string: a host may have a port, and ":" is no token.
func quoted(s string) string {
	return "\"" + strings.NewReplacer("\\", "\\\\", "\"", "\\\"").Replace(s) + "\""
}

func joined(before []string, last string) string {
	if len(before) == 0 {
		return last
	}
	return strings.Join(before, ", ") + ", " + last
}

func first(values []string, otherwise string) string {
	if len(values) == 0 || values[0] == "" {
		return otherwise
	}
	return values[0]
}
