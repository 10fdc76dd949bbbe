//go:build linux

package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Hold opens a socket that listens at an address, and gives it to each lane
// that asks at the Unix socket path: what is connected to it is answered by the
// lane that runs, in the generator's own thread. To a proxy, or to whoever
// proves readiness by a connection, it is a server all along. Hold blocks until
// ctx ends.
func Hold(ctx context.Context, listen, path string) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", listen)
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	defer file.Close()
	_ = os.Remove(path) // that of one that was killed
	lanes, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = lanes.Close() })()
	for {
		lane, err := lanes.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hold: %w", err)
		}
		_, _, err = lane.(*net.UnixConn).WriteMsgUnix([]byte("socket"), unix.UnixRights(int(file.Fd())), nil)
		if err = errors.Join(err, lane.Close()); err != nil {
			return fmt.Errorf("hold: %w", err)
		}
	}
}

// takeSocket asks whoever holds the socket for it.
func takeSocket(path string) (*os.File, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("take the socket: %w", err)
	}
	defer conn.Close()
	var word [16]byte
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(word[:], rights)
	if err != nil {
		return nil, fmt.Errorf("take the socket: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("take the socket: nothing was handed over: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("take the socket: nothing was handed over: %w", err)
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "upstream"), nil
}
