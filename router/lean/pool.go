package lean

import (
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// maxIdle is the most connections of a pool that are kept.
const maxIdle = 1024

// A Pool is the connections to one server. It is safe for concurrent use.
type Pool struct {
	// Dial makes one; nothing has been sent when it fails.
	Dial func() (net.Conn, error)
	// Drop says which fields of an answer, by their canonical names, are about
	// the connection and go no further.
	Drop func(name string) bool

	mu     sync.Mutex
	idle   []*link   // the last one used is the last; guarded by mu
	now    time.Time // of the last sweep; guarded by mu
	closed bool      // guarded by mu
}

// A link is a connection to a server, which one request uses at a time.
type link struct {
	net.Conn
	raw    syscall.RawConn
	fd     uintptr
	since  time.Time // idle
	reused bool

	step func(uintptr) bool // askOnce
	out  []byte             // to be sent by it; nil: it is
	in   []byte             // what it reads is for
	sent int
	read int
	err  error
}

// get gives an idle connection, or a new one. One that its server has closed,
// or on which something was said that nobody asked for, is none.
func (p *Pool) get() (*link, error) {
	for l := p.pop(); l != nil; l = p.pop() {
		if silent(l.fd) {
			l.reused = true
			return l, nil
		}
		l.close()
	}
	return p.dial()
}

func (p *Pool) dial() (*link, error) {
	c, err := p.Dial()
	if err != nil {
		return nil, err
	}
	l := &link{Conn: c, raw: socketOf(c)}
	if l.raw != nil {
		l.fd, l.step = uintptr(numberOf(l.raw)), l.askOnce
	}
	return l, nil
}

func (p *Pool) pop() *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	l := p.idle[last]
	p.idle[last] = nil
	p.idle = p.idle[:last]
	return l
}

// put gives back one that is at the end of an answer.
func (p *Pool) put(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || l.raw == nil || len(p.idle) >= maxIdle {
		l.close()
		return
	}
	l.since = p.now
	p.idle = append(p.idle, l)
}

// Close closes the idle connections now, and the others when the request is
// done that they are used for.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.purge(len(p.idle))
}

// Purge closes the idle connections.
func (p *Pool) Purge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.purge(len(p.idle))
}

// Sweep closes the connections that have been idle for longer than most. To be
// called now and then: it is by its times that the pool knows how late it is.
func (p *Pool) Sweep(now time.Time, most time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.idle {
		if l.since.IsZero() { // from before the first sweep
			l.since = now
		}
	}
	p.now = now
	n := 0
	for n < len(p.idle) && now.Sub(p.idle[n].since) > most {
		n++
	}
	p.purge(n)
}

// purge closes the first n. Under the lock.
func (p *Pool) purge(n int) {
	for _, l := range p.idle[:n] {
		l.close()
	}
	kept := copy(p.idle, p.idle[n:])
	clear(p.idle[kept:])
	p.idle = p.idle[:kept]
}

// ask writes b, waits, and reads the beginning of the answer into p: without
// trying to read before anything can be there. If not all of b could be written
// at once, nothing is read, and the rest is the caller's to write.
func (l *link) ask(b, p []byte) (sent, read int, err error) {
	if l.raw == nil {
		return 0, 0, nil
	}
	l.out, l.in, l.sent, l.read, l.err = b, p, 0, 0, nil
	err = l.raw.Read(l.step)
	l.out, l.in = nil, nil
	switch {
	case err == nil && l.err == syscall.EAGAIN: // no room to write
	case err == nil && l.err != nil:
		err = &net.OpError{Op: "ask", Net: "tcp", Addr: l.RemoteAddr(), Err: l.err}
	case err == nil && l.read == 0 && l.sent == len(b):
		err = io.EOF
	}
	return l.sent, l.read, err
}

// askOnce is called before the runtime waits for the socket to be readable,
// and after. The runtime forgets before the first call that it was readable,
// so nothing that comes after what is written here is missed.
func (l *link) askOnce(fd uintptr) bool {
	if l.out != nil {
		whole := len(l.out)
		l.sent, l.err = writeSocket(fd, l.out)
		l.out = nil
		return l.err != nil || l.sent < whole
	}
	l.read, l.err = readSocket(fd, l.in)
	if l.err == syscall.EAGAIN {
		l.err = nil
		return false
	}
	return true
}

func (l *link) close() { _ = l.Close() } // nobody is there who could be told
