package router_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/proxytest"
)

// A crooked request is one that two servers in a row may read in two ways.
// $C is its path and $S that of the request that it may smuggle.
type crooked struct {
	name, raw string
	// served says that it is harmless, and to be served.
	served bool
	// second says that what follows is a request of its own by any reading.
	second bool
}

const next = "GET $S HTTP/1.1\r\nHost: wiki.test\r\n\r\n"

func post(headers, body string) string {
	return "POST $C HTTP/1.1\r\nHost: wiki.test\r\n" + headers + "\r\n\r\n" + body
}

func getWith(headers string) string {
	return "GET $C HTTP/1.1\r\nHost: wiki.test\r\n" + headers + "\r\n\r\n"
}

var crookeds = []crooked{
	{name: "plain", raw: getWith("A: b"), served: true},
	{name: "pipelined", raw: getWith("A: b") + next, served: true, second: true},
	{name: "length and a second request", raw: post("Content-Length: 2", "hi") + next, served: true, second: true},
	{name: "chunked and a second request", raw: post("Transfer-Encoding: chunked", "2\r\nhi\r\n0\r\n\r\n") + next, served: true, second: true},

	{name: "length and chunked (CL.TE)", raw: post("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\n") + next},
	{name: "chunked and length (TE.CL)", raw: post("Transfer-Encoding: chunked\r\nContent-Length: 3", "1\r\na\r\n0\r\n\r\n") + next},
	{name: "two lengths that differ", raw: post("Content-Length: 2\r\nContent-Length: 40", "hi") + next},
	{name: "two lengths in one that differ", raw: post("Content-Length: 2, 40", "hi") + next},
	{name: "length with a plus", raw: post("Content-Length: +2", "hi") + next},
	{name: "length with a minus", raw: post("Content-Length: -2", "hi") + next},
	{name: "length in hex", raw: post("Content-Length: 0x2", "hi") + next},
	{name: "length with a fraction", raw: post("Content-Length: 2.0", "hi") + next},
	{name: "length with an underscore", raw: post("Content-Length: 0_2", "hi") + next},
	{name: "length that overflows", raw: post("Content-Length: 18446744073709551618", "hi") + next},
	{name: "length that is empty", raw: post("Content-Length:", "") + next},
	{name: "length with a space before the colon", raw: post("Content-Length : 2", "hi") + next},
	{name: "encoding with a space before the colon", raw: post("Transfer-Encoding : chunked", "0\r\n\r\n") + next},
	{name: "encoding with a tab before the value", raw: post("Transfer-Encoding:\tchunked", "0\r\n\r\n") + next, served: true, second: true},
	{name: "encoding with a vertical tab", raw: post("Transfer-Encoding: \vchunked", "0\r\n\r\n") + next},
	{name: "encoding in other letters", raw: post("Transfer-Encoding: ChUnKeD", "0\r\n\r\n") + next, served: true, second: true},
	{name: "encoding with a quote", raw: post("Transfer-Encoding: \"chunked\"", "0\r\n\r\n") + next},
	{name: "encoding that nobody knows", raw: post("Transfer-Encoding: xchunked", "0\r\n\r\n") + next},
	{name: "encoding identity and a length", raw: post("Transfer-Encoding: identity\r\nContent-Length: 2", "hi") + next},
	{name: "two encodings", raw: post("Transfer-Encoding: chunked, identity", "0\r\n\r\n") + next},
	{name: "two fields of encodings", raw: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n") + next},
	{name: "chunked twice", raw: post("Transfer-Encoding: chunked, chunked", "0\r\n\r\n") + next},
	{name: "encoding in HTTP/1.0", raw: "POST $C HTTP/1.0\r\nHost: wiki.test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next},
	{name: "encoding folded", raw: post("Transfer-Encoding:\r\n chunked", "0\r\n\r\n") + next},
	{name: "a folded field", raw: getWith("A: b\r\n c: d")},
	{name: "a folded first field", raw: "GET $C HTTP/1.1\r\n Host: wiki.test\r\n\r\n"},
	{name: "a field without a colon", raw: getWith("Nonsense")},
	{name: "a field without a name", raw: getWith(": b")},
	{name: "a name with a space", raw: getWith("A b: c")},
	{name: "a NUL in a value", raw: getWith("A: b\x00c")},
	{name: "a NUL in a name", raw: getWith("A\x00: b")},
	{name: "a bare CR in a value", raw: getWith("A: b\rGET $S HTTP/1.1")},
	{name: "a bare CR in a length", raw: post("Content-Length: 2\r", "hi") + next},
	{name: "bare LF as the end of the head", raw: "GET $C HTTP/1.1\r\nHost: wiki.test\r\nA: b\n\n" + next, second: true, served: true},
	{name: "a bare LF in a value", raw: post("A: b\nContent-Length: 2", "hi") + next, second: true},

	{name: "a chunk size with 0x", raw: post("Transfer-Encoding: chunked", "0x2\r\nhi\r\n0\r\n\r\n") + next},
	{name: "a chunk size with a minus", raw: post("Transfer-Encoding: chunked", "-2\r\nhi\r\n0\r\n\r\n") + next},
	{name: "a chunk size that overflows", raw: post("Transfer-Encoding: chunked", "10000000000000002\r\nhi\r\n0\r\n\r\n") + next},
	{name: "a chunk size with a space", raw: post("Transfer-Encoding: chunked", "2 \r\nhi\r\n0\r\n\r\n") + next, second: true},
	{name: "a chunk without its end", raw: post("Transfer-Encoding: chunked", "2\r\nhi0\r\n\r\n") + next},
	{name: "a chunk that ends in LF", raw: post("Transfer-Encoding: chunked", "2\nhi\n0\n\n") + next, second: true},
	{name: "a chunk extension that holds a line", raw: post("Transfer-Encoding: chunked", "2;a=\"\nhi\r\n0\r\n\r\n") + next},
	{name: "a chunk extension", raw: post("Transfer-Encoding: chunked", "2;a=b\r\nhi\r\n0\r\n\r\n") + next, served: true, second: true},
	{name: "a length in the trailers", raw: post("Transfer-Encoding: chunked", "2\r\nhi\r\n0\r\nContent-Length: 50\r\n\r\n") + next, served: true, second: true},
	{name: "an encoding in the trailers", raw: post("Transfer-Encoding: chunked\r\nTrailer: Transfer-Encoding", "2\r\nhi\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n") + next, second: true},

	{name: "two hosts", raw: getWith("Host: other.test")},
	{name: "no host", raw: "GET $C HTTP/1.1\r\nA: b\r\n\r\n"},
	{name: "an empty host", raw: "GET $C HTTP/1.1\r\nHost:\r\n\r\n"},
	{name: "a host with a path", raw: "GET $C HTTP/1.1\r\nHost: wiki.test/x\r\n\r\n"},
	{name: "a host with an @", raw: "GET $C HTTP/1.1\r\nHost: user@wiki.test\r\n\r\n"},
	{name: "a host with a space", raw: "GET $C HTTP/1.1\r\nHost: wiki.test x\r\n\r\n"},
	{name: "an absolute target of another host", raw: "GET http://other.test$C HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "a target without a slash", raw: "GET x$C HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "a target with a control byte", raw: "GET $C\x01 HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "a target with a space", raw: "GET $C x HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "a method with a control byte", raw: "G\x01ET $C HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "a method with a colon", raw: "GET: $C HTTP/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "HTTP/1.2", raw: "GET $C HTTP/1.2\r\nHost: wiki.test\r\n\r\n"},
	{name: "HTTP/9.9", raw: "GET $C HTTP/9.9\r\nHost: wiki.test\r\n\r\n"},
	{name: "HTTP/1.01", raw: "GET $C HTTP/1.01\r\nHost: wiki.test\r\n\r\n"},
	{name: "http in small letters", raw: "GET $C http/1.1\r\nHost: wiki.test\r\n\r\n"},
	{name: "HTTP/0.9", raw: "GET $C?a-target-that-is-longer-than-the-preface-of-HTTP/2\r\n"},
	{name: "blank lines before", raw: "\r\n\r\n" + getWith("A: b")},
	{name: "a body with GET", raw: "GET $C HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: 2\r\n\r\nhi" + next, served: true, second: true},
	{name: "a field that names the length as hop by hop", raw: post("Connection: Content-Length\r\nContent-Length: 2", "hi") + next, second: true},
	{name: "an upgrade with a body", raw: post("Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 2", "hi") + next, second: true, served: true},
}

var statusLine = regexp.MustCompile(`^(?:ok)?HTTP/1\.[01] (\d{3}) `)

// A sighting is what came of one crooked request.
type sighting struct {
	status []int    // of the answers to the client
	bodies []string // requests that the workload saw: first line, then the body
	hung   bool     // no answer and no end
}

// forwarded reports whether the workload saw anything of it.
func (s sighting) forwarded() bool { return len(s.bodies) > 0 }

func TestWhatTwoServersMayReadInTwoWaysIsReadInOne(t *testing.T) {
	nginx, haproxy := proxytest.Nginx(t), proxytest.Haproxy(t)
	ours, theirs, others := newRecorder(t), newRecorder(t), newRecorder(t)
	r := newRig(t, rigConfig{}, wiki())
	r.ready("wiki", 1, ours.addr)
	nginxAddr, haproxyAddr := nginx(theirs.addr).Addr, haproxy(others.addr).Addr

	results := make([][3]sighting, len(crookeds))
	var all sync.WaitGroup
	places := make(chan struct{}, 16)
	for i, c := range crookeds {
		for j, to := range []struct {
			addr string
			rec  *recorder
		}{{r.addr, ours}, {nginxAddr, theirs}, {haproxyAddr, others}} {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				results[i][j] = to.rec.try(t, i, c, to.addr)
			})
		}
	}
	all.Wait()

	for i, c := range crookeds {
		rouse, ng, ha := results[i][0], results[i][1], results[i][2]
		t.Logf("%-45s rouse %v %d   nginx %v %d   haproxy %v %d", c.name,
			rouse.status, len(rouse.bodies), ng.status, len(ng.bodies), ha.status, len(ha.bodies))
		assert.False(t, rouse.hung, "%s: neither an answer nor an end", c.name)
		if c.served {
			assert.True(t, rouse.forwarded(), "%s: it is harmless", c.name)
		}
		for _, b := range rouse.bodies {
			if !c.second {
				assert.NotContains(t, b, fmt.Sprintf("/s-%d ", i), "%s: smuggled", c.name)
			}
		}
		if !ng.forwarded() && !ha.forwarded() {
			assert.False(t, rouse.forwarded(), "%s: nginx and haproxy both refuse it: %q", c.name, rouse.bodies)
		}
	}
	assert.Empty(t, ours.unclean(), "sent by us")
}

