//go:build linux

package openloop

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

// An Upstream is a server in the thread of the generator. On a machine with
// few cores that is what lets a proxy have one for itself: two processes on
// one core spend more on each other than on the load. It knows requests
// without a body, and answers each with its X-Request-ID and padding.
type Upstream struct {
	// Listener is the descriptor of a socket that listens; it is not closed.
	Listener int
	// Delay is from a request read to its answer written.
	Delay time.Duration
	// Size of the answer's body; less than an id's length is that.
	Size int

	// Served counts the answers that were written. It may be read when the
	// run has ended.
	Served int64

	loop     *loop
	conns    map[int]*inbound // by descriptor
	answers  []pending        // a queue from first on: Delay is the same for all
	first    int
	template []byte // an answer but for its id
}

// An inbound connection, and what came of its next head.
type inbound struct {
	fd    int
	open  bool
	input []byte
}

// A pending answer waits for its time.
type pending struct {
	conn  *inbound
	at    time.Duration
	id    http1.ID
	close bool
}

// attach makes the upstream part of a loop.
func (u *Upstream) attach(l *loop) error {
	u.loop, u.conns = l, map[int]*inbound{}
	size := max(u.Size, http1.IDLength)
	u.template = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", size)
	u.template = append(u.template, bytes.Repeat([]byte("x"), size)...)
	if err := unix.SetNonblock(u.Listener, true); err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	return u.watch(u.Listener)
}

// watch has a descriptor told to the loop: below 0, where the connections of
// the generator are not.
func (u *Upstream) watch(fd int) error {
	event := unix.EpollEvent{Events: toRead, Fd: int32(-1 - fd)}
	if err := unix.EpollCtl(u.loop.poller.fd, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	return nil
}

func (u *Upstream) closeAll() {
	for _, c := range u.conns {
		u.hangUp(c)
	}
}

// handle what came at a descriptor.
func (u *Upstream) handle(fd int) {
	if fd == u.Listener {
		u.accept()
		return
	}
	if c := u.conns[fd]; c != nil && !u.read(c) { // none: closed within the same wait
		u.hangUp(c)
	}
}

func (u *Upstream) accept() {
	for {
		fd, _, err := unix.Accept4(u.Listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // EAGAIN: all were taken; else the client has left already
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it is a TCP socket
		c := &inbound{fd: fd, open: true}
		u.conns[fd] = c
		if u.watch(fd) != nil {
			u.hangUp(c)
		}
	}
}

func (u *Upstream) hangUp(c *inbound) {
	c.open = false
	delete(u.conns, c.fd)
	_ = unix.Close(c.fd) // nothing of it is of interest any more
}

// read what has come; false is the end of the connection.
func (u *Upstream) read(c *inbound) bool {
	for {
		n, err := unix.Read(c.fd, u.loop.input[:])
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			return true
		case err != nil || n == 0:
			return false
		}
		if !u.take(c, u.loop.input[:n]) {
			return false
		}
		if n < len(u.loop.input) {
			return true
		}
	}
}

// take the heads of requests; false is something else.
func (u *Upstream) take(c *inbound, b []byte) bool {
	if len(c.input) > 0 {
		c.input = append(c.input, b...)
		b = c.input
	}
	for len(b) > 0 {
		end := bytes.Index(b, []byte("\r\n\r\n"))
		if end < 0 {
			break
		}
		answer, known := readRequest(b[:end+2])
		if !known {
			return false
		}
		answer.conn, answer.at = c, u.loop.now()+u.Delay
		u.answers = append(u.answers, answer)
		b = b[end+4:]
	}
	c.input = append(c.input[:0], b...)
	return len(b) <= http1.MaxHead
}

// readRequest reads the headers that matter.
func readRequest(head []byte) (p pending, known bool) {
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("X-Request-ID")):
			copy(p.id[:], value)
		case bytes.EqualFold(name, []byte("Connection")):
			p.close = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return p, false
		case bytes.EqualFold(name, []byte("Content-Length")):
			if n, err := strconv.Atoi(string(value)); err != nil || n > 0 {
				return p, false
			}
		}
	}
	return p, true
}

// due tells when the next answer is to be written.
func (u *Upstream) due() (time.Duration, bool) {
	if u.first == len(u.answers) {
		return 0, false
	}
	return u.answers[u.first].at, true
}

// answer writes what is due.
func (u *Upstream) answer() {
	for at, some := u.due(); some && at <= u.loop.now(); at, some = u.due() {
		p := u.answers[u.first]
		u.first++
		u.write(p)
	}
	if 2*u.first >= len(u.answers) {
		u.answers = append(u.answers[:0], u.answers[u.first:]...)
		u.first = 0
	}
}

func (u *Upstream) write(p pending) {
	if !p.conn.open {
		return // it has left
	}
	copy(u.template[len(u.template)-max(u.Size, http1.IDLength):], p.id[:])
	n, err := unix.Write(p.conn.fd, u.template)
	if err == nil {
		u.Served++
	}
	if err != nil || n < len(u.template) || p.close { // or it leaves answers unread
		u.hangUp(p.conn)
	}
}
