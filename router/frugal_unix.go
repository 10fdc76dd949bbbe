//go:build unix

package router

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// frugal reads from a connection with a buffer that it takes only when there
// is something to read; nil: the connection is none of the system's alone.
func (b *buffers) frugal(conn net.Conn) func(to func([]byte) error) error {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return func(to func([]byte) error) error {
		var buf *[copyBufferSize]byte
		var n int
		var failed error
		err := raw.Read(func(fd uintptr) bool {
			buf = b.get()
			if n, failed = read(int(fd), buf[:]); failed != unix.EAGAIN {
				return true
			}
			b.put(buf)
			buf = nil
			return false
		})
		if buf != nil {
			defer b.put(buf)
		}
		switch {
		case err != nil:
			return err
		case failed != nil:
			return failed
		case n == 0:
			return io.EOF
		}
		return to(buf[:n])
	}
}

func read(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err != unix.EINTR {
			return n, err
		}
	}
}
