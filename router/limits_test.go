package router_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/router"
	"github.com/rouse-dev/rouse/workload"
)

const (
	brief = 150 * time.Millisecond // a limit that is to run out
	long  = time.Second            // one that is not to
)

// until is a workload that reads a request, tells that it has, answers
// nothing, and tells when it hears that nobody waits any more.
func until(arrived, gone chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	}
}

// soon waits for what must happen.
func soon(t *testing.T, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		t.Fatal("it did not happen")
	}
}

func TestCancelIsFeltUpstreamOverEachProtocol(t *testing.T) {
	for _, f := range everyFront() {
		t.Run(f.name, func(t *testing.T) {
			arrived, gone := make(chan struct{}, 1), make(chan struct{}, 1)
			rig := newRig(t, f.server(t), wiki())
			rig.coldStart(upstream(t, until(arrived, gone)), 0, 0)
			transport := f.client()
			defer transport.CloseIdleConnections()
			for _, id := range []string{"cold", "warm"} {
				ctx, cancel := context.WithCancel(t.Context())
				req := rig.request(ctx, http.MethodPost, "wiki.test", "/", strings.NewReader("body"), "X-Request-ID", id)
				req.URL.Scheme = f.scheme
				ended := make(chan error, 1)
				go func() {
					_, err := transport.RoundTrip(req)
					ended <- err
				}()
				soon(t, arrived)
				cancel()
				soon(t, gone)
				require.ErrorIs(t, <-ended, context.Canceled)
				e := rig.entryOf(id)
				assert.Equal(t, 499, e.Status)
				assert.Equal(t, "canceled", e.Outcome)
				assert.Equal(t, id == "cold", e.Cold)
			}
			rig.inFlight("wiki", 0)
		})
	}
}

func TestAnswerThatDoesNotBeginIsATimeoutOfItsOwn(t *testing.T) {
	for name, set := range map[string]func(*workload.Workload){
		"response-timeout": func(w *workload.Workload) { w.ResponseTimeout = brief },
		"request-timeout":  func(w *workload.Workload) { w.RequestTimeout = brief },
	} {
		for _, f := range everyFront() {
			t.Run(name+" "+f.name, func(t *testing.T) {
				t.Parallel()
				arrived, gone := make(chan struct{}, 1), make(chan struct{}, 1)
				rig := newRig(t, f.server(t), wiki(set))
				// The hold is longer than the limit, and no part of it.
				rig.coldStart(upstream(t, until(arrived, gone)), 2*brief, 0)
				transport := f.client()
				defer transport.CloseIdleConnections()
				req := rig.request(t.Context(), http.MethodPost, "wiki.test", "/", strings.NewReader("body"), "X-Request-ID", "late")
				req.URL.Scheme = f.scheme
				res, err := transport.RoundTrip(req)
				require.NoError(t, err)
				p := problemOf(t, res)
				assert.Equal(t, http.StatusGatewayTimeout, p.Status)
				assert.Equal(t, "urn:rouse:problem:"+name, p.Type)
				soon(t, gone)
				e := rig.entryOf("late")
				assert.Equal(t, "timeout", e.Outcome)
				assert.GreaterOrEqual(t, e.Total-e.Queued, brief.Seconds())
				rig.inFlight("wiki", 0)
			})
		}
	}
}

// A body that takes its time to be sent is not the workload's silence.
func TestResponseTimeoutBeginsWhenTheRequestIsSent(t *testing.T) {
	t.Parallel()
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.ResponseTimeout = long }))
	rig.ready("wiki", 1, upstream(t, echo))
	out, in := io.Pipe()
	go func() {
		time.Sleep(long + brief)
		fmt.Fprint(in, "slow")
		in.Close()
	}()
	assert.Equal(t, "slow", body(t, rig.do(http.MethodPost, "wiki.test", "/", out)))
}

func TestRequestTimeoutCutsAnAnswerOff(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.RequestTimeout = brief }))
	rig.ready("wiki", 1, upstream(t, cuedForEver))
	res := rig.get("wiki.test", "/", "X-Request-ID", "cut")
	_, err := io.ReadAll(res.Body)
	require.Error(t, err)
	e := rig.entryOf("cut")
	assert.Equal(t, "timeout", e.Outcome)
	assert.Equal(t, http.StatusOK, e.Status)
}

