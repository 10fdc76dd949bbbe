package router

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/workload"
)

var t0 = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// start from 10 to 50, probe from 50 to 80
func recorded() *workload.Wake {
	return &workload.Wake{RequestedAt: at(0), ReceivedAt: at(5), StartAt: at(10), StartedAt: at(50), ReadyAt: at(80), OpenedAt: at(82)}
}

func TestWaitingIsThePartOfTheHoldThatTheStartTook(t *testing.T) {
	for _, c := range []struct {
		name          string
		arrived, held int
		want          int
	}{
		{"the first", 0, 82, 70},
		{"joined in the start", 30, 52, 50},
		{"joined in the probe", 60, 22, 20},
		{"joined after it", 81, 1, 0},
		{"another machine's clock is behind", -5000, 82, 70},
		{"and never more than the hold", 0, 40, 40},
	} {
		assert.Equal(t, ms(c.want), waitingOf(recorded(), at(c.arrived), ms(c.held)), c.name)
	}
	assert.Zero(t, waitingOf(nil, at(0), ms(50)), "nothing was started")
	assert.Zero(t, waitingOf(&workload.Wake{}, at(0), ms(50)))
}

func TestAddedIsWhatIsNeitherTheWorkloadsNorTheWait(t *testing.T) {
	trace := Trace{Arrived: at(0), Sent: at(83), Answered: at(103), Held: ms(82), Waiting: ms(70)}
	assert.Equal(t, ms(20), trace.Upstream())
	assert.Equal(t, ms(13), trace.Added())
	trace.Answered = time.Time{}
	assert.Zero(t, trace.Upstream())
	assert.Zero(t, trace.Added(), "nothing was answered")
}

func TestServerTimingLeavesOutWhatIsNotKnown(t *testing.T) {
	trace := &Trace{Arrived: at(0), Sent: at(83), Answered: at(103), Held: ms(82), Waiting: ms(70)}
	assert.Equal(t, "queue;dur=82.000, wake;dur=5.000, start;dur=40.000, probe;dur=30.000, added;dur=13.000", serverTiming(trace, recorded()))
	assert.Equal(t, "queue;dur=82.000, added;dur=13.000", serverTiming(trace, nil))
}
