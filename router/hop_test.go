package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

// raw sends text as it is over a connection of its own, and gives the answer
// and what the connection has after it.
func (r *rig) raw(text string) (*http.Response, net.Conn, *bufio.Reader) {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { conn.Close() })
	require.NoError(r.t, conn.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(conn, text)
	require.NoError(r.t, err)
	answer := bufio.NewReader(conn)
	res, err := http.ReadResponse(answer, nil)
	require.NoError(r.t, err)
	return res, conn, answer
}

// replies is a workload that tells of the requests it gets and answers each
// with the same text.
func replies(t *testing.T, text string) (addr string, seen chan *http.Request) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	seen = make(chan *http.Request, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				seen <- req
				_, _ = io.WriteString(conn, text)
			}
			conn.Close()
		}
	}()
	return listener.Addr().String(), seen
}

func TestHeadersOfOneConnectionGoNoFurther(t *testing.T) {
	addr, seen := replies(t, "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Mine\r\nConnection: x-also\r\nX-Mine: 1\r\nX-Also: 1\r\n"+
		"Keep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nProxy-Connection: close\r\nTe: gzip\r\nUpgrade: h2c\r\n"+
		"X-Stays: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	res, _, _ := rig.raw("GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: keep-alive, X-Mine\r\nConnection: x-also\r\nX-Mine: 1\r\nX-Also: 1\r\n" +
		"Keep-Alive: timeout=5\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nTe: gzip\r\nUpgrade: h2c\r\n" +
		"X-Stays: 1\r\n\r\n")
	body(t, res)
	got := <-seen
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Upgrade", "X-Mine", "X-Also", "User-Agent"} {
		assert.NotContains(t, got.Header, name, "to the workload")
		assert.NotContains(t, res.Header, name, "to the client")
	}
	assert.Equal(t, "1", got.Header.Get("X-Stays"))
	assert.Equal(t, "1", res.Header.Get("X-Stays"))
}

func TestClientThatEndsItsConnectionDoesNotEndTheWorkloads(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr, r.Close)
	}))
	var from [2]string
	for i := range from {
		res, _, _ := rig.raw("GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: close\r\n\r\n")
		assert.True(t, res.Close)
		from[i] = body(t, res)
	}
	assert.Equal(t, from[0], from[1], "both came over one connection")
	assert.Contains(t, from[0], "false")
}

func TestWorkloadThatEndsItsConnectionDoesNotEndTheClients(t *testing.T) {
	addr, _ := replies(t, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	res, _, _ := rig.raw("GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
	assert.Equal(t, "ok", body(t, res))
	assert.False(t, res.Close)
}

func TestTrailersThatAClientTakesAreAskedFor(t *testing.T) {
	addr, seen := replies(t, "HTTP/1.1 204 No Content\r\n\r\n")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	rig.raw("GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: TE\r\nTE: deflate;q=0.5, trailers\r\n\r\n")
	assert.Equal(t, []string{"trailers"}, (<-seen).Header["Te"], "and no coding that only this hop would have")
}

const askUpgrade = "GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: keep-alive, upgrade\r\nUpgrade: echo\r\nX-Request-Id: up\r\n\r\n"

func TestUpgradeIsATunnel(t *testing.T) {
	seen := make(chan http.Header, 1)
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: Echo\r\nX-App: yes\r\n\r\nhello ")
		_ = both.Flush()
		_, _ = io.Copy(conn, both)
	}))
	res, conn, answer := rig.raw(askUpgrade)
	assert.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	assert.Equal(t, "yes", res.Header.Get("X-App"))
	got := <-seen
	assert.Equal(t, []string{"Upgrade"}, got["Connection"])
	assert.Equal(t, []string{"echo"}, got["Upgrade"])
	assert.Equal(t, []string{"127.0.0.1"}, got["X-Forwarded-For"], "one policy for both kinds")
	assert.Equal(t, []string{"up"}, got["X-Request-Id"])
	fmt.Fprint(conn, "you\n")
	line, err := answer.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello you\n", line)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	_, err = answer.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	assert.Equal(t, http.StatusSwitchingProtocols, rig.entryOf("up").Status)
}

