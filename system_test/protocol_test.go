package system_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mimics describes processes of the sample workload, one for each
// name, at NAME.test.
func mimics(t *testing.T, names ...string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("docker: { host: \"\" }\nworkloads:\n")
	for _, name := range names {
		fmt.Fprintf(&b, "  - name: %s\n    host: [%s.test]\n    process: { command: [%q, mimic, --listen, \"127.0.0.1:{port}\", --startup, 100ms] }\n",
			name, name, binary(t, "loadtest"))
	}
	return b.String()
}

// Each of these meets its workload asleep, and then awake.
func TestProtocolsThroughTheRealProgram(t *testing.T) {
	protocols := map[string]func(*testing.T, *node, string){
		"http10": talkHTTP10, "pipelined": talkPipelined, "duplex": talkDuplex, "trailers": talkTrailers,
		"sse": talkEvents, "websocket": talkWebSocket, "http2": talkHTTP2,
	}
	var names []string
	for name := range protocols {
		names = append(names, name)
	}
	n := start(t, plan{role: "up", dir: t.TempDir(), config: mimics(t, names...)})
	t.Run("all", func(t *testing.T) {
		for name, talk := range protocols {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, state := range []string{"asleep", "ready"} {
					n.waitPhase(name, state)
					talk(t, n, name+".test")
				}
			})
		}
	})
}

// dial opens a connection to the node's traffic port.
func (n *node) dial(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.traffic, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn, bufio.NewReader(conn)
}

func talkHTTP10(t *testing.T, n *node, host string) {
	conn, in := n.dial(t)
	fmt.Fprintf(conn, "GET /chunked?n=3&every=1ms HTTP/1.0\r\nHost: %s\r\n\r\n", host)
	all, err := io.ReadAll(in)
	require.NoError(t, err)
	assert.NotContains(t, strings.ToLower(string(all)), "transfer-encoding")
	assert.True(t, strings.HasSuffix(string(all), "\r\n\r\nchunk 1\nchunk 2\nchunk 3\n"), "%s", all)
}

func talkPipelined(t *testing.T, n *node, host string) {
	conn, in := n.dial(t)
	for i := range 3 {
		fmt.Fprintf(conn, "POST /echo HTTP/1.1\r\nHost: %s\r\nContent-Length: 1\r\n\r\n%d", host, i)
	}
	for i := range 3 {
		res, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		b, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		assert.Equal(t, strconv.Itoa(i), string(b))
	}
}

func talkDuplex(t *testing.T, n *node, host string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, in := io.Pipe()
	go fmt.Fprintln(in, 0)
	res, err := n.open(ctx, http.MethodPost, host, "/echo", out)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 3 { // each comes back before the next is sent
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintln(i), line)
		fmt.Fprintln(in, i+1)
	}
	require.NoError(t, in.Close())
}

func talkTrailers(t *testing.T, n *node, host string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.traffic+"/trailers", io.MultiReader(strings.NewReader("body")))
	require.NoError(t, err)
	req.Host, req.Trailer = host, http.Header{"Mimic-Sent": {"sum"}}
	res, err := client.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	_, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, http.Header{"Mimic-Length": {"4"}, "Mimic-Received": {"sum"}}, res.Trailer)
}

func talkEvents(t *testing.T, n *node, host string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	res, err := n.open(ctx, http.MethodGet, host, "/sse?every=10m", nil)
	require.NoError(t, err)
	defer res.Body.Close()
	line, err := bufio.NewReader(res.Body).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "id: 1\n", line, "though the next one is ten minutes away")
}

func talkWebSocket(t *testing.T, n *node, host string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, n.traffic+"/ws", &websocket.DialOptions{Host: host})
	require.NoError(t, err)
	require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte("hello")))
	_, got, err := conn.Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(got))
	require.NoError(t, conn.Close(websocket.StatusNormalClosure, ""))
}

func talkHTTP2(t *testing.T, n *node, host string) {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.traffic+"/echo", strings.NewReader("hello"))
	require.NoError(t, err)
	req.Host = host
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(b))
	assert.Equal(t, 2, res.ProtoMajor)
}

var webSockets = flag.Int("websockets", 200, "idle WebSockets to open; above 1000, through a program without race detector")

// How much memory an idle WebSocket costs is written to the test's log. The
// test is that all of them are served, and still when all are there.
func TestIdleWebSocketsAreServed(t *testing.T) {
	count := *webSockets
	p := plan{role: "up", dir: t.TempDir(), config: mimics(t, "chat") + "access_log: { format: \"off\" }\n"}
	if count > 1000 {
		p.program = filepath.Join(t.TempDir(), "rouse")
		out, err := exec.Command("go", "build", "-o", p.program, "../cmd/rouse").CombinedOutput()
		require.NoError(t, err, string(out))
	}
	n := start(t, p)
	talkWebSocket(t, n, "chat.test")
	before := residentKiB(t, n)
	conns := make([]net.Conn, count)
	places := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range conns {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			conns[i] = idleWebSocket(t, n, i)
		})
	}
	all.Wait()
	defer func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close()
			}
		}
	}()
	v := n.waitInFlight("chat", count)
	after := residentKiB(t, n)
	t.Logf("%d idle WebSockets: %d KiB resident before, %d with them, %.1f KiB each", v.InFlight, before, after,
		float64(after-before)/float64(count))
	for i := 0; i < count; i += max(1, count/50) {
		require.NotNil(t, conns[i])
		_, err := conns[i].Write([]byte("\x81\x82\x00\x00\x00\x00hi"))
		require.NoError(t, err)
		got := make([]byte, 4)
		_, err = io.ReadFull(conns[i], got)
		require.NoError(t, err)
		assert.Equal(t, "\x81\x02hi", string(got))
	}
	talkWebSocket(t, n, "chat.test")
}

// idleWebSocket opens one that says nothing. Many come from several addresses
// of this machine, each of which has some 28,000 ports.
func idleWebSocket(t *testing.T, n *node, i int) net.Conn {
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/20_000))}
	conn, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", strings.TrimPrefix(n.traffic, "http://"))
	if !assert.NoError(t, err) {
		return nil
	}
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: chat.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil)
	if assert.NoError(t, err) {
		assert.Equal(t, http.StatusSwitchingProtocols, res.StatusCode)
	}
	return conn
}

func (n *node) waitInFlight(name string, count int) (v view) {
	n.t.Helper()
	eventually(n.t, fmt.Sprint(count, " requests in flight"), func() bool {
		var err error
		v, err = n.view(name)
		return err == nil && v.InFlight == count
	})
	return v
}

// residentKiB is the memory that a node's process has.
func residentKiB(t *testing.T, n *node) int {
	t.Helper()
	require.NoError(t, n.cmd.Process.Signal(syscall.Signal(0)))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		t.Skip("no /proc here: ", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, err := strconv.Atoi(fields[1])
			require.NoError(t, err)
			return kib
		}
	}
	t.Fatal("no VmRSS")
	return 0
}
