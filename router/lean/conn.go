package lean

import (
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A conn is the connection of a client. Its own goroutine uses it, but for
// what is said of the fields.
type conn struct {
	net.Conn
	server *Server
	raw    syscall.RawConn
	fd     int
	remote string
	known  any          // see Writer.Know
	blank  http.Request // a request of this connection, before anything is in it

	w    *Writer            // with what has been read and not used yet; nil: nothing
	fill func(uintptr) bool // readOnce
	read int                // by readOnce
	err  error              // of readOnce

	// until is when the client must have said more, in Unix nanoseconds: an
	// odd number where it has begun to. 0: it is not waited for; expired: the
	// time is over. For concurrent use.
	until atomic.Int64
	began bool // it has sent something once

	mu      sync.Mutex // guards what follows
	link    *link      // that carries the request; nil: none
	aborted bool       // whatever is sent for the request under way ends in an error
	request uint64     // counts them
}

// attach says which link carries the request; false: none may any more.
func (c *conn) attach(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.aborted {
		return false
	}
	c.link = l
	return true
}

// detach takes the link from the request; false: it has been broken off.
func (c *conn) detach() (fit bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
	return !c.aborted
}

// abort breaks off what is sent for the request under way. For concurrent
// use, as is abortRequest.
func (c *conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakOff()
}

// abortRequest does so if that is the one with this number.
func (c *conn) abortRequest(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == number {
		c.breakOff()
	}
}

func (c *conn) breakOff() {
	c.aborted = true
	if c.link != nil {
		_ = c.link.SetDeadline(longAgo) // it is closed already
	}
}

func (c *conn) hasAborted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aborted
}

// nextRequest is the end of the one under way.
func (c *conn) nextRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request++
	c.aborted = false
}

const expired = -1

// serve is the life of the connection.
func (c *conn) serve() {
	defer c.server.leave(c)
	c.wait(c.server.HeadTimeout)
	for {
		if !c.await() {
			break
		}
		size, v := c.w.head.read(c.w.in[:c.w.have])
		if v == more && c.w.have < len(c.w.in) {
			c.waitForHead()
			continue
		}
		if c.until.Swap(0) == expired {
			break
		}
		if v != plain {
			c.handOver()
			return
		}
		if !c.answer(size) {
			break
		}
		c.wait(c.server.IdleTimeout)
	}
	_ = c.Close() // nobody is there who could be told
}

// wait begins a wait for a request.
func (c *conn) wait(limit time.Duration) {
	c.until.Store(time.Now().Add(limit).UnixNano() &^ 1)
	c.began = false
	if c.server.leaving.Load() {
		c.expire(func(bool, time.Time) bool { return true })
	}
}

// waitForHead gives the rest of a head its time, once.
func (c *conn) waitForHead() {
	if !c.began {
		c.began = true
		if before := c.until.Load(); before != expired {
			c.until.CompareAndSwap(before, time.Now().Add(c.server.HeadTimeout).UnixNano()|1)
		}
	}
	c.w.fresh = false
}

// expire ends the wait for the client if it is over. For concurrent use.
func (c *conn) expire(over func(idle bool, until time.Time) bool) {
	until := c.until.Load()
	if until > 0 && over(until&1 == 0, time.Unix(0, until)) && c.until.CompareAndSwap(until, expired) {
		_ = c.SetReadDeadline(longAgo) // it is closed already
	}
}

var longAgo = time.Unix(1, 0)

// await waits until there are bytes that have not been looked at. False: there
// will be none, or they came too late.
func (c *conn) await() bool {
	if c.w == nil || !c.w.fresh {
		if err := c.raw.Read(c.fill); err != nil || c.err != nil || c.read == 0 {
			c.drop()
			return false
		}
		c.w.have += c.read
		c.w.fresh = true
	}
	return true
}

// readOnce reads what there is; false: nothing. The buffer is taken only when
// there is something to read.
func (c *conn) readOnce(fd uintptr) bool {
	if c.w == nil {
		c.w = c.server.writer()
	}
	c.read, c.err = readSocket(fd, c.w.in[c.w.have:])
	if c.err != syscall.EAGAIN {
		return true
	}
	c.err = nil
	if c.w.have == 0 {
		c.drop()
	}
	return false
}

// drop gives the writer back; nothing of it is needed any more.
func (c *conn) drop() {
	if c.w != nil && !c.w.kept {
		c.w.have, c.w.fresh = 0, false
		c.w.head.reset()
		c.server.writers.Put(c.w)
	}
	c.w = nil
}

// handOver gives the connection away, with what has been read of it.
func (c *conn) handOver() {
	early := append([]byte(nil), c.w.in[:c.w.have]...)
	c.drop()
	c.server.HandOver(&handed{Conn: c.Conn, early: early})
}

// answer has the handler answer the request at the beginning of what has been
// read, and reports whether the connection goes on.
func (c *conn) answer(size int) bool {
	w := c.w
	w.begin(c, size)
	ok := c.handle(w) && w.finish()
	c.nextRequest()
	rest := w.end()
	if w.kept { // its bytes are somebody's strings
		next := c.server.writer()
		next.have = copy(next.in[:], w.in[rest:w.have])
		c.w = next
	} else {
		w.have = copy(w.in[:], w.in[rest:w.have])
	}
	c.w.fresh = c.w.have > 0
	if !ok {
		c.drop()
		return false
	}
	if !c.w.fresh {
		c.drop()
	}
	return true
}

// handle calls the handler; false: it broke off.
func (c *conn) handle(w *Writer) (whole bool) {
	defer func() {
		if whole {
			return
		}
		w.kept = true // who knows who has it
		if p := recover(); p != http.ErrAbortHandler {
			c.server.Logger.Error("panic serving a request", "panic", p, slog.String("stack", string(debug.Stack())))
		}
		w.broken = true
		w.settle()
	}()
	c.server.Handler.ServeHTTP(w, &w.req)
	return true
}

// A handed connection begins with what has been read of it already.
type handed struct {
	net.Conn
	early []byte
}

func (h *handed) Read(p []byte) (int, error) {
	if len(h.early) == 0 {
		return h.Conn.Read(p)
	}
	n := copy(p, h.early)
	h.early = h.early[n:]
	return n, nil
}

// NetConn gives the connection behind.
func (h *handed) NetConn() net.Conn { return h.Conn }

// SyscallConn gives the socket, once nothing is left that it knows nothing of.
func (h *handed) SyscallConn() (syscall.RawConn, error) {
	if s, ok := h.Conn.(syscall.Conn); ok && len(h.early) == 0 {
		return s.SyscallConn()
	}
	return nil, syscall.EINVAL
}

// CloseWrite closes one direction.
func (h *handed) CloseWrite() error {
	if c, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return syscall.EINVAL
}
