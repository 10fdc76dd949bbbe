//go:build linux

package openloop

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A poller waits for sockets, to the nanosecond as far as the kernel can.
// It belongs to the thread that made it.
type poller struct {
	fd     int
	events [128]unix.EpollEvent
}

func newPoller() (*poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	sharpen()
	p := &poller{fd: fd}
	if _, err := p.wait(0); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("epoll_pwait2 (Linux 5.11): %w", err)
	}
	return p, nil
}

// sharpen makes this thread's sleeps end when they are over, not up to 50 µs
// later; without the right to it, they do not.
func sharpen() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

func (p *poller) close() { _ = unix.Close(p.fd) }

// wait gives what is ready, after at most d.
func (p *poller) wait(d time.Duration) ([]unix.EpollEvent, error) {
	limit := unix.NsecToTimespec(max(0, d).Nanoseconds())
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])),
		uintptr(len(p.events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	switch errno {
	case 0:
		return p.events[:n], nil
	case unix.EINTR: // the runtime's own signals
		return nil, nil
	default:
		return nil, errno
	}
}

const (
	toRead  = unix.EPOLLIN | unix.EPOLLRDHUP
	toWrite = unix.EPOLLOUT
)

// watch has c told to the loop: what it is about, and that it is this very
// connection of its slot and not an earlier one.
func (p *poller) watch(op int, c *conn, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(c.slot), Pad: c.generation}
	return unix.EpollCtl(p.fd, op, c.fd, &event)
}
