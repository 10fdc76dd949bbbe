package scaler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/rouse-dev/rouse/workload"
)

const (
	backoffFirst = time.Second
	backoffMost  = time.Minute
)

// backoffAfter is how long nothing is started after so many failures in a
// row: doubling, within a fifth as chance (0 to 1) has it, so that many do not
// come back at once.
func backoffAfter(failures int, chance float64) time.Duration {
	b := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(backoffFirst), backoff.WithMultiplier(2),
		backoff.WithMaxInterval(backoffMost), backoff.WithRandomizationFactor(0), backoff.WithMaxElapsedTime(0),
	)
	pause := b.NextBackOff()
	for range min(failures, 16) - 1 {
		pause = b.NextBackOff()
	}
	return min(time.Duration(float64(pause)*(0.8+0.4*chance)), backoffMost)
}

// startReason tells why Runtime.Start failed.
func startReason(err error) workload.Reason {
	var told *StartError
	switch {
	case errors.As(err, &told) && told.Reason.Code != workload.ReasonNone:
		return told.Reason
	case errors.Is(err, errNotInTime), errors.Is(err, context.DeadlineExceeded):
		return workload.Reason{Code: workload.ReasonTimeout, Detail: err.Error()}
	}
	return workload.Reason{Code: workload.ReasonStartError, Detail: err.Error()}
}

// endReason tells of an end that nobody asked for.
func endReason(e Event, detail string) workload.Reason {
	r := workload.Reason{Code: workload.ReasonExited, Detail: detail, ExitCode: e.ExitCode}
	switch {
	case e.Kind == Removed:
		r.Code, r.Detail = workload.ReasonRemoved, "it was removed"
	case e.OOM:
		r.Code = workload.ReasonOOM
	}
	return r
}

// unprovable tells why a replica can no longer become ready; zero if it can.
func unprovable(r *replica, ready workload.Readiness) workload.Reason {
	switch {
	case r.Health == HealthUnhealthy:
		return workload.Reason{Code: workload.ReasonUnhealthy, Detail: "its health check failed"}
	case r.Health == HealthNone && ready.Kind == workload.ReadyDocker:
		return workload.Reason{
			Code:   workload.ReasonStartError,
			Detail: "ready is docker, but there is no health check: add one, or use auto",
		}
	}
	return workload.Reason{}
}

// timeoutReason tells that it was not ready in time, and why.
func (l *life) timeoutReason(why string) workload.Reason {
	return workload.Reason{Code: workload.ReasonTimeout, Detail: fmt.Sprintf("not ready within %s: %s", l.wakeTimeout(), why)}
}

// lastTrouble is what a try of one of the replicas met last.
func (l *life) lastTrouble() string {
	for _, r := range l.runs {
		if trouble := r.trouble.Load(); trouble != nil {
			return *trouble
		}
	}
	return "its health check has not passed"
}
