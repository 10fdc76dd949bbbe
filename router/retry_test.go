package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func TestRefusedConnectIsRetriedWithTheBodyIntact(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	dead, alive := nowhere(t), upstream(t, echo)
	rig.whenWoken(func(w workload.Wake) {
		if w.Unreachable {
			rig.ready("wiki", 2, alive)
		}
	})
	for i, send := range []string{"small", strings.Repeat("large ", 100_000)} {
		rig.ready("wiki", 1, dead)
		res := rig.do(http.MethodPost, "wiki.test", "/", io.MultiReader(strings.NewReader(send)), "X-Request-ID", fmt.Sprint("retry", i))
		assert.True(t, send == body(t, res), "the body came back as it was sent")
		assert.Equal(t, "?1", res.Header.Get("Rouse-Cold-Start"))
		e := rig.entryOf(fmt.Sprint("retry", i))
		assert.Equal(t, "wiki-2-0", e.Replica)
		assert.Equal(t, "held", e.Outcome)
		rig.observe(workload.State{Workload: "wiki", Generation: 1})
	}
	rig.inFlight("wiki", 0)
}

func TestRefusedConnectGoesToAnotherReplicaWithoutAHold(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	alive := upstream(t, echo)
	rig.ready("wiki", 1, nowhere(t), alive)
	for range 20 {
		res := rig.do(http.MethodPost, "wiki.test", "/", strings.NewReader("body"))
		assert.Equal(t, "body", body(t, res))
	}
	assert.Zero(t, rig.wakeCount())
}

func TestRefusedForAsLongAsItMayBeHeldIsAHoldTimeout(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.HoldTimeout = 300 * time.Millisecond }))
	rig.ready("wiki", 1, nowhere(t))
	p := problemOf(t, rig.get("wiki.test", "/"))
	assert.Equal(t, http.StatusServiceUnavailable, p.Status)
	rig.woken()
	assert.True(t, rig.wakes[0].Unreachable)
	assert.EqualValues(t, 1, rig.wakes[0].Generation)
}

// Two containers swapped their addresses: connections to the old one must not
// carry requests for the new one.
func TestConnectionsBelongToTheReplicaNotToItsAddress(t *testing.T) {
	connections := make(chan net.Conn, 10)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := serveUpstream(t, connTap{listener, connections}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.RemoteAddr)
	}))
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, addr)
	first := body(t, rig.get("wiki.test", "/"))
	require.Equal(t, first, body(t, rig.get("wiki.test", "/")), "the connection is kept for the same replica")
	old := <-connections
	rig.ready("wiki", 2, addr)
	require.NotEqual(t, first, body(t, rig.get("wiki.test", "/")), "another replica at that address gets its own")
	_ = old.SetReadDeadline(time.Now().Add(patience))
	_, err = old.Read(make([]byte, 1))
	assert.True(t, err != nil && !isTimeout(err), "the old connection is closed, not left: %v", err)
}

func isTimeout(err error) bool {
	t, ok := err.(net.Error)
	return ok && t.Timeout()
}

// connTap hands out every connection that was accepted.
type connTap struct {
	net.Listener
	accepted chan net.Conn
}

func (c connTap) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.accepted <- conn
	}
	return conn, err
}

// A workload may close a kept connection just as it is used again.
func TestStaleConnectionIsNotTheClientsProblem(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveOneThenHangUp(conn)
		}
	}()
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, listener.Addr().String())
	for range 20 {
		res := rig.get("wiki.test", "/")
		require.Equal(t, http.StatusOK, res.StatusCode)
		body(t, res)
	}
}

// A replica that dies takes with it what it was answering. What may be asked
// twice is asked of another; everything else is told so.
func TestWhatAReplicaDiedUnderIsAskedOfAnotherWhereThatIsSafe(t *testing.T) {
	for method, again := range map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "POST": false, "DELETE": false, "PUT": false} {
		var dying, living atomic.Int32
		rig := newRig(t, rigConfig{}, wiki())
		rig.ready("wiki", 1, upstream(t, func(http.ResponseWriter, *http.Request) {
			dying.Add(1)
			panic(http.ErrAbortHandler)
		}), upstream(t, func(http.ResponseWriter, *http.Request) { living.Add(1) }))
		ok, bad := 0, 0
		for range 60 {
			res := rig.do(method, "wiki.test", "/", nil)
			_ = body(t, res)
			if res.StatusCode == http.StatusOK {
				ok++
				continue
			}
			assert.Equal(t, http.StatusBadGateway, res.StatusCode)
			bad++
		}
		assert.EqualValues(t, ok, living.Load(), method)
		assert.LessOrEqual(t, int(dying.Load()), 7, "%s: the breaker opens", method)
		if again {
			assert.LessOrEqual(t, bad, int(dying.Load())/2, "%s: it fails only where chance took it to the dying one twice", method)
		} else {
			assert.EqualValues(t, bad, dying.Load(), "%s is sent once", method)
		}
	}
}

func TestARequestWithABodyIsNotAskedTwice(t *testing.T) {
	var seen atomic.Int32
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(http.ResponseWriter, *http.Request) {
		seen.Add(1)
		panic(http.ErrAbortHandler)
	}))
	res := rig.do(http.MethodGet, "wiki.test", "/", strings.NewReader("body"))
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	_ = body(t, res)
	assert.EqualValues(t, 1, seen.Load())
	res = rig.get("wiki.test", "/")
	_ = body(t, res)
	assert.Equal(t, http.StatusBadGateway, res.StatusCode)
	assert.EqualValues(t, 3, seen.Load(), "without one, twice and no more")
}

// serveOneThenHangUp answers the first request, and hangs up on the second
// when it has read it.
func serveOneThenHangUp(conn net.Conn) {
	defer conn.Close()
	requests := bufio.NewReader(conn)
	if _, err := http.ReadRequest(requests); err != nil {
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	_, _ = http.ReadRequest(requests)
}
