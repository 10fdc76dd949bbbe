package router_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A frame is one of RFC 6455, section 5.2, as it is on the wire.
type frame struct {
	first byte // FIN, RSV1 to 3, opcode
	mask  []byte
	data  []byte
}

const (
	fin       = 0x80
	rsv1      = 0x40 // compressed, where that was agreed
	opText    = 0x1
	opBinary  = 0x2
	opClose   = 0x8
	opPing    = 0x9
	opPong    = 0xa
	opGoOn    = 0x0
	goingAway = 1001
)

func (f frame) bytes() []byte {
	b := []byte{f.first, 0}
	switch n := len(f.data); {
	case n < 126:
		b[1] = byte(n)
	case n < 1<<16:
		b[1] = 126
		b = binary.BigEndian.AppendUint16(b, uint16(n))
	default:
		b[1] = 127
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if f.mask != nil {
		b[1] |= 0x80
		b = append(b, f.mask...)
	}
	return append(b, f.data...)
}

// readFrame reads one as it is, masked or not.
func readFrame(r io.Reader) (frame, error) {
	var head [2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{first: head[0]}
	n := uint64(head[1] & 0x7f)
	if wide := map[uint64]int{126: 2, 127: 8}[n]; wide > 0 {
		var size [8]byte
		if _, err := io.ReadFull(r, size[8-wide:]); err != nil {
			return frame{}, err
		}
		n = binary.BigEndian.Uint64(size[:])
	}
	if head[1]&0x80 != 0 {
		f.mask = make([]byte, 4)
		if _, err := io.ReadFull(r, f.mask); err != nil {
			return frame{}, err
		}
	}
	f.data = make([]byte, n)
	_, err := io.ReadFull(r, f.data)
	return f, err
}

// closing is the body of a close frame.
func closing(code uint16, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, code), reason...)
}

// mirror is a workload that sends every frame back without its mask, and ends
// with the one that closes.
func mirror(w http.ResponseWriter, r *http.Request) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n"+
		"Sec-WebSocket-Extensions: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]),
		r.Header.Get("Sec-Websocket-Extensions"), r.Header.Get("Sec-Websocket-Protocol"))
	for {
		f, err := readFrame(buffered)
		if err != nil {
			return
		}
		f.mask = nil
		if _, err := conn.Write(f.bytes()); err != nil || f.first&0xf == opClose {
			return
		}
	}
}

// shake asks for a WebSocket, with whatever follows at once.
func (c *wire) shake(follows ...byte) []string {
	c.t.Helper()
	c.say("GET /ws HTTP/1.1\r\nHost: wiki.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"+
		"Sec-WebSocket-Protocol: chat\r\n\r\n%s", follows)
	return c.head()
}

var mask = []byte{1, 2, 3, 4}

func TestWebSocketHandshakePassesUntouched(t *testing.T) {
	warmAndCold(t, serving(mirror), func(t *testing.T, rig *rig) {
		c := rig.wire()
		head := c.shake()
		assert.Equal(t, "HTTP/1.1 101 Switching Protocols", head[0])
		for _, line := range []string{
			"Upgrade: websocket", "Connection: Upgrade", "Sec-Websocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
			"Sec-Websocket-Extensions: permessage-deflate; client_max_window_bits", "Sec-Websocket-Protocol: chat",
		} {
			assert.Contains(t, head, line)
		}
		require.NoError(t, c.Close())
	})
}

// Frames of every kind and length, the odd ones too: what they mean is between
// the two ends.
func TestWebSocketFramesPassAsTheyAre(t *testing.T) {
	random := make([]byte, 1<<17)
	_, _ = rand.Read(random)
	frames := []frame{
		{fin | opText, mask, []byte("whole")},
		{fin | opText, mask, nil},
		{opText, mask, []byte("in ")},
		{fin | opPing, mask, []byte("in the middle")},
		{opGoOn, mask, []byte("three ")},
		{fin | opPong, mask, nil},
		{fin | opGoOn, mask, []byte("fragments")},
		{fin | rsv1 | opText, mask, []byte{0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00}}, // "Hello", compressed: RFC 7692, 7.2.3.1
		{rsv1 | opText, mask, []byte{0xf2, 0x48, 0xcd}},
		{fin | opGoOn, mask, []byte{0xc9, 0xc9, 0x07, 0x00}},
		{fin | 0x7, mask, []byte("an opcode that nobody knows")},
		{fin | 0x30 | opBinary, mask, []byte("bits that nobody agreed on")},
		{fin | opText, mask, []byte{0xff, 0xfe}}, // not UTF-8
	}
	for _, n := range []int{1, 125, 126, 127, 4095, 4096, 1<<16 - 1, 1 << 16, 1 << 17} {
		frames = append(frames, frame{fin | opBinary, mask, random[:n]})
	}
	frames = append(frames, frame{fin | opClose, mask, closing(4321, "as agreed")})
	warmAndCold(t, serving(mirror), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.shake()
		for i, sent := range frames {
			c.say("%s", sent.bytes())
			got, err := readFrame(c)
			require.NoError(t, err, i)
			assert.Equal(t, sent.first, got.first, i)
			assert.Nil(t, got.mask, i)
			assert.True(t, bytes.Equal(sent.data, got.data), i)
		}
		c.over()
	})
}

