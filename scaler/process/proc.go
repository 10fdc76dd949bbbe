//go:build linux

package process

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A proc is one process that runs, with its group. One goroutine, its owner,
// reaps and signals it; others ask.
type proc struct {
	record
	cmd   *exec.Cmd          // nil: adopted, not a child of ours
	pidfd *os.File           // readable once the leader has ended
	asked chan time.Duration // graces within which it has to end
	// ending says that somebody asked it to end, or that it did.
	ending atomic.Bool
	gone   chan struct{} // closed once it has no owner: nothing of the group is left
	left   bool          // it runs on without an owner; set before gone is closed
}

// newProc opens the kernel's handle of a process.
func newProc(rec record, cmd *exec.Cmd) (*proc, error) {
	fd, err := unix.PidfdOpen(rec.PID, 0)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", rec.PID, err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the poller takes it
		unix.Close(fd)
		return nil, fmt.Errorf("watch process %d: %w", rec.PID, err)
	}
	return &proc{
		record: rec, cmd: cmd, pidfd: os.NewFile(uintptr(fd), "pidfd"),
		asked: make(chan time.Duration), gone: make(chan struct{}),
	}, nil
}

// adopt takes over the process of a record, if it is the one recorded. The
// handle is opened first: what is verified then cannot be replaced any more.
func adopt(rec record, err error) (*proc, error) {
	if err != nil {
		return nil, err
	}
	p, err := newProc(rec, nil)
	if err != nil {
		return nil, err
	}
	if err := rec.verify(); err != nil {
		p.pidfd.Close()
		return nil, err
	}
	return p, nil
}

// instance describes it as it is now.
func (p *proc) instance() scaler.Instance {
	return scaler.Instance{
		Workload: p.Workload,
		Replica: workload.Replica{
			ID:        p.id(),
			Address:   net.JoinHostPort(host, strconv.Itoa(p.Port)),
			StartedAt: p.StartedAt,
		},
		Paused: p.paused(),
	}
}

// id names this start of the process, on this machine until its next boot.
func (p *proc) id() string { return fmt.Sprintf("%d@%d", p.PID, p.Start) }

// paused reports that the leader is stopped, whoever stopped it.
func (p *proc) paused() bool {
	st, err := readStat(p.PID)
	return err == nil && st.start == p.Start && st.state == 'T'
}

// ended reports that the leader has ended, at this moment.
func (p *proc) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		st, err := readStat(p.PID)
		return err != nil || st.start != p.Start || st.dead()
	}
}

// ask has the owner end the whole group: terminate it now, and kill what is
// left of it after the grace. It returns at once; gone is closed at the end.
func (p *proc) ask(grace time.Duration) {
	p.ending.Store(true)
	select {
	case p.asked <- grace:
	case <-p.gone:
	}
}

// supervise is the owner: it waits for the end of the leader, tells it, then
// ends what is left of the group. It returns false when it was detached.
func (p *proc) supervise(detached <-chan struct{}, died func(code int)) bool {
	exited, release := p.watch()
	defer release()
	var e ender
	var poll <-chan time.Time // set once only the rest of the group is left
	for {
		select {
		case <-exited:
			p.ending.Store(true)
			died(p.reap())
			if !groupAlive(p.PID) {
				return true
			}
			e.ask(p.PID, p.Grace)
			exited, poll = nil, time.After(pollGroup)
		case <-poll:
			if !groupAlive(p.PID) {
				return true
			}
			poll = time.After(pollGroup)
		case grace := <-p.asked:
			e.ask(p.PID, grace)
		case <-e.kill:
			signalGroup(p.PID, unix.SIGKILL)
		case <-detached:
			return false
		}
	}
}

// pollGroup is how often the rest of a group is looked at: the kernel tells
// the end of a process, not of a group.
const pollGroup = 5 * time.Millisecond

// An ender terminates a group once, and knows when it has to be killed.
type ender struct {
	deadline time.Time // zero: nobody asked yet
	kill     <-chan time.Time
}

// ask terminates the group unless that was done, and moves the kill to the
// end of the grace if that is sooner.
func (e *ender) ask(group int, grace time.Duration) {
	if grace > 0 && e.deadline.IsZero() {
		signalGroup(group, unix.SIGTERM)
		signalGroup(group, unix.SIGCONT) // what is paused has to run to see it
	}
	if at := time.Now().Add(grace); e.deadline.IsZero() || at.Before(e.deadline) {
		e.deadline, e.kill = at, time.After(grace)
	}
}

// watch closes exited at the leader's end. release gives the handle back and
// waits for the goroutine.
func (p *proc) watch() (exited <-chan struct{}, release func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		conn, err := p.pidfd.SyscallConn()
		if err == nil {
			err = conn.Read(readable)
		}
		if err == nil {
			close(over)
		}
	}()
	return over, func() {
		p.pidfd.Close()
		<-done
	}
}

// readable reports that the process behind a handle has ended.
func readable(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err != unix.EINTR {
			return err == nil && n == 1
		}
	}
}

// unknownCode is the exit code of what was not a child of ours.
const unknownCode = -1

// reap gives the exit code of a leader that has ended: that of a signal is
// 128 and its number, as in a shell.
func (p *proc) reap() int {
	if p.cmd == nil {
		return unknownCode
	}
	_ = p.cmd.Wait() // the state says more than the error
	state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return unknownCode
	case state.Signaled():
		return 128 + int(state.Signal())
	}
	return state.ExitStatus()
}
