package coldstart

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// at is so many milliseconds into the trial.
func at(ms float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(ms * float64(time.Millisecond)))
}

func seen() observation {
	return observation{
		sent:      at(0),
		firstByte: at(620),
		report:    mimic.Report{ListeningAt: at(614).UnixNano()},
		timing:    `queue;dur=0.5, wake;dur=2, start;desc="the call";dur=600, note, bad;dur=x`,
		wake: Wake{
			ID: "w1", RequestedAt: at(1), ReceivedAt: at(2), StartAt: at(4),
			StartedAt: at(604), ReadyAt: at(616), OpenedAt: at(617),
		},
	}
}

func TestAddedIsTheTotalLessTheStartUpToListen(t *testing.T) {
	o := seen()
	var trial Trial
	o.into(&trial)
	assert.Equal(t, "w1", trial.Wake)
	assert.InDelta(t, 620, trial.Total, 1e-9)
	assert.InDelta(t, 610, trial.App, 1e-9)
	assert.InDelta(t, 10, trial.Added, 1e-9)
	assert.InDelta(t, 6, trial.AfterListen, 1e-9, "the start had returned before listen()")
}

func TestAfterListenCountsFromTheReturnOfASlowStartCall(t *testing.T) {
	o := seen()
	o.wake.StartedAt = at(618)
	var trial Trial
	o.into(&trial)
	assert.InDelta(t, 2, trial.AfterListen, 1e-9)
	assert.InDelta(t, 10, trial.Added, 1e-9, "that wait is still Rouse's")
}

func TestPhasesCoverTheWholeRequest(t *testing.T) {
	o := seen()
	assert.Equal(t, []Span{
		{"arrive", 1}, {"wake", 1}, {"queue", 2}, {"start", 600}, {"probe", 12}, {"ready", 1}, {"answer", 3},
	}, o.phases())

	// Of its own moments, the program knows two clocks.
	o.sent = time.Now()
	o.firstByte = o.sent.Add(620 * time.Millisecond)
	var trial Trial
	o.into(&trial)
	assert.InDelta(t, 620, trial.Total, 1e-9)

	o = seen()
	o.wake.OpenedAt, o.wake.ReceivedAt = time.Time{}, time.Time{}
	sum := 0.0
	for _, span := range o.phases() {
		sum += span.MS
	}
	assert.InDelta(t, 620, sum, 1e-9, "a moment not told goes to the next")
}

func TestServerTimingGivesTheDurationsItHas(t *testing.T) {
	o := seen()
	assert.Equal(t, []Span{{"queue", 0.5}, {"wake", 2}, {"start", 600}}, parseTiming(o.timing))
	assert.Empty(t, parseTiming(""))
}

func TestBareCountsFromTheStartCall(t *testing.T) {
	times := BareTimes{Start: at(10), Started: at(590), Listening: at(600), Answered: at(603)}
	assert.Equal(t, &Bare{Total: 593, App: 590, Call: 580, AfterListen: 3}, times.bare())
	times.Started = at(601)
	assert.Equal(t, &Bare{Total: 593, App: 590, Call: 591, AfterListen: 2}, times.bare())
}

func TestStatOf(t *testing.T) {
	cases := []struct {
		values []float64
		want   Stat
	}{
		{nil, Stat{}},
		{[]float64{3}, Stat{1, 3, 3, 3, 3}},
		{[]float64{4, 1}, Stat{2, 1, 2.5, 4, 4}},
		{[]float64{5, 1, 9}, Stat{3, 1, 5, 9, 9}},
		{count(20), Stat{20, 1, 10.5, 19, 20}},
		{count(100), Stat{100, 1, 50.5, 95, 100}},
	}
	for _, c := range cases {
		assert.Equal(t, c.want, statOf(c.values))
	}
}

// count gives n..1.
func count(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(n - i)
	}
	return values
}

func TestFailedTrialsAreCountedAndLeftOutOfTheNumbers(t *testing.T) {
	trials := []Trial{
		{N: 1, Total: 30, App: 20, Added: 10, Bare: &Bare{Total: 25}, Phases: []Span{{"start", 1}}},
		{N: 2, Error: "no"},
		{N: 3, Total: 50, App: 20, Added: 30, Bare: &Bare{Total: 10}, Phases: []Span{{"start", 3}, {"probe", 7}}},
	}
	s := summarize(Config{Bare: Container{}}, trials)
	assert.Equal(t, 1, s.Failed)
	assert.Equal(t, Stat{2, 10, 20, 30, 30}, s.Added)
	assert.Equal(t, Stat{2, 5, 22.5, 40, 40}, s.Bare.Difference, "pair by pair")
	assert.Equal(t, []SpanStat{{"start", Stat{2, 1, 2, 3, 3}}, {"probe", Stat{1, 7, 7, 7, 7}}}, s.Phases)
	assert.Len(t, s.Trials, 3)
}

func TestCPUModelIsTheFirstOne(t *testing.T) {
	assert.Equal(t, "AMD: EPYC 7", cpuModel([]byte("processor\t: 0\nmodel name\t: AMD: EPYC 7\nmodel name\t: other\n")))
	assert.Empty(t, cpuModel(nil))
}
