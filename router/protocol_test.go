package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// warmAndCold runs a case with its workload awake, and with one that the
// first request wakes.
func warmAndCold(t *testing.T, start func(testing.TB) (addr string), talk func(*testing.T, *rig), cfg ...rigConfig) {
	t.Helper()
	for name, cold := range map[string]bool{"warm": false, "cold": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newRig(t, append(cfg, rigConfig{})[0], wiki())
			if addr := start(t); cold {
				rig.coldStart(addr, 20*time.Millisecond, 10*time.Millisecond)
			} else {
				rig.ready("wiki", 1, addr)
			}
			talk(t, rig)
			if cold {
				assert.Positive(t, rig.wakeCount(), "the first request woke it")
			}
			rig.inFlight("wiki", 0)
		})
	}
}

// serving is an upstream for warmAndCold.
func serving(handler http.HandlerFunc) func(testing.TB) string {
	return func(t testing.TB) string { return upstream(t, handler) }
}

// A wire is one connection on which a test writes as it likes.
type wire struct {
	t testing.TB
	net.Conn
	*bufio.Reader
}

func (r *rig) wire() *wire {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	require.NoError(r.t, conn.SetDeadline(time.Now().Add(patience)))
	return &wire{r.t, conn, bufio.NewReader(conn)}
}

// Read reads what is buffered first.
func (c *wire) Read(p []byte) (int, error) { return c.Reader.Read(p) }

func (c *wire) say(format string, args ...any) {
	c.t.Helper()
	_, err := fmt.Fprintf(c.Conn, format, args...)
	require.NoError(c.t, err)
}

// line reads up to the end of a line, which it leaves out.
func (c *wire) line() string {
	c.t.Helper()
	line, err := c.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
}

// head reads a head as it is on the wire.
func (c *wire) head() (lines []string) {
	c.t.Helper()
	for line := c.line(); line != ""; line = c.line() {
		lines = append(lines, line)
	}
	return lines
}

// answer reads an answer to a request of that method, and its body.
func (c *wire) answer(method string) (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.Reader, &http.Request{Method: method})
	require.NoError(c.t, err)
	return res, body(c.t, res)
}

// over makes sure that nothing more comes, and ends the connection too.
func (c *wire) over() {
	c.t.Helper()
	rest, err := io.ReadAll(c.Reader)
	require.NoError(c.t, err)
	assert.Empty(c.t, string(rest))
	require.NoError(c.t, c.Close())
}

func TestHTTP10EndsWithTheConnection(t *testing.T) {
	warmAndCold(t, serving(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-End")
		w.WriteHeader(http.StatusEarlyHints) // which nobody may say to a client of HTTP/1.0
		_ = http.NewResponseController(w).Flush()
		fmt.Fprint(w, r.Proto, " of unknown length")
		w.Header().Set("X-End", "over")
	}), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.say("GET / HTTP/1.0\r\nHost: wiki.test\r\n\r\n")
		head := c.head()
		assert.Regexp(t, `^HTTP/1\.[01] 200 OK$`, head[0])
		for _, line := range head {
			assert.NotRegexp(t, "(?i)^(transfer-encoding|trailer):", line)
		}
		rest, err := io.ReadAll(c.Reader)
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 of unknown length", string(rest))
	})
}

func TestHTTP10KeepsAConnectionThatAsksForIt(t *testing.T) {
	warmAndCold(t, serving(echo), func(t *testing.T, rig *rig) {
		c := rig.wire()
		for _, word := range []string{"one", "two", "three"} {
			c.say("POST / HTTP/1.0\r\nHost: wiki.test\r\nConnection: keep-alive\r\nContent-Length: %d\r\n\r\n%s", len(word), word)
			res, text := c.answer(http.MethodPost)
			assert.Equal(t, word, text)
			assert.Equal(t, "keep-alive", strings.ToLower(res.Header.Get("Connection")))
		}
		c.say("GET / HTTP/1.0\r\nHost: wiki.test\r\n\r\n")
		c.answer(http.MethodGet)
		c.over()
	})
}

// The end of such an answer is the end of its connection: one that broke off
// has to end in another way.
func TestHTTP10AnswerCutShortDoesNotLookWhole(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a part")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	c := rig.wire()
	c.say("GET / HTTP/1.0\r\nHost: wiki.test\r\n\r\n")
	_, err := io.ReadAll(c.Reader)
	require.Error(t, err)
	assert.False(t, isTimeout(err), err)
}

func TestHTTP11Pipelined(t *testing.T) {
	warmAndCold(t, serving(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, r.Method, " ", r.URL.Path, " ", string(b))
	}), func(t *testing.T, rig *rig) {
		c := rig.wire()
		var all strings.Builder
		for i := range 4 {
			fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: wiki.test\r\n\r\n", i)
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: 4\r\n\r\nbody", i)
		}
		c.say("%s", all.String())
		for i := range 4 {
			_, text := c.answer(http.MethodGet)
			assert.Equal(t, fmt.Sprintf("GET /%d ", i), text)
			_, text = c.answer(http.MethodPost)
			assert.Equal(t, fmt.Sprintf("POST /%d body", i), text)
		}
	})
}