// cuedForEver begins an answer and says no more.
func cuedForEver(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, "begun")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func TestSilenceTimeoutIsOfSilenceAlone(t *testing.T) {
	t.Parallel()
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.SilenceTimeout = long }))
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		for range 8 { // longer in all than the limit
			fmt.Fprintln(w, "tick")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(brief)
		}
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
		}
	}))
	assert.Equal(t, strings.Repeat("tick\n", 8), body(t, rig.get("wiki.test", "/")))
	res := rig.get("wiki.test", "/silent", "X-Request-ID", "silent")
	got, err := io.ReadAll(res.Body)
	require.Error(t, err)
	assert.Equal(t, strings.Repeat("tick\n", 8), string(got))
	assert.Equal(t, "timeout", rig.entryOf("silent").Outcome)
}

func TestTunnelIsBoundedBySilenceAlone(t *testing.T) {
	t.Parallel()
	ends := make(chan error, 1)
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.SilenceTimeout, w.RequestTimeout = long, long }))
	rig.ready("wiki", 1, upstream(t, chat(websocket.CompressionDisabled, ends)))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+rig.addr+"/", &websocket.DialOptions{Host: "wiki.test"})
	require.NoError(t, err)
	for range 8 {
		require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte("x")))
		_, _, err = conn.Read(ctx)
		require.NoError(t, err)
		time.Sleep(brief)
	}
	_, _, err = conn.Read(ctx)
	assert.Equal(t, websocket.StatusCode(goingAway), closeOf(err).Code)
	<-ends
	rig.inFlight("wiki", 0)
}

func TestSlowHeadIsHungUpOn(t *testing.T) {
	t.Parallel()
	rig := newRig(t, rigConfig{server: router.ServerConfig{HeaderTimeout: brief}}, wiki())
	for name, part := range map[string]string{"nothing": "", "a line": "GET / HTTP/1.1\r\n", "a field": "GET / HTTP/1.1\r\nHost: wi", "half a preface": "PRI * HTTP/2.0\r\n\r\n"} {
		c := rig.wire()
		c.say("%s", part)
		_, err := io.ReadAll(c.Reader)
		assert.False(t, err != nil && isTimeout(err), name)
	}
}

func TestSlowBodyIsARequestTimeout(t *testing.T) {
	for _, f := range everyFront() {
		t.Run(f.name, func(t *testing.T) {
			gone := make(chan struct{}, 2)
			cfg := f.server(t)
			cfg.router.BodyTimeout = brief
			warmAndCold(t, serving(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				gone <- struct{}{}
			}), func(t *testing.T, rig *rig) {
				transport := f.client()
				defer transport.CloseIdleConnections()
				out, in := io.Pipe()
				defer in.Close()
				go fmt.Fprint(in, "a part")
				req := rig.request(t.Context(), http.MethodPost, "wiki.test", "/", out)
				req.URL.Scheme, req.ContentLength = f.scheme, 1000
				res, err := transport.RoundTrip(req)
				require.NoError(t, err)
				p := problemOf(t, res)
				assert.Equal(t, http.StatusRequestTimeout, p.Status)
				assert.Equal(t, "urn:rouse:problem:slow-body", p.Type)
				soon(t, gone)
			}, cfg)
		})
	}
}

// A workload that does not read for a while is not the client's slowness.
func TestBodyThatItsWorkloadIsSlowToReadIsNotSlow(t *testing.T) {
	t.Parallel()
	const size = 32 << 20 // more than all buffers on the way
	rig := newRig(t, rigConfig{router: router.Config{BodyTimeout: long}}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(long + brief)
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}))
	req := rig.request(t.Context(), http.MethodPost, "wiki.test", "/", io.LimitReader(pattern{}, size))
	req.ContentLength = size
	res, err := client.Do(req)
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(size), body(t, res))
}

