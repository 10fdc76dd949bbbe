package main

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A pty is a terminal that a test looks at.
type pty struct {
	program *os.File // what the program writes to
	seen    buffer   // all that it wrote
}

func newPTY(t *testing.T, width, height uint16) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
	p := &pty{program: program}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(&p.seen, master) // ends with an error once nobody writes
	}()
	t.Cleanup(func() {
		_ = program.Close()
		<-ended
		_ = master.Close()
	})
	return p
}
