package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// halfTimeout is how long one direction of a tunnel may be silent once the
// other has ended: whoever is done and does not hang up holds no workload
// awake.
const halfTimeout = 10 * time.Second

var errSwitch = errors.New("the workload switched to a protocol that was not asked for")

// A tunnel carries what the client and the workload say to each other once
// they have agreed to leave HTTP. It does not look into it, but for where a
// frame of a WebSocket ends. While nobody speaks, a tunnel in cleartext holds
// no buffer.
type tunnel struct {
	front, back net.Conn // the client's and the workload's
	buffers     *buffers
	websocket   bool
	frames      frames // what the workload said
	limits      *limits
	stopping    atomic.Bool
}

// tunnel goes on in the protocol that the workload agreed to, until both
// sides have ended.
func (x *exchange) tunnel(out *outgoing, res *http.Response) {
	defer res.Body.Close()
	protocol := res.Header.Get("Upgrade")
	if !offers(out.req.Header["Upgrade"], protocol) || out.conn == nil {
		x.refuse(fmt.Errorf("%w: %q", errSwitch, protocol))
		return
	}
	front, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.refuse(fmt.Errorf("switch protocols: %w", err))
		return
	}
	defer front.Close()
	x.status = res.StatusCode
	t := &tunnel{front: front, back: out.conn, buffers: x.router.buffers, limits: x.limits, websocket: strings.EqualFold(protocol, "websocket")}
	x.limits.tunnelled()
	defer context.AfterFunc(out.Context, t.stop)()
	if err := t.open(x.switched(res, protocol), buffered.Reader, res.Body); err == nil {
		t.carry()
	}
	x.bytes = t.frames.bytes
}

// offers reports that the protocol is one of those asked for.
func offers(asked []string, protocol string) bool {
	for _, line := range asked {
		for one := range strings.SplitSeq(line, ",") {
			if protocol != "" && strings.EqualFold(strings.TrimSpace(one), protocol) {
				return true
			}
		}
	}
	return false
}

// switched is the head of the answer that agrees.
func (x *exchange) switched(res *http.Response, protocol string) http.Header {
	head := http.Header{}
	passHeader(head, res.Header)
	x.tell(head)
	setUpgrade(head, protocol)
	return head
}

// open sends the head, and what either side had said before it: net/http and
// the transport have read it with what they were to read.
func (t *tunnel) open(head http.Header, front interface {
	io.Reader
	Buffered() int
}, back io.Reader) error {
	res := http.Response{StatusCode: http.StatusSwitchingProtocols, ProtoMajor: 1, ProtoMinor: 1, Header: head}
	if err := res.Write(t.front); err != nil {
		return err
	}
	early := make([]byte, front.Buffered())
	if _, err := io.ReadFull(front, early); err != nil {
		return err
	}
	if _, err := t.back.Write(early); err != nil {
		return err
	}
	return t.openBack(back)
}

// openBack sends on what the transport has read after the head. It gives it
// out before it looks at the connection, which is told not to read.
func (t *tunnel) openBack(body io.Reader) error {
	_ = t.back.SetReadDeadline(time.Unix(1, 0))
	buf := t.buffers.get()
	defer t.buffers.put(buf)
	for {
		n, err := body.Read(buf[:])
		if werr := t.tell(buf[:n]); werr != nil {
			return werr
		}
		var late net.Error
		if errors.As(err, &late) && late.Timeout() {
			break
		}
		if err != nil {
			return err
		}
	}
	return t.back.SetReadDeadline(time.Time{})
}

// tell writes to the client what the workload said.
func (t *tunnel) tell(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	t.limits.heard()
	n, err := t.front.Write(p)
	t.frames.pass(p[:n], t.websocket)
	return err
}

// pass writes to the workload what the client said.
func (t *tunnel) pass(p []byte) error {
	t.limits.heard()
	_, err := t.back.Write(p)
	return err
}

// carry copies both ways until both have ended, or one has failed.
func (t *tunnel) carry() {
	up := &flow{from: t.front, to: t.pass}
	down := &flow{from: t.back, to: t.tell}
	var ended sync.WaitGroup
	ended.Go(func() {
		if t.copy(up) != nil || !halfClose(t.back) {
			_ = t.back.SetDeadline(time.Unix(1, 0))
		} else if t.websocket { // which knows no such thing as half an end
			down.hurry()
		}
	})
	switch err := t.copy(down); {
	case t.stopping.Load():
		t.farewell(up)
	case err != nil || !halfClose(t.front):
		_ = t.front.SetDeadline(time.Unix(1, 0))
	default:
		up.hurry()
	}
	ended.Wait()
}

// A flow is one direction of a tunnel.
type flow struct {
	from    net.Conn
	to      func([]byte) error
	hurried atomic.Bool
}

// hurry bounds every silence from now on.
func (f *flow) hurry() {
	f.hurried.Store(true)
	_ = f.from.SetReadDeadline(time.Now().Add(halfTimeout))
}

// copy ends with nil when the source has.
func (t *tunnel) copy(f *flow) error {
	read := t.reader(f.from)
	for {
		err := read(f.to)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if f.hurried.Load() {
			_ = f.from.SetReadDeadline(time.Now().Add(halfTimeout))
		}
	}
}

// plainBuffer is what a direction holds whose source cannot be waited for
// without a buffer: TLS.
const plainBuffer = 8 << 10

// reader reads once from a connection, and hands on what it read.
func (t *tunnel) reader(conn net.Conn) func(to func([]byte) error) error {
	if frugal := t.buffers.frugal(conn); frugal != nil {
		return frugal
	}
	buf := make([]byte, plainBuffer)
	return func(to func([]byte) error) error {
		n, err := conn.Read(buf)
		if n > 0 {
			if werr := to(buf[:n]); werr != nil {
				return werr
			}
		}
		return err
	}
}

// halfClose says to the far end that no more will come.
func halfClose(conn net.Conn) bool {
	c, ok := conn.(interface{ CloseWrite() error })
	return ok && c.CloseWrite() == nil
}

// stop ends the tunnel, because the gateway stops or nothing was said for too
// long: the workload is not heard any more.
func (t *tunnel) stop() {
	t.stopping.Store(true)
	_ = t.back.SetReadDeadline(time.Unix(1, 0))
}

// farewellTimeout is how long a client may take to answer a close.
const farewellTimeout = cutGrace / 2

// farewell closes a WebSocket as RFC 6455 wants it, where a frame has just
// ended, and waits for the client's own close, which the workload gets. What
// else there is just ends.
func (t *tunnel) farewell(up *flow) {
	if t.websocket && t.frames.between() {
		if _, err := t.front.Write(goingAway); err == nil && halfClose(t.front) {
			_ = up.from.SetReadDeadline(time.Now().Add(farewellTimeout))
			return
		}
	}
	_ = t.front.SetDeadline(time.Unix(1, 0))
}