// Nobody is obliged to read what he asked for, but not at the cost of others.
func TestClientThatDoesNotReadIsHungUpOn(t *testing.T) {
	t.Parallel()
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: deaf\r\n\r\n",
		strings.Repeat("GET /small HTTP/1.1\r\nHost: wiki.test\r\n\r\n", 200) + "GET / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: deaf\r\n\r\n",
	} {
		rig := newRig(t, rigConfig{router: router.Config{WriteTimeout: brief}}, wiki())
		rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/small" {
				_, _ = io.Copy(w, pattern{})
			}
		}))
		c := rig.wire()
		c.say("%s", request)
		e := rig.entryOf("deaf")
		assert.Equal(t, "canceled", e.Outcome)
		rig.inFlight("wiki", 0)
	}
}

// Over HTTP/2 the connection may be in order, and one stream not be read.
func TestStreamThatIsNotReadIsReset(t *testing.T) {
	rig := newRig(t, rigConfig{router: router.Config{WriteTimeout: brief}}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/small" {
			_, _ = io.Copy(w, pattern{})
		}
	}))
	transport := h2c()
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(rig.request(t.Context(), http.MethodGet, "wiki.test", "/", nil, "X-Request-ID", "deaf"))
	require.NoError(t, err)
	assert.Equal(t, "canceled", rig.entryOf("deaf").Outcome)
	small, err := transport.RoundTrip(rig.request(t.Context(), http.MethodGet, "wiki.test", "/small", nil))
	require.NoError(t, err)
	assert.Empty(t, body(t, small), "the connection goes on")
	_, err = io.Copy(io.Discard, res.Body)
	require.Error(t, err)
}

// An answer may be long in coming, and its parts far apart.
func TestStreamThatHasNothingToSayIsNotABlockedOne(t *testing.T) {
	for _, f := range everyFront() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			cfg := f.server(t)
			cfg.router.WriteTimeout, cfg.router.BodyTimeout = long, long
			warmAndCold(t, serving(func(w http.ResponseWriter, _ *http.Request) {
				for range 2 {
					time.Sleep(long + brief)
					fmt.Fprintln(w, "tick")
					_ = http.NewResponseController(w).Flush()
				}
			}), func(t *testing.T, rig *rig) {
				transport := f.client()
				defer transport.CloseIdleConnections()
				assert.Equal(t, "tick\ntick\n", body(t, f.ask(t, rig, transport, "/")))
			}, cfg)
		})
	}
}

// Behind a proxy there are many clients.
func TestConnectionsOfATrustedProxyAreNotAClients(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skip("not to be had here: ", err)
		}
		rig := newRig(t, rigConfig{server: router.ServerConfig{ConnectionsPerClient: 1},
			router: router.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}}, wiki())
		rig.ready("wiki", 1, upstream(t, ok("served")))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- router.NewServer(router.ServerConfig{ConnectionsPerClient: 1, Grace: brief}, rig.router).Serve(ctx, l)
		}()
		for range 3 {
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer c.Close()
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
			_ = c.SetDeadline(time.Now().Add(patience))
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			assert.Equal(t, "served", body(t, res))
		}
		cancel()
		require.NoError(t, <-ended)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	for name, server := range map[string]router.ServerConfig{"in all": {Connections: 2}, "of a client": {ConnectionsPerClient: 2}} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t, rigConfig{server: server}, wiki())
			rig.ready("wiki", 1, upstream(t, ok("served")))
			serves := func(c net.Conn) bool {
				if c == nil {
					return false
				}
				_ = c.SetDeadline(time.Now().Add(patience))
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					require.False(t, isTimeout(err), err)
					return false
				}
				return body(t, res) == "served"
			}
			dial := func() net.Conn {
				c, err := net.Dial("tcp", rig.addr)
				if err != nil {
					return nil // hung up on before it knew
				}
				t.Cleanup(func() { c.Close() })
				return c
			}
			first, second := dial(), dial()
			require.True(t, serves(first))
			require.True(t, serves(second))
			require.False(t, serves(dial()))
			require.NoError(t, first.Close())
			require.Eventually(t, func() bool { return serves(dial()) }, patience, time.Millisecond, "a place is free again")
			require.True(t, serves(second))
		})
	}
}