// Some clients do not wait for the answer before they send.
func TestTunnelTakesWhatCameWithTheAsk(t *testing.T) {
	warmAndCold(t, serving(mirror), func(t *testing.T, rig *rig) {
		c := rig.wire()
		c.shake(append(frame{fin | opText, mask, []byte("early")}.bytes(), frame{fin | opClose, mask, closing(1000, "")}.bytes()...)...)
		got, err := readFrame(c)
		require.NoError(t, err)
		assert.Equal(t, "early", string(got.data))
		got, err = readFrame(c)
		require.NoError(t, err)
		assert.EqualValues(t, fin|opClose, got.first)
		c.over()
	})
}

// Client and server of a library, which check what they are sent: messages of
// all sizes, compressed and not, pings and closes from both sides.
func TestWebSocketOfALibrary(t *testing.T) {
	for name, mode := range map[string]websocket.CompressionMode{
		"plain": websocket.CompressionDisabled, "deflate": websocket.CompressionContextTakeover, "deflate anew": websocket.CompressionNoContextTakeover,
	} {
		t.Run(name, func(t *testing.T) {
			ends := make(chan error, 4)
			warmAndCold(t, serving(chat(mode, ends)), func(t *testing.T, rig *rig) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				dial := func() *websocket.Conn {
					conn, res, err := websocket.Dial(ctx, "ws://"+rig.addr+"/ws", &websocket.DialOptions{
						Host: "wiki.test", Subprotocols: []string{"chat"}, CompressionMode: mode, CompressionThreshold: 1})
					require.NoError(t, err)
					assert.Equal(t, "chat", conn.Subprotocol())
					assert.Equal(t, mode != websocket.CompressionDisabled, strings.Contains(res.Header.Get("Sec-Websocket-Extensions"), "permessage-deflate"))
					conn.SetReadLimit(-1)
					return conn
				}
				conn := dial()
				for _, n := range []int{0, 1, 125, 126, 1 << 16, 1 << 20} {
					sent := strings.Repeat("x", n)
					require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte(sent)))
					kind, got, err := conn.Read(ctx)
					require.NoError(t, err)
					assert.Equal(t, websocket.MessageText, kind)
					assert.True(t, sent == string(got), "%d bytes", n)
				}
				require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte("ping me")))
				_, got, err := conn.Read(ctx)
				require.NoError(t, err)
				assert.Equal(t, "pinged", string(got))
				conn.CloseRead(ctx)
				require.NoError(t, conn.Ping(ctx))
				require.NoError(t, conn.Close(4000, "client is done"))
				assert.Equal(t, websocket.CloseError{Code: 4000, Reason: "client is done"}, closeOf(<-ends))

				conn = dial()
				require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte("close me")))
				_, _, err = conn.Read(ctx)
				assert.Equal(t, websocket.CloseError{Code: 4001, Reason: "server is done"}, closeOf(err))
				<-ends
			})
		})
	}
}

// chat is a workload that sends messages back, and tells how each connection
// ended.
func chat(mode websocket.CompressionMode, ends chan<- error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithoutCancel(r.Context())
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			Subprotocols: []string{"chat"}, CompressionMode: mode, CompressionThreshold: 1})
		if err != nil {
			return
		}
		conn.SetReadLimit(-1)
		for {
			kind, message, err := conn.Read(ctx)
			if err != nil {
				ends <- err
				return
			}
			switch string(message) {
			case "ping me":
				go func() {
					if conn.Ping(ctx) == nil {
						_ = conn.Write(ctx, kind, []byte("pinged"))
					}
				}()
			case "close me":
				ends <- conn.Close(4001, "server is done")
				return
			default:
				_ = conn.Write(ctx, kind, message)
			}
		}
	}
}

func closeOf(err error) (c websocket.CloseError) {
	errors.As(err, &c)
	return c
}

func TestWebSocketIsToldThatTheGatewayStops(t *testing.T) {
	for _, f := range []front{fronts[0], fronts[1]} {
		t.Run(f.name, func(t *testing.T) {
			ends := make(chan error, 1)
			rig := newRig(t, f.server(t), wiki())
			rig.ready("wiki", 1, upstream(t, chat(websocket.CompressionDisabled, ends)))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			conn, _, err := websocket.Dial(ctx, f.scheme+"://"+rig.addr+"/", &websocket.DialOptions{
				Host: "wiki.test", HTTPClient: &http.Client{Transport: transport}, Subprotocols: []string{"chat"}})
			require.NoError(t, err)
			require.NoError(t, conn.Write(ctx, websocket.MessageText, []byte("still here")))
			_, _, err = conn.Read(ctx)
			require.NoError(t, err)
			rig.stop()
			_, _, err = conn.Read(ctx)
			assert.Equal(t, websocket.StatusCode(goingAway), closeOf(err).Code)
			assert.Equal(t, websocket.StatusCode(goingAway), closeOf(<-ends).Code, "the client's answer reached the workload")
			require.NoError(t, <-rig.served)
		})
	}
}

// A word in the middle of a frame would be taken for a part of it.
func TestWebSocketInTheMiddleOfAFrameIsToldNothing(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	part := frame{fin | opBinary, nil, make([]byte, 1000)}.bytes()[:500]
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n%s", part)
		_, _ = io.Copy(io.Discard, conn)
	}))
	c := rig.wire()
	c.shake()
	got := make([]byte, len(part))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	assert.Equal(t, part, got)
	rig.stop()
	c.over()
	require.NoError(t, <-rig.served)
}

func TestTunnelCountsWhatItCarries(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, mirror))
	c := rig.wire()
	c.shake()
	c.say("%s", frame{fin | opClose, mask, closing(1000, "")}.bytes())
	_, err := readFrame(c)
	require.NoError(t, err)
	c.over()
	e := rig.entry(func(e entry) bool { return e.Status == http.StatusSwitchingProtocols })
	assert.EqualValues(t, 4, e.Bytes)
}
