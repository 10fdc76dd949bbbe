package lean

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketOf gives the socket of a connection of TCP; nil: it is none, or one
// whose bytes are not those of HTTP.
func socketOf(c net.Conn) syscall.RawConn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// numberOf gives the number of a socket, which is good for as long as it is
// open.
func numberOf(raw syscall.RawConn) (fd int) {
	fd = -1
	_ = raw.Control(func(number uintptr) { fd = int(number) }) // an error: it is closed
	return fd
}

// The sockets are not blocking, as the Go runtime has them, so the calls to
// them are made without telling the scheduler that they might.

// readSocket reads what there is, and does not wait.
func readSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, _, err := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, err
		}
	}
}

// writeSocket writes what there is room for, and does not wait.
func writeSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, _, err := unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, err
		}
	}
}

// silent reports an open socket without anything to read. It does not wait.
func silent(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := unix.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&one[0])), 1, unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
		if err != unix.EINTR {
			return err == unix.EAGAIN
		}
	}
}

// A lookout looks at many sockets at once.
type lookout struct{ polls []unix.PollFd }

// hungUp calls gone with the index of each socket whose far end has closed its
// side, also when there is unread data before that. It does not wait.
func (l *lookout) hungUp(fds []int, gone func(i int)) {
	l.polls = l.polls[:0]
	for _, fd := range fds {
		l.polls = append(l.polls, unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP})
	}
	if n, err := unix.Poll(l.polls, 0); n <= 0 || err != nil {
		return // it is asked again
	}
	for i, p := range l.polls {
		if p.Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0 {
			gone(i)
		}
	}
}
