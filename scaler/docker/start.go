package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// startsAtOnce bounds the starts of one workload that are under way at
	// the same time: more of them make each slower and the last one later.
	startsAtOnce = 4
	// unwilling is how much longer than its grace something may take to end
	// before it is taken for something that goes on running.
	unwilling = 2 * time.Second
	// glance is how often something that is ending is looked at, in case the
	// event of its end gets lost.
	glance = 500 * time.Millisecond
)

// Start brings up every container of w, as scaler.Runtime says. It costs the
// engine one start and one inspect for each.
func (r *Runtime) Start(ctx context.Context, w workload.Workload) ([]scaler.Instance, error) {
	up, err := r.startCurrent(ctx, w, !r.Connected())
	if errors.Is(err, errGone) { // compose may have put another in its place
		up, err = r.startCurrent(ctx, w, true)
	}
	if errors.Is(err, errGone) {
		err = missing(w, r.engine.prefix[0])
	}
	if err != nil {
		return up, fmt.Errorf("start %s: %w", w.Name, err)
	}
	return up, nil
}

// startCurrent starts the containers of w that the view knows of, checked
// against the engine first if asked for. Those that run already it leaves as
// they are.
func (r *Runtime) startCurrent(ctx context.Context, w workload.Workload, check bool) ([]scaler.Instance, error) {
	if check {
		if err := r.sync(ctx, true); err != nil {
			return nil, err
		}
	}
	ids := r.view.current(&w)
	if len(ids) == 0 {
		return nil, errGone
	}
	started := make([]scaler.Instance, len(ids))
	errs := make([]error, len(ids))
	each(ids, func(i int, id string) { started[i], errs[i] = r.startOne(ctx, w, id) })
	var up []scaler.Instance
	for i, err := range errs {
		if err == nil {
			up = append(up, started[i])
		}
	}
	return up, errors.Join(errs...)
}

// each does something with every ID, with a few at a time, and waits.
func each(ids []string, do func(i int, id string)) {
	var wg sync.WaitGroup
	places := make(chan struct{}, startsAtOnce)
	for i, id := range ids {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			do(i, id)
		})
	}
	wg.Wait()
}

// startOne starts one container for w, once no other start or stop of it is
// under way.
func (r *Runtime) startOne(ctx context.Context, w workload.Workload, id string) (scaler.Instance, error) {
	release, err := r.view.hold(ctx, id)
	if err != nil {
		return scaler.Instance{}, err
	}
	defer release()
	rec, err := r.known(ctx, id)
	if err != nil {
		return scaler.Instance{}, err
	}
	if _, err := portOf(rec, w); err != nil && w.Dialled() {
		return scaler.Instance{}, refused(rec.Name, err) // nobody could reach it
	}
	rec, err = r.bringUp(ctx, w, rec)
	if err != nil {
		return scaler.Instance{}, err
	}
	i, err := r.instance(rec, w)
	if err != nil {
		return scaler.Instance{}, refused(rec.Name, err)
	}
	return i, nil
}

// known is what the view has of a container, or what a first look finds.
func (r *Runtime) known(ctx context.Context, id string) (record, error) {
	if e, ok := r.view.get(id); ok && e.looked {
		return e.record, nil
	}
	return r.look(ctx, id)
}

// bringUp starts a container until it runs and nobody has asked that very
// run to end: the engine answers a start during a graceful stop with yes.
func (r *Runtime) bringUp(ctx context.Context, w workload.Workload, rec record) (record, error) {
	for {
		now, err := r.begin(ctx, rec)
		if err != nil || !r.view.ending(now.ID, now.startedAt) {
			return now, err
		}
		if err := r.awaitEnd(ctx, now, w.StopTimeout); err != nil {
			return now, err
		}
		rec = now
	}
}

// begin starts or resumes the container once, and looks at the outcome.
func (r *Runtime) begin(ctx context.Context, rec record) (record, error) {
	r.view.starting(rec.ID)
	now, err := r.startAndLook(ctx, rec, true)
	r.view.started(rec.ID, err != nil)
	switch {
	case err != nil:
		return now, err
	case now.state == stateRemoving:
		return now, errGone
	case !now.serving():
		return now, over(now)
	}
	return now, nil
}

// startAndLook does what the state of the record calls for. If it turns out
// that the state was another, it goes by that one, once.
func (r *Runtime) startAndLook(ctx context.Context, rec record, again bool) (record, error) {
	call, look := r.engine.start, r.look
	switch rec.state {
	case statePaused:
		call, look = r.engine.unpause, r.lookAtResumed
	case stateThrottled:
		call = r.engine.unthrottle
	}
	err := call(ctx, rec.ID)
	if err != nil && (ctx.Err() != nil || errors.Is(err, ErrUnreachable)) {
		return rec, fmt.Errorf("container %s: %w", rec.Name, err)
	}
	now, lookErr := look(ctx, rec.ID)
	switch {
	case lookErr != nil:
		return rec, lookErr
	case now.serving():
		return now, nil
	case again && now.state != rec.state && (err != nil || now.frozen() || now.startedAt.Equal(rec.startedAt)):
		// Of the same start: the engine took for running what was dead.
		return r.startAndLook(ctx, now, false)
	case now.doomed():
		return now, errGone
	case err != nil:
		return now, refused(rec.Name, err)
	}
	return now, nil
}

// awaitEnd waits until the run is over that somebody asked to end. What has
// not ended long after it should have been killed goes on running.
func (r *Runtime) awaitEnd(ctx context.Context, rec record, grace time.Duration) error {
	late := time.NewTimer(max(grace, rec.grace) + unwilling)
	defer late.Stop()
	again := time.NewTicker(glance)
	defer again.Stop()
	for {
		moved := r.view.movement()
		if !r.view.ending(rec.ID, rec.startedAt) {
			return nil
		}
		select {
		case <-moved:
		case <-again.C:
			if _, err := r.look(ctx, rec.ID); err != nil {
				return err
			}
		case <-late.C:
			r.view.survived(rec.ID)
		case <-ctx.Done():
			return fmt.Errorf("container %s is being stopped: %w", rec.Name, ctx.Err())
		}
	}
}
