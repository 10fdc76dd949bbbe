//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// Start brings up the one process of w, or resumes it where it is paused, and
// returns it. One that is ending is waited for, then started anew.
func (r *Runtime) Start(ctx context.Context, w workload.Workload) ([]scaler.Instance, error) {
	s := r.slot(w.Name)
	if err := s.enter(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", w.Name, err)
	}
	defer s.leave()
	p := r.current(w.Name)
	if p != nil && (p.ending.Load() || p.ended()) {
		select {
		case <-p.gone:
			p = nil
		case <-ctx.Done():
			return nil, fmt.Errorf("start %s: wait for its last end: %w", w.Name, ctx.Err())
		}
	}
	if p != nil {
		r.resume(p)
		return []scaler.Instance{p.instance()}, nil
	}
	if r.isClosed() {
		return nil, fmt.Errorf("start %s: %w", w.Name, ErrClosed)
	}
	p, err := r.launch(w)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", w.Name, err)
	}
	return []scaler.Instance{p.instance()}, nil
}

// launch starts a process and puts it into its slot.
func (r *Runtime) launch(w workload.Workload) (*proc, error) {
	cmd, port, err := r.command(w)
	if err != nil {
		return nil, err
	}
	p, err := r.run(w, cmd, port)
	if err != nil {
		r.release(port)
	}
	return p, err
}

func (r *Runtime) run(w workload.Workload, cmd *exec.Cmd, port int) (*proc, error) {
	log, err := openLog(r.dir, w.Name, time.Now())
	if err != nil {
		return nil, &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonStartError, Detail: "its log cannot be written"}, Err: err}
	}
	defer log.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, refused(cmd.Path, err)
	}
	p, err := r.install(w, cmd, port)
	if err != nil {
		signalGroup(cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait() // it was killed: that is its end
	}
	return p, err
}

// install records a process that has just started and gives it its owner.
func (r *Runtime) install(w workload.Workload, cmd *exec.Cmd, port int) (*proc, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	st, err := readStat(cmd.Process.Pid) // also of one that has ended: it is not reaped yet
	if err != nil {
		return nil, err
	}
	rec := record{
		Workload: w.Name, PID: cmd.Process.Pid, Start: st.start, Boot: boot, Port: port,
		StartedAt: time.Now().UTC().Round(0), Command: cmd.Args, Grace: w.StopTimeout,
	}
	p, err := newProc(rec, cmd)
	if err != nil {
		return nil, err
	}
	r.mu.Lock() // a List must not adopt it by its record meanwhile
	defer r.mu.Unlock()
	if r.closed {
		p.pidfd.Close()
		return nil, ErrClosed
	}
	if err := rec.save(r.dir); err != nil { // it runs, but no later runtime will find it
		r.log.Warn("record not written", "workload", w.Name, "pid", rec.PID, "error", err)
	}
	r.emitLocked(p, scaler.Event{Kind: scaler.Started}) // before its owner can tell its end
	r.ownLocked(p)
	return p, nil
}

// command makes the command of w, and chooses its port.
func (r *Runtime) command(w workload.Workload) (*exec.Cmd, int, error) {
	if w.Process == nil || len(w.Process.Command) == 0 {
		return nil, 0, startError(workload.ReasonNotFound, "it has no command")
	}
	if dir := w.Process.Dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, 0, startError(workload.ReasonNotFound, "no such directory: "+dir)
		}
	}
	port, err := r.port(w.Port)
	if err != nil {
		return nil, 0, err
	}
	number := strconv.Itoa(port)
	args := make([]string, len(w.Process.Command))
	for i, arg := range w.Process.Command {
		args[i] = strings.ReplaceAll(arg, "{port}", number)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = w.Process.Dir
	cmd.Env = append(environment(w.Process.Env), "PORT="+number, mark(r.dir, w.Name))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, port, nil
}

// environment is the scaler's, without what is meant for the scaler alone
// and may be secret, and then the workload's own.
func environment(own []string) []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "ROUSE_") && !strings.HasPrefix(pair, "NOTIFY_SOCKET=") {
			env = append(env, pair)
		}
	}
	return append(env, own...)
}

// refused tells why the kernel did not start a program.
func refused(path string, err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonNotFound, Detail: "no such program: " + path}, Err: err}
	}
	return &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonStartError, Detail: "the system refused to start " + path}, Err: err}
}

func startError(code workload.ReasonCode, detail string) error {
	return &scaler.StartError{Reason: workload.Reason{Code: code, Detail: detail}}
}
