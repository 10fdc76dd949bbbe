package scaler

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rouse-dev/rouse/tracing"
	"github.com/rouse-dev/rouse/workload"
)

// wakeAll brings up everything that w depends on, side by side, and returns
// once all of it is ready, or has completed where it is a job. The first failure ends the wait for the others;
// their starts go on. A dependency that is no workload of this node is for
// others to bring up, and is passed over.
func (s *Scaler) wakeAll(ctx context.Context, w workload.Workload, by workload.Wake) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, name := range w.DependsOn {
		if s.life(name) == nil {
			s.log.Warn("dependency is not a workload of this node", "workload", w.Name, "dependency", name)
			continue
		}
		all.Go(func() {
			if err := s.wakeOne(ctx, name, by); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (s *Scaler) wakeOne(ctx context.Context, name string, by workload.Wake) error {
	wake := newWake(name, workload.TriggerDependency)
	wake.Traceparent = by.Traceparent
	if t := s.cfg.Tracer; t != nil {
		wake.Traceparent = tracing.ColdStart(t, &by).String()
	}
	for {
		a := s.ask(ctx, wake)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case a.Kind == Permanent:
			return errors.New(a.Reason)
		case a.Kind == Done && (a.state.Phase == workload.Ready || a.state.Reason.Code == workload.ReasonCompleted):
			return nil
		case a.Kind == Done:
			return errors.New(a.state.Reason.String())
		}
		if err := wait(ctx, a.After); err != nil {
			return err
		}
	}
}
