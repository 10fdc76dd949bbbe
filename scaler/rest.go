package scaler

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// warm reports whether it should be woken by its windows: not in the rest of
// one in which somebody put it to sleep on purpose.
func (l *life) warm(now time.Time) bool {
	l.lookAtWindows(now)
	began, in := keepWarm(l.spec).At(now)
	asked := l.st.Reason.Code == workload.ReasonAsked && !l.st.Since.Before(began)
	return in && !asked && !l.s.outdone(l.name)
}

// lookAtWindows looks again at each full minute, when a window may begin or
// end.
func (l *life) lookAtWindows(now time.Time) {
	if l.spec.KeepWarm != "" {
		l.lookAt(now.Truncate(time.Minute).Add(time.Minute))
	}
}

// adopt announces what runs and was not started by a wake.
func (l *life) adopt(ctx context.Context) {
	if l.write(ctx, protocol.Adopt, func(st *workload.State) { st.Wake = nil }) {
		l.record(workload.EventAdopted, workload.Reason{}, nil)
		l.s.metrics.adopted(l.name)
	}
}

// fallAsleep writes that nothing runs, and why.
func (l *life) fallAsleep(ctx context.Context) {
	reason, told := l.sleepReason()
	if l.write(ctx, protocol.FallAsleep, func(st *workload.State) { st.Reason = reason }) && told {
		l.record(workload.EventSlept, reason, nil)
	}
}

// sleepReason is why nothing runs, and whether that belongs to the history,
// which it does where this life has seen it.
func (l *life) sleepReason() (reason workload.Reason, told bool) {
	switch {
	case l.st.Phase == workload.Ready:
		return endReason(l.end, "it ended by itself"), true
	case l.st.Phase == workload.Waking, l.st.Revision == 0:
		return workload.Reason{}, false
	case l.drain != nil && l.drain.wayFor != "":
		return workload.Reason{Code: workload.ReasonConflict, Detail: "it made way for " + l.drain.wayFor}, true
	case l.drain != nil && l.drain.explicit:
		return workload.Reason{Code: workload.ReasonAsked}, true
	}
	return workload.Reason{Code: workload.ReasonIdle}, l.drain != nil
}
