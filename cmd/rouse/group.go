package main

import (
	"context"
	"errors"
	"sync"
)

// A part is something that runs until ctx ends, and returns nil then. An
// error of one part ends all that run together with it.
type part func(ctx context.Context) error

// together runs the parts until ctx ends or one of them fails, then ends the
// others, waits for all of them, and returns the first failure.
func together(ctx context.Context, parts ...part) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var first sync.Once
	var failure error
	for _, run := range parts {
		wg.Go(func() {
			if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				first.Do(func() { failure = err })
				cancel(err)
			}
		})
	}
	wg.Wait()
	return failure
}

// beneath runs base for as long as top does: base is started first and told
// to end only once top has returned. If base fails, top's ctx ends.
func beneath(ctx context.Context, base, top part) error {
	topCtx, cancelTop := context.WithCancelCause(ctx)
	defer cancelTop(nil)
	baseCtx, cancelBase := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelBase()
	ended := make(chan error, 1)
	go func() {
		err := base(baseCtx)
		cancelTop(err)
		ended <- err
	}()
	err := top(topCtx)
	cancelBase()
	return errors.Join(err, <-ended)
}

// all makes one part of several that run together.
func all(parts ...part) part {
	return func(ctx context.Context) error { return together(ctx, parts...) }
}

// after runs next once wait has returned nil.
func after(wait, next part) part {
	return func(ctx context.Context) error {
		if err := wait(ctx); err != nil {
			return nil // it was ended before it began
		}
		return next(ctx)
	}
}