func TestUpgradeThatIsDeclinedIsAnAnswerLikeAnyOther(t *testing.T) {
	addr, seen := replies(t, "HTTP/1.1 426 Upgrade Required\r\nConnection: Upgrade\r\nUpgrade: other\r\nContent-Length: 2\r\n\r\nno")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	res, _, _ := rig.raw(askUpgrade)
	assert.Equal(t, "no", body(t, res))
	assert.Equal(t, http.StatusUpgradeRequired, res.StatusCode)
	assert.Equal(t, "echo", (<-seen).Header.Get("Upgrade"))
	assert.Equal(t, http.StatusUpgradeRequired, rig.entryOf("up").Status)
}

func TestSwitchThatWasNotAskedForIsABadGateway(t *testing.T) {
	for name, request := range map[string]string{
		"another protocol": askUpgrade,
		"not asked at all": "GET / HTTP/1.1\r\nHost: wiki.test\r\nUpgrade: other\r\nX-Request-Id: up\r\n\r\n",
	} {
		addr, _ := replies(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
		rig := newRig(t, rigConfig{}, wiki())
		rig.ready("wiki", 1, addr)
		res, _, _ := rig.raw(request)
		assert.Equal(t, "urn:rouse:problem:bad-gateway", problemOf(t, res).Type, name)
		e := rig.entryOf("up")
		assert.Equal(t, http.StatusBadGateway, e.Status, name)
		assert.Equal(t, "error", e.Outcome, name)
		rig.inFlight("wiki", 0)
	}
}

func TestUpgradeToWhatIsNoNameGoesNowhere(t *testing.T) {
	addr, seen := replies(t, "HTTP/1.1 204 No Content\r\n\r\n")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	res, _, _ := rig.raw("GET / HTTP/1.1\r\nHost: wiki.test\r\nConnection: Upgrade\r\nUpgrade: \xc3\xa9cho\r\n\r\n")
	assert.Equal(t, http.StatusBadGateway, problemOf(t, res).Status)
	assert.Empty(t, seen)
}

// What a trusted proxy says of the client holds, though the header that says
// it is changed on the way, and though Connection may name it.
func TestForwardingChangesTheHeaderOnce(t *testing.T) {
	seen := make(chan http.Header, 1)
	alive := upstream(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header })
	rig := newRig(t, rigConfig{router: router.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, wiki())
	rig.whenWoken(func(w workload.Wake) {
		if w.Unreachable {
			rig.ready("wiki", 2, alive)
		}
	})
	rig.ready("wiki", 1, nowhere(t))
	res, err := client.Do(rig.request(context.Background(), http.MethodGet, "wiki.test", "/", nil, "X-Request-ID", "once",
		"X-Forwarded-For", "198.51.100.7", "Forwarded", "for=198.51.100.7", "Connection", "X-Forwarded-For, Forwarded"))
	require.NoError(t, err)
	body(t, res)
	assert.Equal(t, "?1", res.Header.Get("Rouse-Cold-Start"), "it was tried twice")
	got := <-seen
	assert.Equal(t, []string{"198.51.100.7, 127.0.0.1"}, got["X-Forwarded-For"])
	assert.Equal(t, []string{`for=198.51.100.7, for=127.0.0.1;host="wiki.test";proto=http`}, got["Forwarded"])
	assert.Equal(t, "198.51.100.7", rig.entryOf("once").Client)
}

// A client over HTTP/2 may write what would be two words of a request line.
func TestSpaceInAQueryDoesNotSplitTheRequestLine(t *testing.T) {
	addr, seen := replies(t, "HTTP/1.1 204 No Content\r\n\r\n")
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	transport := h2c()
	defer transport.CloseIdleConnections()
	req := rig.request(context.Background(), http.MethodGet, "wiki.test", "/a", nil)
	req.URL.RawQuery = "x HTTP/1.0"
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNoContent, res.StatusCode)
	assert.Equal(t, "/a?x%20HTTP/1.0", (<-seen).RequestURI)
}
