package router

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes the far end has not taken yet; 0 too, if that is
// not known.
func unsent(conn *net.TCPConn) (n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) // an error: it is closed
	return n
}
