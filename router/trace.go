package router

import (
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Trace is the fixed time points of one request. A zero point was not
// reached.
type Trace struct {
	Arrived  time.Time // the head of the request is read
	Sent     time.Time // handed to a connection of the replica (its last try)
	Answered time.Time // the head of the workload's answer is there
	Ended    time.Time // the last byte is written, or the request is given up
	// Held is how long the gate held it, all tries together, and Waiting the
	// part of that in which the workload was being started and probed.
	Held, Waiting time.Duration
}

// Upstream is how long the workload took to its first byte; 0 if none came.
func (t *Trace) Upstream() time.Duration {
	if t.Answered.IsZero() {
		return 0
	}
	return t.Answered.Sub(t.Sent)
}

// Added is what Rouse added up to the first byte: the time since the request
// arrived, without the workload's own and without the wait for the workload
// to start. Tries that were refused count as added.
func (t *Trace) Added() time.Duration {
	if t.Answered.IsZero() {
		return 0
	}
	return max(0, t.Answered.Sub(t.Arrived)-t.Upstream()-t.Waiting)
}

// waitingOf is how much of a hold that began at arrived the wake spent in the
// start call and in proving readiness. A request that joined a wake under way
// waited only for the rest of it. The times may come from another machine's
// clock, so it is never more than the hold.
func waitingOf(wake *workload.Wake, arrived time.Time, held time.Duration) time.Duration {
	if wake == nil {
		return 0
	}
	var waiting time.Duration
	for _, step := range wake.Steps() {
		if step.Phase != workload.PhaseStart && step.Phase != workload.PhaseProbe {
			continue
		}
		missed := max(0, arrived.Sub(step.Start))
		waiting += max(0, step.Duration-missed)
	}
	return min(waiting, held)
}

// serverTiming writes the Server-Timing header of a cold answer, in
// milliseconds: the hold, the steps of the wake it waited for, and what Rouse
// added.
func serverTiming(t *Trace, wake *workload.Wake) string {
	b := make([]byte, 0, 96)
	b = appendTiming(b, "queue", t.Held)
	if wake != nil {
		for _, step := range wake.Steps() {
			switch step.Phase {
			case workload.PhaseWake, workload.PhaseStart, workload.PhaseProbe:
				b = appendTiming(b, string(step.Phase), step.Duration)
			}
		}
	}
	return string(appendTiming(b, "added", t.Added()))
}

func appendTiming(b []byte, name string, d time.Duration) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, name...)
	b = append(b, ";dur="...)
	return strconv.AppendFloat(b, float64(d)/float64(time.Millisecond), 'f', 3, 64)
}
