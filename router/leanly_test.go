package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

// dial opens a connection to the rig that is closed with the test.
func (r *rig) dial() (net.Conn, *bufio.Reader) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn, bufio.NewReader(conn)
}

// answerTo reads the next answer on a connection to a request of that method.
func answerTo(t *testing.T, method string, in *bufio.Reader) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	require.NoError(t, err)
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res, string(b)
}

func request(method, path, headers, body string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: wiki.test\r\n" + headers + "\r\n" + body
}

// script is a server that takes one connection after the other, and says on
// each what the test tells it, for each request in turn; "" hangs up.
func script(t *testing.T, answers ...[]string) (addr string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	requests = &atomic.Int64{}
	var now atomic.Pointer[net.Conn]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, says := range answers {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			now.Store(&conn)
			in := bufio.NewReader(conn)
			for _, said := range says {
				req, err := http.ReadRequest(in)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, req.Body)
				requests.Add(1)
				if said == "" {
					break
				}
				_, _ = io.WriteString(conn, said)
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		if conn := now.Load(); conn != nil {
			_ = (*conn).Close()
		}
		<-ended
	})
	return l.Addr().String(), requests
}

const two = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestConnectionGoesOnWhateverIsSaidOnIt(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/chunks" {
			_ = http.NewResponseController(w).Flush()
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL, b)
	}))
	conn, in := rig.dial()
	for i, c := range []struct{ method, raw, want string }{
		{"GET", request("GET", "/a?b", "", ""), "GET /a?b "},
		{"POST", request("POST", "/b", "Content-Length: 3\r\n", "abc"), "POST /b abc"},
		{"GET", request("GET", "/chunks", "", ""), "GET /chunks "},
		{"HEAD", request("HEAD", "/c", "", ""), ""},
		{"PUT", request("PUT", "/d", "Content-Length: 9000\r\n", strings.Repeat("x", 9000)), "PUT /d " + strings.Repeat("x", 9000)},
		{"POST", request("POST", "/e", "Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"), ""},
		{"GET", request("GET", "/f", "", ""), "GET /f "},
	} {
		if i == 6 { // after a body in chunks, a connection ends
			conn, in = rig.dial()
		}
		_, err := io.WriteString(conn, c.raw)
		require.NoError(t, err)
		res, got := answerTo(t, c.method, in)
		require.Equal(t, http.StatusOK, res.StatusCode, c.raw)
		if c.want != "" {
			require.Equal(t, c.want, got)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInTheirOrder(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.URL, b)
	}))
	conn, in := rig.dial()
	var all strings.Builder
	for i := range 60 {
		all.WriteString(request("POST", fmt.Sprint("/", i), "Content-Length: 100\r\n", strings.Repeat("x", 98)+fmt.Sprintf("%02d", i)))
	}
	go func() {
		for rest := all.String(); rest != ""; { // cut where it may hurt
			n := min(len(rest), 333)
			_, _ = io.WriteString(conn, rest[:n])
			rest = rest[n:]
			if len(rest)%7 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	for i := range 60 {
		_, got := answerTo(t, "POST", in)
		require.Equal(t, fmt.Sprintf("/%d %s%02d", i, strings.Repeat("x", 98), i), got)
	}
}

func TestWhatNobodyAskedForReachesNobody(t *testing.T) {
	forged := "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
	for name, said := range map[string]string{"with the answer": two + forged, "a part of it": two + "HTTP/1.1 2"} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t, rigConfig{}, wiki())
			addr, _ := script(t, []string{said, two}, []string{two, two})
			rig.ready("wiki", 1, addr)
			conn, in := rig.dial()
			for range 2 {
				_, err := io.WriteString(conn, request("GET", "/", "", ""))
				require.NoError(t, err)
				_, got := answerTo(t, "GET", in)
				require.Equal(t, "ok", got)
			}
		})
	}
}

func TestWhatComesLateOnAnIdleConnectionReachesNobody(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	late := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					_, _ = io.WriteString(conn, two)
					late <- conn
				}
			}()
		}
	}()
	rig.ready("wiki", 1, l.Addr().String())
	conn, in := rig.dial()
	for range 2 {
		_, err := io.WriteString(conn, request("GET", "/", "", ""))
		require.NoError(t, err)
		_, got := answerTo(t, "GET", in)
		require.Equal(t, "ok", got)
		_, err = io.WriteString(<-late, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
		require.NoError(t, err)
		time.Sleep(20 * time.Millisecond) // until it is there: on one machine, at once
	}
}

// A server that hangs up on a kept connection in the moment of its use may
// have seen the request, or not: only what may come twice is sent again.
func TestOnlyWhatMayComeTwiceIsSentAgain(t *testing.T) {
	for method, want := range map[string]int{"GET": http.StatusOK, "POST": http.StatusBadGateway} {
		t.Run(method, func(t *testing.T) {
			rig := newRig(t, rigConfig{}, wiki())
			addr, requests := script(t, []string{two, ""}, []string{two})
			rig.ready("wiki", 1, addr)
			conn, in := rig.dial()
			var res *http.Response
			for range 2 {
				_, err := io.WriteString(conn, request(method, "/", "", ""))
				require.NoError(t, err)
				res, _ = answerTo(t, method, in)
			}
			assert.Equal(t, want, res.StatusCode)
			assert.EqualValues(t, map[string]int64{"GET": 3, "POST": 2}[method], requests.Load())
		})
	}
}

