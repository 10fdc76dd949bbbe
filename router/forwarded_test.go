package router

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

var testPolicy = newPolicy(Config{TrustedProxies: []netip.Prefix{
	netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"),
}})

// outHeaders runs the steps that write the forwarding headers, in their order.
func outHeaders(r *http.Request) http.Header {
	out := r.Header.Clone()
	from := testPolicy.peerOf(r)
	var v values
	v.forwarding(r, from)
	dropForeign(out, from.trusted)
	setForwarded(out, &v)
	return out
}

func TestForwardingHeadersAreBelievedOnlyFromTrustedProxies(t *testing.T) {
	const stranger, proxy = "203.0.113.9:1234", "10.1.2.3:4321"
	for _, c := range []struct {
		name, from   string
		tls          bool
		sent, arrive map[string]string // "" means absent
	}{
		{"nothing sent", stranger, false, nil, map[string]string{
			"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "app.org:8080", "X-Forwarded-Proto": "http", "Forwarded": ""}},
		{"over TLS", stranger, true, nil, map[string]string{"X-Forwarded-Proto": "https"}},
		{"spoofed by a stranger", stranger, false,
			map[string]string{"X-Forwarded-For": "1.1.1.1", "X-Forwarded-Host": "evil", "X-Forwarded-Proto": "https",
				"X-Forwarded-Port": "443", "X-Forwarded-Prefix": "/evil", "X-Forwarded-Server": "evil", "X-Real-Ip": "1.1.1.1",
				"Forwarded": "for=1.1.1.1;proto=https"},
			map[string]string{"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "app.org:8080", "X-Forwarded-Proto": "http",
				"X-Forwarded-Port": "", "X-Forwarded-Prefix": "", "X-Forwarded-Server": "", "X-Real-Ip": "",
				"Forwarded": `for=203.0.113.9;host="app.org:8080";proto=http`}},
		{"told by a trusted proxy", proxy, false,
			map[string]string{"X-Forwarded-For": "198.51.100.7", "X-Forwarded-Host": "app.example", "X-Forwarded-Proto": "https",
				"X-Forwarded-Port": "443", "X-Real-Ip": "198.51.100.7", "Forwarded": "for=198.51.100.7"},
			map[string]string{"X-Forwarded-For": "198.51.100.7, 10.1.2.3", "X-Forwarded-Host": "app.example", "X-Forwarded-Proto": "https",
				"X-Forwarded-Port": "443", "X-Real-Ip": "198.51.100.7",
				"Forwarded": `for=198.51.100.7, for=10.1.2.3;host="app.org:8080";proto=http`}},
		{"underscores are nobody's", proxy, false,
			map[string]string{"X_forwarded_for": "1.1.1.1", "X-Forwarded_proto": "https", "x_real_ip": "1.1.1.1", "Rouse_cold_start": "?1", "My_header": "stays"},
			map[string]string{"X_forwarded_for": "", "X-Forwarded_proto": "", "x_real_ip": "", "Rouse_cold_start": "", "My_header": "stays"}},
		{"Rouse's own", proxy, false, map[string]string{"Rouse-Cold-Start": "?1"}, map[string]string{"Rouse-Cold-Start": ""}},
		{"IPv6 peer", "[2001:db8::5]:99", false, map[string]string{"Forwarded": "for=x"},
			map[string]string{"X-Forwarded-For": "2001:db8::5", "Forwarded": `for="[2001:db8::5]";host="app.org:8080";proto=http`}},
		{"no address at all", "@", false, map[string]string{"X-Forwarded-For": "1.1.1.1"},
			map[string]string{"X-Forwarded-For": "", "X-Forwarded-Host": "app.org:8080"}},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://app.org:8080/", nil)
		r.RemoteAddr = c.from
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		for name, value := range c.sent {
			r.Header[name] = []string{value}
		}
		out := outHeaders(r)
		for name, want := range c.arrive {
			got := ""
			if values := out[name]; len(values) > 0 {
				assert.Len(t, values, 1, "%s: %s", c.name, name)
				got = values[0]
			}
			assert.Equal(t, want, got, "%s: %s", c.name, name)
		}
	}
}

func TestClientAddrIsTheFirstHopThatIsNotTrusted(t *testing.T) {
	for _, c := range []struct {
		from string
		sent []string
		want string // "" means unknown
	}{
		{"203.0.113.9:1", []string{"1.1.1.1"}, "203.0.113.9"},
		{"10.0.0.1:1", nil, "10.0.0.1"},
		{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		{"10.0.0.1:1", []string{"1.1.1.1, 198.51.100.7, 10.0.0.2"}, "198.51.100.7"},
		{"10.0.0.1:1", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7"},
		{"10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"10.0.0.1:1", []string{"198.51.100.7, unknown"}, ""},
		{"[::1]:1", []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		{"[::ffff:10.0.0.1]:1", []string{"198.51.100.7:55"}, "198.51.100.7"},
		{"@", []string{"198.51.100.7"}, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.from, c.sent
		got := ""
		if addr := testPolicy.clientAddr(testPolicy.peerOf(r), r); addr.IsValid() {
			got = addr.String()
		}
		assert.Equal(t, c.want, got, "%s %v", c.from, c.sent)
	}
}

func FuzzForwarded(f *testing.F) {
	f.Add("10.0.0.1:1", "1.1.1.1, 2.2.2.2", "for=1.1.1.1", "host\"")
	f.Add("@", ",,", "", "")
	f.Fuzz(func(t *testing.T, from, chain, forwarded, host string) {
		r := &http.Request{RemoteAddr: from, Host: host, Header: http.Header{
			"X-Forwarded-For": {chain}, "Forwarded": {forwarded}}}
		out := outHeaders(r)
		far := testPolicy.peerOf(r)
		if !far.trusted && len(out["X-Forwarded-For"]) > 0 && out["X-Forwarded-For"][0] != far.host {
			t.Fatalf("a stranger's chain got through: %v", out)
		}
		testPolicy.clientText(far, r)
	})
}
