//go:build !linux

package lean

import (
	"net"
	"syscall"
)

// socketOf gives none: what a system other than Linux tells of a client that
// leaves while its answer is waited for is not enough.
func socketOf(net.Conn) syscall.RawConn { return nil }

func readSocket(uintptr, []byte) (int, error) { return 0, syscall.ENOSYS }

func silent(uintptr) bool { return false }

func writeSocket(uintptr, []byte) (int, error) { return 0, syscall.ENOSYS }

type lookout struct{}

func (*lookout) hungUp([]int, func(int)) {}

func numberOf(syscall.RawConn) int { return -1 }