func TestConnectionThatItsServerHasClosedIsNotUsed(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	addr, requests := script(t, []string{two}, []string{two}, []string{two})
	rig.ready("wiki", 1, addr)
	conn, in := rig.dial()
	for i := range 3 {
		_, err := io.WriteString(conn, request("POST", "/", "Content-Length: 2\r\n", "hi"))
		require.NoError(t, err)
		res, _ := answerTo(t, "POST", in)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.EqualValues(t, i+1, requests.Load())
		time.Sleep(20 * time.Millisecond) // until it is closed: on one machine, at once
	}
}

func TestLongBodiesAreCarriedWhole(t *testing.T) {
	const size = 5 << 20
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(size))
		_, _ = io.CopyN(w, pattern{}, size)
	}))
	conn, in := rig.dial()
	for range 3 {
		_, _ = io.WriteString(conn, request("GET", "/", "", ""))
		res, got := answerTo(t, "GET", in)
		require.Len(t, got, size)
		require.EqualValues(t, size, res.ContentLength)
		_, _ = io.WriteString(conn, request("PUT", "/", fmt.Sprintf("Content-Length: %d\r\n", size), strings.Repeat("x", size)))
		_, got = answerTo(t, "PUT", in)
		require.Equal(t, fmt.Sprint(size), got)
	}
}

func TestClientThatSaysNothingIsHungUpOn(t *testing.T) {
	const brief = 100 * time.Millisecond
	rig := newRig(t, rigConfig{server: router.ServerConfig{HeaderTimeout: brief}}, wiki())
	rig.ready("wiki", 1, upstream(t, ok("here")))
	for _, said := range []string{"", "GET / HTTP/1.1\r\nHost: wi"} {
		conn, in := rig.dial()
		_, err := io.WriteString(conn, said)
		require.NoError(t, err)
		_, err = in.ReadByte()
		require.ErrorIs(t, err, io.EOF, said)
	}
	conn, in := rig.dial() // one that has been served may rest for longer
	_, err := io.WriteString(conn, request("GET", "/", "", ""))
	require.NoError(t, err)
	_, got := answerTo(t, "GET", in)
	require.Equal(t, "here", got)
	time.Sleep(3 * brief)
	_, err = io.WriteString(conn, request("GET", "/", "", ""))
	require.NoError(t, err)
	_, got = answerTo(t, "GET", in)
	require.Equal(t, "here", got)
}

// What an idle connection keeps in memory, the client's own in this process
// included.
func TestIdleConnectionsAreSmall(t *testing.T) {
	if !*leanFlag || raceDetector() {
		t.Skip("net/http's are not, nor is anything with the race detector")
	}
	const idle = 500
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, cannedUpstream(t))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range idle {
		require.NoError(t, newPlainClient(t, rig.addr).roundTrip())
	}
	for range 2 { // empties the pools
		runtime.GC()
	}
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)) / idle
	t.Logf("%d bytes per idle connection", each)
	assert.Less(t, each, int64(15<<10), "of which 4 KiB are the client's buffer")
}

func TestRequestOfWorkloadThatMayNotBeReachedPlainlyIsHeldAsAny(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(), wiki(func(w *workload.Workload) { w.Name, w.Hosts = "other", []string{"other.test"} }))
	rig.ready("other", 1, upstream(t, ok("other")))
	conn, in := rig.dial()
	_, err := io.WriteString(conn, request("GET", "/", "X-Request-Id: held\r\n", ""))
	require.NoError(t, err)
	rig.queued("wiki", 1)
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Request-Id"), r.URL)
	}))
	res, got := answerTo(t, "GET", in)
	assert.Equal(t, "held/", got)
	assert.Equal(t, "?1", res.Header.Get("Rouse-Cold-Start"))
	_, err = io.WriteString(conn, strings.Replace(request("GET", "/", "", ""), "wiki", "other", 1))
	require.NoError(t, err)
	_, got = answerTo(t, "GET", in)
	assert.Equal(t, "other", got)
}

// What Rouse answers itself, and what it lets net/http read, is sent when the
// request has been dealt with, and must not be given another's ID.
func TestEachAnswerHasTheIDOfItsOwnRequest(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(http.ResponseWriter, *http.Request) {}))
	const clients, each = 8, 50
	ids := make(chan string, clients*each)
	var asking sync.WaitGroup
	for range clients {
		conn, in := rig.dial()
		asking.Go(func() {
			for i := range each {
				raw, method := request("GET", "/", "", ""), http.MethodGet
				switch i % 3 {
				case 0:
					raw = strings.Replace(raw, "wiki.test", "nobody.test", 1)
				case 1:
					raw, method = request("HEAD", "/", "", ""), http.MethodHead
				}
				_, err := io.WriteString(conn, raw)
				if !assert.NoError(t, err) {
					return
				}
				res, err := http.ReadResponse(in, &http.Request{Method: method})
				if !assert.NoError(t, err) {
					return
				}
				_, _ = io.Copy(io.Discard, res.Body)
				if id := res.Header.Get("X-Request-Id"); id != "" {
					ids <- id
				}
			}
		})
	}
	asking.Wait()
	close(ids)
	sent := map[string]bool{}
	for id := range ids {
		assert.False(t, sent[id], "%s is in two answers", id)
		sent[id] = true
	}
	assert.GreaterOrEqual(t, len(sent), clients*each/3, "each of Rouse's own has one")
	logged := map[string]bool{}
	require.Eventually(t, func() bool {
		all := rig.log.entries(t)
		for _, e := range all {
			logged[e.RequestID] = true
		}
		return len(all) == clients*each
	}, patience, 5*time.Millisecond)
	for id := range sent {
		assert.True(t, logged[id], "%s is nobody's", id)
	}
}
