package catalog

import (
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/rouse-dev/rouse/internal/strict"
)

// toASCII maps a name as browsers do before they look it up. Underscores
// pass: compose puts them into names, and clients send them.
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false), idna.Transitional(false))

// NormalHost gives the one spelling under which a host is routed: lower case,
// ASCII by IDNA, without a port and without the dot at its end; an address of
// version 6 without brackets. It allows one wildcard label, the first. The
// result is its own normal form.
func NormalHost(host string) (string, error) {
	name := strings.TrimSuffix(withoutPort(strings.TrimSpace(host)), ".")
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return addr.Unmap().String(), nil
	}
	if len(name) > maxHost*utf8.UTFMax { // IDNA takes its time with long ones
		return "", badHost(host[:maxHost]+"…", fmt.Sprintf("is longer than %d bytes", maxHost))
	}
	base, wild := strings.CutPrefix(name, "*.")
	ascii, err := toASCII.ToASCII(base)
	if err != nil {
		return "", badHost(host, "is not a host name")
	}
	if again, err := toASCII.ToASCII(ascii); err != nil || again != ascii { // rare scripts that IDNA takes in but not back
		return "", badHost(host, "is not a host name")
	}
	if err := validLabels(host, ascii); err != nil {
		return "", err
	}
	if !wild {
		return ascii, nil
	}
	if _, err := netip.ParseAddr(ascii); err == nil {
		return "", badHost(host, "has a wildcard before an address")
	}
	return "*." + ascii, nil
}

// withoutPort cuts a port and the brackets of an address off.
func withoutPort(host string) string {
	if h, port, err := net.SplitHostPort(host); err == nil && port != "" && strings.Trim(port, "0123456789") == "" {
		return h
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1]
	}
	return host
}

const (
	maxHost  = 253
	maxLabel = 63
)

// validLabels looks at each part of an ASCII name.
func validLabels(host, ascii string) error {
	if len(ascii) > maxHost {
		return badHost(host, fmt.Sprintf("is longer than %d bytes", maxHost))
	}
	for label := range strings.SplitSeq(ascii, ".") {
		switch {
		case label == "":
			return badHost(host, "has an empty label")
		case len(label) > maxLabel:
			return badHost(host, fmt.Sprintf("has a label longer than %d bytes", maxLabel))
		case strings.Contains(label, "*"):
			return badHost(host, "has a wildcard that is not the whole first label")
		case strings.Trim(label, hostBytes) != "" || label[0] == '-' || label[len(label)-1] == '-':
			return badHost(host, "is not a host name")
		}
	}
	return nil
}

const hostBytes = "abcdefghijklmnopqrstuvwxyz0123456789-_"

func badHost(host, what string) error {
	return &strict.Wrong{Message: fmt.Sprintf("%q %s", host, what), Fix: "write wiki.example.com, or *.example.com for every name below it"}
}

// NormalPath gives the one spelling under which a path prefix is routed: it
// begins with "/" and ends without one, unless it is "/" alone.
func NormalPath(p string) (string, error) {
	if !strings.HasPrefix(p, "/") {
		return "", badPath(p, "does not begin with /")
	}
	if strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("?#%\\", r) }) {
		return "", badPath(p, "has a space, control character, '?', '#', '%' or backslash")
	}
	clean := path.Clean(p)
	if clean != p && (clean == "/" || clean+"/" != p) {
		return "", badPath(p, "has empty segments or dots as segments")
	}
	return clean, nil
}

func badPath(p, what string) error {
	return &strict.Wrong{Message: fmt.Sprintf("%q %s", p, what), Fix: "write a plain prefix: /app"}
}
