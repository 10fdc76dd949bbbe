//go:build linux

package openloop

import (
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

// state of a slot of the pool.
type state int

const (
	empty      state = iota // without a connection
	connecting              // for a request, or before the start
	idle                    // connected, without a request
	busy                    // with a request
)

// A conn is a slot of the pool and the connection in it.
type conn struct {
	slot       int
	generation int32 // counts the connections of the slot
	fd         int
	state      state
	writing    bool // waits until more can be written

	request bool // one is on it, or waits for it to be connected
	send    send
	out     []byte // still to be written, in this order
	rest    []byte
	buffer  []byte // what out is a part of
	answer  http1.Answer
	check   check
}

// unsent tells whether a part of the request is still to be written.
func (c *conn) unsent() bool { return len(c.out)+len(c.rest) > 0 }

// load makes the request's bytes ready.
func (c *conn) load(t *target, id http1.ID) {
	c.check.reset(t, id)
	c.answer.Reset(t.noBody)
	c.answer.Body = &c.check
	c.buffer = t.template.Append(c.buffer[:0], id)
	c.out, c.rest = c.buffer, t.template.Rest()
}

// write as much as the socket takes.
func (c *conn) write() error {
	for c.unsent() {
		from := &c.out
		if len(c.out) == 0 {
			from = &c.rest
		}
		n, err := unix.Write(c.fd, *from)
		switch err {
		case nil:
			*from = (*from)[n:]
		case unix.EAGAIN:
			return nil
		case unix.EINTR:
		default:
			return err
		}
	}
	return nil
}

// dial begins to connect; connected tells that it is done already.
func (c *conn) dial(address *net.TCPAddr) (connected bool, err error) {
	family, where := sockaddr(address)
	c.fd, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false, os.NewSyscallError("socket", err)
	}
	c.generation++
	_ = unix.SetsockoptInt(c.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // it is a TCP socket
	switch err := unix.Connect(c.fd, where); err {
	case nil:
		return true, nil
	case unix.EINPROGRESS, unix.EINTR:
		return false, nil
	default:
		return false, err
	}
}

func sockaddr(address *net.TCPAddr) (family int, where unix.Sockaddr) {
	if ip := address.IP.To4(); ip != nil {
		return unix.AF_INET, &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(ip)}
	}
	six := &unix.SockaddrInet6{Port: address.Port, Addr: [16]byte(address.IP.To16())}
	if zone, err := net.InterfaceByName(address.Zone); err == nil {
		six.ZoneId = uint32(zone.Index)
	}
	return unix.AF_INET6, six
}

// refusal tells how a connect ended: nil if well.
func (c *conn) refusal() error {
	code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	return err
}

// hangUp closes it; at once, where a port in TIME_WAIT for each request would
// use all of them up.
func (c *conn) hangUp(atOnce bool) {
	if c.fd < 0 {
		return
	}
	if atOnce {
		_ = unix.SetsockoptLinger(c.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(c.fd) // nothing of it is of interest any more
	c.fd = -1
	c.out, c.rest, c.writing = nil, nil, false
}
