package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// Stop ends, pauses or throttles every container of w, as scaler.Runtime says, the ones
// too that compose has replaced. The grace is counted in whole seconds.
func (r *Runtime) Stop(ctx context.Context, w workload.Workload) error {
	if !r.Connected() {
		if err := r.sync(ctx, true); err != nil {
			return fmt.Errorf("stop %s: %w", w.Name, err)
		}
	}
	ids := r.view.find(&w)
	errs := make([]error, len(ids))
	each(ids, func(i int, id string) { errs[i] = r.stopOne(ctx, w, id) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop %s: %w", w.Name, err)
	}
	return nil
}

func (r *Runtime) stopOne(ctx context.Context, w workload.Workload, id string) error {
	release, err := r.view.hold(ctx, id)
	if err == nil {
		defer release()
		err = r.putDown(ctx, w, id)
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

// putDown pauses, throttles or ends the container. One between two runs cannot
// be paused; ending it keeps the engine from restarting it.
func (r *Runtime) putDown(ctx context.Context, w workload.Workload, id string) error {
	if !w.Stop.Lives() {
		return r.end(ctx, w, id)
	}
	rec, err := r.look(ctx, id)
	switch {
	case err != nil:
		return err
	case rec.state == stateRestarting:
		return r.end(ctx, w, id)
	case rec.serving() && w.Stop == workload.StopThrottle:
		return r.throttle(ctx, rec)
	case rec.serving():
		return r.freeze(ctx, rec)
	}
	return nil
}

// end stops the container and makes sure of it. The view learns first that
// it was asked to end, so that no start takes it for running.
func (r *Runtime) end(ctx context.Context, w workload.Workload, id string) error {
	r.view.asked(id)
	err := r.engine.stop(ctx, id, w.StopTimeout)
	if errors.Is(err, errGone) {
		r.view.remove(id, time.Now())
		return err
	}
	if err != nil {
		if ctx.Err() == nil {
			r.view.survived(id)
		}
		return fmt.Errorf("container %s: %w", short(id), err)
	}
	rec, err := r.look(ctx, id)
	if err == nil && rec.serving() {
		return fmt.Errorf("container %s was started again while it was stopped", rec.Name)
	}
	return err
}

func (r *Runtime) freeze(ctx context.Context, rec record) error {
	refusal := r.engine.pause(ctx, rec.ID)
	now, err := r.lookAtPaused(ctx, rec.ID)
	switch {
	case err != nil:
		return err
	case !now.serving(): // paused, or it ended before it could be
		return nil
	case refusal != nil:
		return fmt.Errorf("pause container %s: %w", rec.Name, refusal)
	}
	return fmt.Errorf("container %s was resumed while it was paused", rec.Name)
}
