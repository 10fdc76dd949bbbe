package docker

import (
	"context"
	"errors"
	"fmt"

	"github.com/docker/docker/api/types/container"
)

// What is throttled gets a twentieth of one CPU. Its period, near to that of
// every other container and used by nobody else, is the mark by which it is
// known, also to the next scaler: an update cannot leave a label.
const (
	throttledQuota  = 5_000 // of CPU time, in microseconds
	throttledPeriod = 99_991

	usualPeriod = 100_000
	noQuota     = -1 // 0 would be left as it is
)

// errOwnLimit: what a container had before cannot be restored by a scaler that
// did not see it.
var errOwnLimit = errors.New("it has a CPU limit of its own, which would be lost: remove that, or use stop: pause")

// readLimits tells what is throttled, and what has a limit of its own.
func (r *record) readLimits(limits container.Resources) {
	throttled := limits.CPUQuota == throttledQuota && limits.CPUPeriod == throttledPeriod
	r.CPULimited = !throttled && (limits.NanoCPUs > 0 || limits.CPUQuota > 0)
	if throttled && r.state == stateRunning {
		r.state = stateThrottled
	}
}

// throttle takes the CPU from a container that runs. Its memory is left as it
// is: engines do not undo a limit on the memory of a container without one.
func (r *Runtime) throttle(ctx context.Context, rec record) error {
	if rec.CPULimited {
		return fmt.Errorf("throttle container %s: %w", rec.Name, errOwnLimit)
	}
	refusal := r.engine.throttle(ctx, rec.ID)
	now, err := r.look(ctx, rec.ID)
	switch {
	case err != nil:
		return err
	case !now.serving(): // throttled, or it ended before it could be
		return nil
	case refusal != nil:
		return fmt.Errorf("throttle container %s: %w", rec.Name, refusal)
	}
	return fmt.Errorf("container %s was given its CPU back while it was throttled", rec.Name)
}

func (e *engine) throttle(ctx context.Context, id string) error {
	return e.limit(ctx, id, container.Resources{CPUQuota: throttledQuota, CPUPeriod: throttledPeriod})
}

func (e *engine) unthrottle(ctx context.Context, id string) error {
	return e.limit(ctx, id, container.Resources{CPUQuota: noQuota, CPUPeriod: usualPeriod})
}

func (e *engine) limit(ctx context.Context, id string, limits container.Resources) error {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	_, err := e.api().ContainerUpdate(within, id, container.UpdateConfig{Resources: limits})
	return e.tell(ctx, err)
}