func TestHTTP11ChunkedBothWays(t *testing.T) {
	warmAndCold(t, serving(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, []string{"chunked"}, r.TransferEncoding)
		_ = http.NewResponseController(w).EnableFullDuplex()
		part := make([]byte, 100)
		for {
			n, err := r.Body.Read(part)
			if n > 0 {
				fmt.Fprintf(w, "<%s>", part[:n])
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				return
			}
		}
	}), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.say("POST / HTTP/1.1\r\nHost: wiki.test\r\nTransfer-Encoding: chunked\r\n\r\n")
		for i, part := range []string{"one", "two", "three"} { // each is there before the next is sent
			c.say("%x;ext=%d\r\n%s\r\n", len(part), i, part)
			if i == 0 {
				assert.Contains(t, c.head(), "Transfer-Encoding: chunked")
			}
			assert.Equal(t, fmt.Sprintf("%x", len(part)+2), c.line())
			assert.Equal(t, "<"+part+">", c.line())
		}
		c.say("0\r\n\r\n")
		assert.Equal(t, "0", c.line())
		assert.Empty(t, c.line())
	})
}

func TestHTTP11TrailersBothWays(t *testing.T) {
	warmAndCold(t, serving(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Answer")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("X-Answer", r.Trailer.Get("X-Ask")+" taken")
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	}), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.say("POST / HTTP/1.1\r\nHost: wiki.test\r\nTE: trailers\r\nTrailer: X-Ask\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"4\r\nbody\r\n0\r\nX-Ask: sum\r\n\r\n")
		res, text := c.answer(http.MethodPost)
		assert.Equal(t, "body", text)
		assert.Equal(t, http.Header{"X-Answer": {"sum taken"}, "X-Late": {"late"}}, res.Trailer)
	})
}

func TestHTTP11InformationalAnswers(t *testing.T) {
	warmAndCold(t, serving(func(w http.ResponseWriter, _ *http.Request) {
		for _, style := range []string{"a", "b"} {
			w.Header().Set("Link", "</"+style+".css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del("Link")
		fmt.Fprint(w, "whole")
	}), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.say("GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
		assert.Equal(t, []string{"HTTP/1.1 103 Early Hints", "Link: </a.css>; rel=preload"}, c.head())
		assert.Equal(t, []string{"HTTP/1.1 103 Early Hints", "Link: </b.css>; rel=preload"}, c.head())
		assert.Equal(t, "HTTP/1.1 102 Processing", c.head()[0])
		res, text := c.answer(http.MethodGet)
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.Equal(t, "whole", text)
		assert.NotContains(t, res.Header, "Link")
	})
}

// expecting is a workload that speaks for itself, since net/http would say
// "continue" on its own: it takes a body at /take only.
func expecting(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go expect(conn)
		}
	}()
	return listener.Addr().String()
}

func expect(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	req, err := http.ReadRequest(in)
	switch {
	case err != nil:
		return
	case req.Header.Get("Expect") != "100-continue" || in.Buffered() > 0:
		fmt.Fprint(conn, "HTTP/1.1 500 Not Asked\r\nContent-Length: 0\r\n\r\n")
		return
	case req.URL.Path != "/take":
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", strings.ReplaceAll(req.URL.Path[1:], "-", " "))
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
}

func TestExpectContinueEndToEnd(t *testing.T) {
	for _, framing := range []string{"Content-Length: 4", "Transfer-Encoding: chunked"} {
		t.Run(strings.Fields(framing)[1], func(t *testing.T) {
			t.Parallel()
			warmAndCold(t, expecting, func(t *testing.T, rig *rig) {
				c := rig.wire()
				c.say("POST /take HTTP/1.1\r\nHost: wiki.test\r\nExpect: 100-continue\r\n%s\r\n\r\n", framing)
				assert.Equal(t, []string{"HTTP/1.1 100 Continue"}, c.head(), "once, from the workload")
				if strings.HasPrefix(framing, "T") {
					c.say("4\r\nbody\r\n0\r\n\r\n")
				} else {
					c.say("body")
				}
				res, text := c.answer(http.MethodPost)
				assert.Equal(t, http.StatusOK, res.StatusCode)
				assert.Equal(t, "body", text)
			})
		})
	}
}

func TestExpectContinueRefusedByTheWorkload(t *testing.T) {
	for _, refusal := range []string{"417-Expectation-Failed", "413-Content-Too-Large", "401-Unauthorized"} {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			warmAndCold(t, expecting, func(t *testing.T, rig *rig) {
				c := rig.wire()
				c.say("POST /%s HTTP/1.1\r\nHost: wiki.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n", refusal)
				res, _ := c.answer(http.MethodPost)
				assert.Equal(t, refusal[:3], fmt.Sprint(res.StatusCode))
				assert.True(t, res.Close, "or the client could not know whether its body is waited for")
				c.over()
			})
		})
	}
}

func TestExpectationThatNobodyKnowsIsRefused(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, ok("wiki")))
	c := rig.wire()
	c.say("POST / HTTP/1.1\r\nHost: wiki.test\r\nExpect: coffee\r\nContent-Length: 4\r\n\r\n")
	res, _ := c.answer(http.MethodPost)
	assert.Equal(t, http.StatusExpectationFailed, res.StatusCode)
}
