package docker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/rouse-dev/rouse/scaler"
)

const (
	// auditEvery is how often the view is compared with the engine's list:
	// the engine drops events, silently, when somebody reads them too slowly.
	auditEvery = 30 * time.Second
	// margin is added to the past that a resumed stream begins at.
	margin = time.Second
	// unknownClock is the margin where the engine does not tell its time.
	unknownClock = 30 * time.Second
	// steady is how long a stream has to last for the next reconnect to be
	// tried at once again.
	steady = 10 * time.Second
)

// Watch follows the engine's events, and reconnects for as long as ctx lasts.
// It tells what changed while the stream was lost before it tells Resynced.
// Only one may be under way at a time.
func (r *Runtime) Watch(ctx context.Context, sink func(scaler.Event)) error {
	if !r.watched.CompareAndSwap(false, true) {
		return ErrWatched
	}
	defer r.watched.Store(false)
	defer r.view.silence()
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { r.deliver(ctx, sink) })
	wg.Go(func() { r.refresh(ctx) })
	r.follow(ctx)
	return nil
}

// follow keeps a stream up until ctx ends.
func (r *Runtime) follow(ctx context.Context) {
	retry := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second),
		backoff.WithMaxElapsedTime(0),
	)
	for {
		began := time.Now()
		err := r.stream(ctx)
		r.connected.Store(false)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > steady {
			retry.Reset()
		}
		wait := retry.NextBackOff()
		r.log.Warn("docker events lost", "error", err, "retry_in", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// stream connects once and hears what comes until the connection is lost.
func (r *Runtime) stream(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.engine.renew(); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	messages, lost := r.engine.events(ctx, r.resumeAt(ctx))
	checked := make(chan error, 1)
	wg.Go(func() { checked <- r.check(ctx) })
	for {
		select {
		case m := <-messages:
			if at := time.Unix(0, m.TimeNano); at.After(r.lastEvent) {
				r.lastEvent = at
			}
			r.view.hear(m, r.engine.prefix)
		case err := <-lost:
			return fmt.Errorf("events: %w", r.engine.tell(ctx, err))
		case err := <-checked:
			return fmt.Errorf("check containers: %w", err)
		}
	}
}

// resumeAt is the engine's time from which on events are of interest. The
// engine answers before it has subscribed, so that even the first stream has
// to begin in the past.
func (r *Runtime) resumeAt(ctx context.Context) time.Time {
	about := r.engine.describe(ctx)
	r.address.learn(about)
	switch {
	case !r.lastEvent.IsZero():
	case !about.now.IsZero():
		r.lastEvent = about.now
	default:
		r.lastEvent = time.Now().Add(-unknownClock)
	}
	return r.lastEvent.Add(-margin)
}

// check compares the view with the engine: all of it now, which makes the
// runtime connected, and its outlines now and then. It returns at the first
// failure, or when ctx ends.
func (r *Runtime) check(ctx context.Context) error {
	if err := r.sync(ctx, true); err != nil {
		return err
	}
	r.connected.Store(true) // before it is told: who hears of it lists at once
	r.view.resynced()
	r.log.Info("docker events connected", "host", r.engine.host())
	audit := time.NewTicker(auditEvery)
	defer audit.Stop()
	for {
		select {
		case <-audit.C:
			if err := r.sync(ctx, false); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sync brings the view up to date with one list, and one look at each
// container that the list raises a question about. A look that fails because
// of its container is no failure of the whole.
func (r *Runtime) sync(ctx context.Context, thorough bool) error {
	seen, err := r.engine.list(ctx)
	if err != nil {
		return err
	}
	ids := r.view.listed(seen, thorough)
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = r.lookInTurn(ctx, id) })
	}
	wg.Wait()
	for _, err := range errs {
		if errors.Is(err, ErrUnreachable) && ctx.Err() == nil && r.engine.ping(ctx) == nil {
			continue // one container is stuck, the engine is not
		}
		if errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			return err
		}
	}
	return ctx.Err()
}

// lookInTurn looks at a container when few others are being looked at.
func (r *Runtime) lookInTurn(ctx context.Context, id string) error {
	select {
	case r.looks <- struct{}{}:
		defer func() { <-r.looks }()
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err := r.look(ctx, id)
	if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		r.log.Warn("docker container not inspected", "container", short(id), "error", err)
	}
	return err
}

// looksInARow bounds how often one look is repeated because the container
// changed meanwhile.
const looksInARow = 5

// look inspects a container and puts what it shows into the view.
func (r *Runtime) look(ctx context.Context, id string) (record, error) {
	for try := 1; ; try++ {
		version := r.view.version(id)
		rec, err := r.engine.inspect(ctx, id)
		if errors.Is(err, errGone) {
			r.view.remove(id, time.Now())
		}
		if err != nil {
			return rec, fmt.Errorf("inspect container %s: %w", short(id), err)
		}
		if r.view.apply(rec, version) || try == looksInARow {
			return rec, nil
		}
	}
}

// hindsight is how long the engine may be behind its own answers. It notes a
// pause or a resume when it makes it and once more when the container's runtime
// tells of it, which may be after the next one: for that moment a resumed
// container is shown as paused, or the other way round.
const hindsight = 2 * time.Second

// lookAtResumed looks at a container that was just resumed.
func (r *Runtime) lookAtResumed(ctx context.Context, id string) (record, error) {
	return r.lookUntil(ctx, id, func(rec record) bool { return rec.state != statePaused })
}

// lookAtPaused looks at a container that was just paused.
func (r *Runtime) lookAtPaused(ctx context.Context, id string) (record, error) {
	return r.lookUntil(ctx, id, func(rec record) bool { return !rec.serving() })
}

// lookUntil looks until what it sees is as told, or for the time of hindsight.
func (r *Runtime) lookUntil(ctx context.Context, id string, as func(record) bool) (record, error) {
	for end, pause := time.Now().Add(hindsight), time.Millisecond; ; pause *= 2 {
		rec, err := r.look(ctx, id)
		if err != nil || as(rec) || time.Now().After(end) {
			return rec, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return rec, ctx.Err()
		}
	}
}

// refresh looks at what events or updates left to be looked at.
func (r *Runtime) refresh(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-r.view.toLook:
		case <-ctx.Done():
			return
		}
		for _, id := range r.view.takeDirty() {
			wg.Go(func() {
				defer r.view.refreshed(id)
				_ = r.lookInTurn(ctx, id) // it is logged; the next check asks again
			})
		}
	}
}

// deliver hands the news to the sink, in order.
func (r *Runtime) deliver(ctx context.Context, sink func(scaler.Event)) {
	for {
		select {
		case <-r.view.toTell:
			for _, ev := range r.view.takeNews() {
				sink(ev)
			}
		case <-ctx.Done():
			return
		}
	}
}
