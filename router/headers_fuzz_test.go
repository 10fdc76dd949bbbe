package router

import (
	"bufio"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// FuzzHeaders has whatever a client may send as its head become the head that
// goes out.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{
		"Connection: keep-alive, X-Forwarded-For\r\nKeep-Alive: 5\r\nX-Forwarded-For: 1.2.3.4\r\n",
		"Connection: Upgrade, X-Request-Id\r\nUpgrade: websocket\r\nX-Request-Id: a\r\n",
		"Te: trailers, gzip\r\nTrailer: A\r\nProxy-Connection: x\r\nRouse-Cold-Start: ?1\r\n",
		"X_Forwarded_Proto: https\r\nRemote_User: root\r\nForwarded: for=_hidden\r\nConnection:  ,, close ,te\r\n",
		"Connection: Host, Content-Length, Remote-User\r\nTraceparent: x\r\nTracestate: y\r\n",
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, head string, trusted bool) {
		h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(head + "\r\n"))).ReadMIMEHeader()
		if err != nil {
			return
		}
		before := http.Header(h).Clone()
		x := &exchange{call: call{
			req:     &http.Request{Method: http.MethodGet, Host: "wiki.test", Header: http.Header(h)},
			peer:    peer{host: "192.0.2.9", addr: netip.MustParseAddr("192.0.2.9"), trusted: trusted},
			granted: http.Header{"Remote-User": {"ada"}},
		}}
		x.identity = identify(x.req.Header, nil, nil)
		var v values
		if x.setHeaders(&v) != nil {
			return
		}
		checkOutgoing(t, x.req.Header, before, trusted)
	})
}

func checkOutgoing(t *testing.T, out, in http.Header, trusted bool) {
	t.Helper()
	upgrade := out["Upgrade"] != nil
	for name, values := range out {
		plain := textproto.CanonicalMIMEHeaderKey(strings.ReplaceAll(name, "_", "-"))
		switch {
		case name == "Connection" && upgrade && slices.Equal(values, []string{"Upgrade"}), name == "Upgrade":
		case name == "Te" && slices.Equal(values, []string{"trailers"}):
		case hopByHop(name):
			t.Errorf("%s: %q goes out", name, values)
		case strings.HasPrefix(plain, "Rouse-"):
			t.Errorf("%s goes out", name)
		case name != plain && reserved(plain):
			t.Errorf("%s goes out, which a server may read as %s", name, plain)
		case plain == "Remote-User" && (name != plain || !slices.Equal(values, []string{"ada"})):
			t.Errorf("%s: %q goes out, where the service said ada", name, values)
		}
	}
	want := "192.0.2.9"
	if trusted {
		want = joined(in["X-Forwarded-For"], want)
	}
	if got := out.Get("X-Forwarded-For"); got != want {
		t.Errorf("X-Forwarded-For: %q, not %q", got, want)
	}
	if !trusted && out.Get("X-Forwarded-Host") != "wiki.test" {
		t.Errorf("X-Forwarded-Host: %q", out.Get("X-Forwarded-Host"))
	}
	if len(out["X-Request-Id"]) != 1 || len(out["Traceparent"]) != 1 {
		t.Errorf("IDs: %q, %q", out["X-Request-Id"], out["Traceparent"])
	}
}
