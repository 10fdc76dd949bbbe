package scaler

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// warm reports whether it should be woken although nobody asks: by its windows
// or since it never sleeps, but not where somebody put it to sleep on purpose
// since; or since somebody has it kept awake.
func (l *life) warm(now time.Time) bool {
	l.lookAtWindows(now)
	if l.s.outdone(l.name) {
		return false
	}
	if l.keptAwake(now) {
		return true
	}
	began, in := keepWarm(l.spec).At(now)
	asked := l.st.Reason.Code == workload.ReasonAsked && !l.st.Since.Before(began)
	return (in || l.spec.Min > 0) && !asked
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
	fill := func(st *workload.State) {
		if st.Reason = reason; reason.Code == workload.ReasonAsked {
			st.KeptUntil = time.Time{}
		}
	}
	if l.write(ctx, protocol.FallAsleep, fill) && told {
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