// A recorder is a workload that reads requests as strictly as can be and
// remembers them.
type recorder struct {
	addr string

	mu    sync.Mutex
	seen  []string // first line and body of each that came whole; guarded by mu
	crude []string // what was not as clean as a proxy has to make it; guarded by mu
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	rec := &recorder{addr: l.Addr().String()}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for rec.one(in) {
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return rec
}

// one reads one request; false ends the connection.
func (rec *recorder) one(in *bufio.Reader) bool {
	line, err := in.ReadString('\n')
	if err != nil {
		return false
	}
	length, chunked, hosts := "", false, 0
	head := line
	for {
		field, err := in.ReadString('\n')
		if err != nil {
			return false
		}
		head += field
		if field == "\r\n" {
			break
		}
		name, value, colon := strings.Cut(strings.TrimSuffix(field, "\r\n"), ":")
		rec.check(colon && strings.HasSuffix(field, "\r\n") && !strings.ContainsAny(name, " \t\x00\v") && !strings.ContainsAny(value, "\x00\r\n"), head)
		switch strings.ToLower(name) {
		case "content-length":
			rec.check(length == "", head)
			length = strings.TrimSpace(value)
		case "transfer-encoding":
			rec.check(!chunked && strings.TrimSpace(value) == "chunked", head)
			chunked = true
		case "host":
			hosts++
		}
	}
	rec.check(hosts == 1 && !(chunked && length != ""), head)
	body, whole := rec.body(in, length, chunked)
	if whole {
		rec.mu.Lock()
		rec.seen = append(rec.seen, line+body)
		rec.mu.Unlock()
	}
	return whole
}

func (rec *recorder) body(in *bufio.Reader, length string, chunked bool) (string, bool) {
	var body bytes.Buffer
	if !chunked {
		n, _ := strconv.Atoi(length)
		_, err := io.CopyN(&body, in, int64(n))
		return body.String(), err == nil
	}
	for {
		size, err := in.ReadString('\n')
		n, bad := strconv.ParseUint(strings.TrimSuffix(size, "\r\n"), 16, 31)
		if err != nil || bad != nil {
			return body.String(), false
		}
		if n > 0 {
			if _, err := io.CopyN(&body, in, int64(n)); err != nil {
				return body.String(), false
			}
			_, _ = in.ReadString('\n')
			continue
		}
		for { // trailers
			line, err := in.ReadString('\n')
			if err != nil || line == "\r\n" {
				return body.String(), err == nil
			}
		}
	}
}

func (rec *recorder) check(clean bool, head string) {
	if !clean {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.crude = append(rec.crude, head)
	}
}

func (rec *recorder) unclean() []string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.crude
}

