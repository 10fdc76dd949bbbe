//go:build linux

package process

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// Stop ends the process of w with its whole group, or pauses it where w says
// so: terminated first, killed after w.StopTimeout. When ctx ends first, the
// stop goes on without the caller.
func (r *Runtime) Stop(ctx context.Context, w workload.Workload) error {
	s := r.slot(w.Name)
	if err := s.enter(ctx); err != nil {
		return fmt.Errorf("stop %s: %w", w.Name, err)
	}
	defer s.leave()
	p := r.current(w.Name)
	if p == nil {
		return nil
	}
	end := func() error { return p.end(ctx, w.StopTimeout) }
	if w.Stop == workload.StopPause && !p.ending.Load() {
		end = func() error { return r.pause(ctx, p) }
	}
	if err := end(); err != nil {
		return fmt.Errorf("stop %s: %w", w.Name, err)
	}
	return nil
}

// end asks the group to end and waits until nothing of it is left.
func (p *proc) end(ctx context.Context, grace time.Duration) error {
	p.ask(grace)
	select {
	case <-p.gone:
		if p.left {
			return ErrClosed
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause freezes the group and waits until its leader is. A paused process
// counts as died: it answers nothing.
func (r *Runtime) pause(ctx context.Context, p *proc) error {
	if p.paused() {
		return nil
	}
	signalGroup(p.PID, unix.SIGSTOP)
	for !p.paused() {
		select {
		case <-p.gone: // it ended instead, and its owner told it
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	r.emitAlive(p, scaler.Event{Kind: scaler.Died})
	return nil
}

// resume lets a paused group run on, and waits until its leader does.
func (r *Runtime) resume(p *proc) {
	if !p.paused() {
		return
	}
	signalGroup(p.PID, unix.SIGCONT)
	for end := time.Now().Add(afterKill); p.paused() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	r.emitAlive(p, scaler.Event{Kind: scaler.Started})
}
