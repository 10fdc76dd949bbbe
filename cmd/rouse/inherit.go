package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// firstInherited is the first descriptor of a socket that was handed over, by
// sd_listen_fds(3).
const firstInherited = 3

// inherited are the sockets that whoever started the process handed over:
// systemd, or what does as it does. They outlive the process, so that no
// connection is refused between one and the next, and two may share them.
type inherited []*net.TCPListener

// inherit takes the sockets, which are for this process alone and not for what
// it starts.
func inherit() (inherited, error) {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	ours := os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid())
	if err != nil || !ours {
		return nil, nil
	}
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name) // it has no effect but on what is started later
	}
	var all inherited
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		syscall.CloseOnExec(fd)
		l, err := inheritOne(fd)
		if err != nil {
			all.close()
			return nil, fail(exitConfig, fmt.Errorf("socket %d that was handed over (LISTEN_FDS): %w", fd, err))
		}
		all = append(all, l)
	}
	return all, nil
}

func inheritOne(fd int) (*net.TCPListener, error) {
	f := os.NewFile(uintptr(fd), "socket")
	if f == nil {
		return nil, errors.New("it is not open")
	}
	defer f.Close() // what is listened on is a copy
	l, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		_ = l.Close()
		return nil, fmt.Errorf("%s is not a TCP socket", l.Addr())
	}
	return tcp, nil
}

// listen takes the socket for an address, or opens one; shared says which.
func (in *inherited) listen(key, address string) (l net.Listener, shared bool, err error) {
	if l := in.take(address); l != nil {
		return l, true, nil
	}
	l, err = listen(key, address)
	return l, false, err
}

// take gives the socket that is bound to an address of the configuration, and
// takes it out; nil: none is.
func (in *inherited) take(address string) net.Listener {
	want, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil
	}
	for i, l := range *in {
		if collide(want.String(), l.Addr().String()) {
			*in = append((*in)[:i:i], (*in)[i+1:]...)
			return l
		}
	}
	return nil
}

// none is an error for the sockets that nobody took: connections to them would
// wait for ever.
func (in inherited) none() error {
	if len(in) == 0 {
		return nil
	}
	var left []string
	for _, l := range in {
		left = append(left, l.Addr().String())
	}
	in.close()
	return fail(exitConfig, fmt.Errorf("%s was handed over (LISTEN_FDS), and is none of the addresses to listen on: correct listen, admin.listen, sablier.listen or tls.redirect, or the socket unit",
		strings.Join(left, ", ")))
}

func (in inherited) close() {
	for _, l := range in {
		_ = l.Close()
	}
}