// try sends one crooked request and looks at what comes of it.
func (rec *recorder) try(t *testing.T, i int, c crooked, addr string) sighting {
	var s sighting
	conn, err := net.Dial("tcp", addr)
	if !assert.NoError(t, err) {
		return s
	}
	defer conn.Close()
	paths := strings.NewReplacer("$C", fmt.Sprintf("/c-%d", i), "$S", fmt.Sprintf("/s-%d", i))
	_, _ = io.WriteString(conn, paths.Replace(c.raw))
	in := bufio.NewReader(conn)
	var said bytes.Buffer
	for ended := false; !ended; {
		// What has been answered is followed by an end, or by nothing.
		wait := 300 * time.Millisecond
		if said.Len() == 0 {
			wait = 2 * time.Second
		}
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		b, err := in.ReadByte()
		if ended = err != nil; !ended {
			said.WriteByte(b)
		}
		s.hung = said.Len() == 0 && os.IsTimeout(err)
	}
	for line := range strings.Lines(said.String()) {
		if m := statusLine.FindStringSubmatch(line); m != nil {
			code, _ := strconv.Atoi(m[1])
			s.status = append(s.status, code)
		}
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, seen := range rec.seen {
		if strings.Contains(seen, fmt.Sprintf("/c-%d", i)+" ") || strings.Contains(seen, fmt.Sprintf("/s-%d", i)+" ") || strings.Contains(seen, fmt.Sprintf("/c-%d\x01", i)) {
			s.bodies = append(s.bodies, seen)
		}
	}
	return s
}
