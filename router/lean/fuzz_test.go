package lean

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

var heads = []string{
	"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
	"GET /a/%2e%2E/b;c=d?e=f&g HTTP/1.1\r\nhost: a.test:80\r\nuser-AGENT: x y\r\nAccept:*/*\r\nCookie: a=b\r\nCookie: c=d\r\n\r\nrest",
	"POST /? HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\nhi",
	"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\nConnection: close\r\nX_Forwarded_For: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nPragma: no-cache\r\nCache-Control: no-cache\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\n b: c\r\n\r\n",
	"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET //a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /\"<> HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\nHost: a\n\n",
	"GET / HTTP/1.0\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA: b\x00c\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nA:\tb\r\n\r\n",
	"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
}

// FuzzRequestHead has whatever is read as plain read by net/http too: both must
// read the same, and as much of it.
func FuzzRequestHead(f *testing.F) {
	for _, seed := range heads {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		ours := head{header: http.Header{}}
		size, v := ours.read(bytes.Clone(said))
		if v != plain {
			checkPrefixes(t, said, v)
			return
		}
		in := bufio.NewReaderSize(bytes.NewReader(said), len(said)+16)
		theirs, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("read as plain: %q, but net/http: %v", said, err)
		}
		sameRequest(t, &ours, theirs, said)
		if rest := len(said) - size; int64(in.Buffered()) != int64(rest) {
			t.Errorf("%q: %d bytes after the head, net/http: %d", said, rest, in.Buffered())
		}
		strict(t, &ours, theirs)
		once(t, &ours, theirs, said)
	})
}

// checkPrefixes asks that more is only waited for while it may become plain:
// what was odd is never plain with more behind it.
func checkPrefixes(t *testing.T, said []byte, v verdict) {
	longer := head{header: http.Header{}}
	if _, then := longer.read(append(bytes.Clone(said), "\r\n\r\n"...)); v == odd && then != odd {
		t.Errorf("%q is odd, and with more behind it %d", said, then)
	}
}

func sameRequest(t *testing.T, ours *head, theirs *http.Request, said []byte) {
	t.Helper()
	for _, pair := range [][2]string{
		{ours.method, theirs.Method}, {ours.target, theirs.RequestURI}, {ours.host, theirs.Host},
		{ours.path, theirs.URL.Path}, {ours.query, theirs.URL.RawQuery},
		{"HTTP/1.1", theirs.Proto},
		{ours.target, theirs.URL.RequestURI()}, // what a transport would send
	} {
		if pair[0] != pair[1] {
			t.Errorf("%q: %q, net/http: %q", said, pair[0], pair[1])
		}
	}
	if ours.length != theirs.ContentLength || theirs.TransferEncoding != nil || ours.close != theirs.Close {
		t.Errorf("%q: length %d, close %v; net/http: %d, %v, %q", said, ours.length, ours.close,
			theirs.ContentLength, theirs.Close, theirs.TransferEncoding)
	}
	for name, values := range ours.header {
		if name != "Connection" && !slices.Equal(values, theirs.Header[name]) {
			t.Errorf("%q: %s: %q, net/http: %q", said, name, values, theirs.Header[name])
		}
	}
	for name := range theirs.Header {
		if ours.header[name] == nil {
			t.Errorf("%q: %s: %q is net/http's alone", said, name, theirs.Header[name])
		}
	}
}

// strict is what net/http's server asks for besides.
func strict(t *testing.T, ours *head, theirs *http.Request) {
	t.Helper()
	if !httpguts.ValidHostHeader(ours.host) {
		t.Errorf("host %q", ours.host)
	}
	for name, values := range theirs.Header {
		if !httpguts.ValidHeaderFieldName(name) || !slices.ContainsFunc(values, httpguts.ValidHeaderFieldValue) {
			t.Errorf("field %q: %q", name, values)
		}
		if textproto.CanonicalMIMEHeaderKey(name) != name {
			t.Errorf("name %q", name)
		}
	}
	for _, name := range []string{"Transfer-Encoding", "Expect", "Upgrade", "Te", "Trailer", "Http2-Settings"} {
		if theirs.Header[name] != nil {
			t.Errorf("%s: %q is not plain", name, theirs.Header[name])
		}
	}
}

// once has what goes out read again: it must be the same request, and there
// must be one.
func once(t *testing.T, ours *head, theirs *http.Request, said []byte) {
	t.Helper()
	w := &Writer{}
	w.head.line = ours.line
	w.req = *theirs
	w.req.Header = ours.header
	out := w.appendRequest(nil)
	in := bufio.NewReader(bytes.NewReader(out))
	again, err := http.ReadRequest(in)
	if err != nil {
		t.Fatalf("%q: sent %q: %v", said, out, err)
	}
	if again.Method != ours.method || again.RequestURI != ours.target || again.Host != ours.host || again.ContentLength != ours.length || again.TransferEncoding != nil {
		t.Errorf("%q: sent %q", said, out)
	}
	if ours.length == 0 && in.Buffered() > 0 {
		t.Errorf("%q: sent %q: there is more than one", said, out)
	}
}

// FuzzAnswerHead is the same for the answers of servers.
func FuzzAnswerHead(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok",
		"HTTP/1.1 404 \r\ncontent-length: 0\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nDate: x\r\n\r\n",
		"HTTP/1.1 200\r\nContent-Length: 1\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n", "HTTP/1.1 0200 OK\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	request := &http.Request{Method: http.MethodGet}
	drop := func(name string) bool {
		return name == "Connection" || name == "Keep-Alive" || name == "Proxy-Connection"
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		var ours answer
		if ours.read(bytes.Clone(said), drop) != plain {
			return
		}
		in := bufio.NewReaderSize(bytes.NewReader(said), len(said)+16)
		theirs, err := http.ReadResponse(in, request)
		if err != nil {
			t.Fatalf("read as plain: %q, but net/http: %v", said, err)
		}
		if ours.status != theirs.StatusCode || ours.length != theirs.ContentLength || theirs.TransferEncoding != nil || theirs.Close || theirs.Trailer != nil {
			t.Errorf("%q: %d, %d bytes; net/http: %+v", said, ours.status, ours.length, theirs)
		}
		body, err := io.ReadAll(theirs.Body)
		want := said[ours.size:]
		if int64(len(want)) > ours.length {
			want = want[:ours.length]
		}
		if !bytes.Equal(body, want) || err == nil != (int64(len(want)) == ours.length) {
			t.Errorf("%q: body %q, net/http: %q, %v", said, want, body, err)
		}
		passed := ours.appendFields([]byte{})
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(string(passed) + "\r\n"))).ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%q: passed on %q: %v", said, passed, err)
		}
		for name, values := range theirs.Header {
			if !drop(name) && !slices.Equal(values, header[name]) || drop(name) && header[name] != nil {
				t.Errorf("%q: %s: %q, passed on %q", said, name, values, header[name])
			}
		}
	})
}
