package schedule_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/schedule"
)

func all(s schedule.Schedule) []time.Duration {
	var times []time.Duration
	next := s.Arrivals()
	for a, more := next(); more; a, more = next() {
		times = append(times, a.At)
	}
	return times
}

func ExampleRates() {
	next := schedule.Constant(4, time.Second).Arrivals()
	for a, more := next(); more; a, more = next() {
		fmt.Print(a.At, " ")
	}
	// Output: 0s 250ms 500ms 750ms
}

func TestAConstantRateHasEachArrivalAtItsPlaceToTheNanosecond(t *testing.T) {
	const rate = 9973.0 // whose interval is no whole number of nanoseconds
	times := all(schedule.Constant(rate, 20*time.Second))
	require.Len(t, times, 20*9973)
	for k, at := range times {
		want := math.Round(float64(k) / rate * 1e9)
		require.InDelta(t, want, float64(at), 1, "arrival %d", k)
	}
}

func TestPhasesFollowEachOtherWithNoArrivalLostOrTwice(t *testing.T) {
	phases, err := schedule.ParseRates("100x1s,0x1s,100..300x2s,300..0x1s")
	require.NoError(t, err)
	s := schedule.Rates{Phases: phases}
	assert.Equal(t, 5*time.Second, s.Length())
	times := all(s)
	counts := make([]int, 5)
	for i, at := range times {
		counts[at/time.Second]++
		require.True(t, i == 0 || at > times[i-1], "arrival %d", i)
	}
	assert.Equal(t, []int{100, 0, 150, 250, 150}, counts)
}

func TestPoissonArrivalsHaveTheRateAndTheSpreadOfOne(t *testing.T) {
	s := schedule.Rates{Phases: []schedule.Phase{{Duration: 100 * time.Second, From: 500, To: 1500}}, Poisson: true, Seed: 7}
	times := all(s)
	assert.InDelta(t, 100_000, len(times), 4*math.Sqrt(100_000))
	assert.Equal(t, times, all(s), "a seed fixes all")
	other := s
	other.Seed = 8
	assert.NotEqual(t, times, all(other))

	// In windows of an even count, a Poisson process has variance = mean.
	counts := make([]float64, 100)
	for _, at := range times {
		counts[at/time.Second]++
	}
	scatter := 0.0
	for i, n := range counts {
		mean := 500 + 10*(float64(i)+0.5)
		scatter += (n - mean) * (n - mean) / mean
	}
	assert.InDelta(t, 100, scatter, 4*math.Sqrt(2*100), "chi-squared of 100 degrees")
}

func TestABurstIsManyAtOnce(t *testing.T) {
	s := schedule.Bursts{Size: 3, Count: 2, Every: time.Second}
	assert.Equal(t, []time.Duration{0, 0, 0, time.Second, time.Second, time.Second}, all(s))
	assert.Equal(t, 2*time.Second, s.Length())
	assert.Equal(t, int64(6), schedule.Count(s))
}

func TestATraceIsReplayedAsItWasWritten(t *testing.T) {
	trace, err := schedule.ReadTrace(strings.NewReader("target,at_ms\nb,0\na,1.5\nb,1.5\n"), 1)
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "a"}, trace.Targets())
	next := trace.Arrivals()
	for _, want := range []schedule.Arrival{{0, 0}, {1500 * time.Microsecond, 1}, {1500 * time.Microsecond, 0}} {
		got, more := next()
		assert.True(t, more)
		assert.Equal(t, want, got)
	}
	_, more := next()
	assert.False(t, more)

	fast, err := schedule.ReadTrace(strings.NewReader("at_ms\n10\n30\n"), 2)
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{5 * time.Millisecond, 15 * time.Millisecond}, all(fast))
	assert.Equal(t, []string{""}, fast.Targets())
}

func TestABadTraceIsNamedByItsLine(t *testing.T) {
	cases := map[string]string{
		"":                    "header",
		"when\n1\n":           "no column at_ms",
		"at_ms\n1\nx\n":       "line 3",
		"at_ms\n5\n4\n":       "line 3: at_ms 4: earlier",
		"at_ms\n-1\n":         "out of range",
		"at_ms\nNaN\n":        "out of range",
		"at_ms\n1e300\n":      "out of range",
		"at_ms,target\n1,2,3": "line 2",
	}
	for text, want := range cases {
		_, err := schedule.ReadTrace(strings.NewReader(text), 1)
		assert.ErrorContains(t, err, want, "%q", text)
	}
	_, err := schedule.ReadTrace(strings.NewReader("at_ms\n"), 0)
	assert.ErrorContains(t, err, "speed")
}

func TestABadPhaseIsAnError(t *testing.T) {
	for _, text := range []string{"", "100", "x1s", "100x", "100x-1s", "-1x1s", "NaNx1s", "1..x1s", "1x1s,,", "1e9x1s"} {
		_, err := schedule.ParseRates(text)
		assert.Error(t, err, "%q", text)
	}
}

func FuzzRatesAreInOrderAndWithinTheirLength(f *testing.F) {
	f.Add("100x1s,0x1s,100..300x2s", true)
	f.Add("0..9x3s,7x1ns", false)
	f.Fuzz(func(t *testing.T, text string, poisson bool) {
		phases, err := schedule.ParseRates(text)
		if err != nil {
			return
		}
		s := schedule.Rates{Phases: phases, Poisson: poisson}
		next := s.Arrivals()
		last := time.Duration(0)
		for range 2000 {
			a, more := next()
			if !more {
				return
			}
			require.GreaterOrEqual(t, a.At, last)
			require.LessOrEqual(t, a.At, s.Length())
			last = a.At
		}
	})
}

func BenchmarkPoisson(b *testing.B) {
	b.ReportAllocs()
	s := schedule.Rates{Phases: []schedule.Phase{{Duration: 1 << 50, From: 1e4, To: 1e4}}, Poisson: true}
	next := s.Arrivals()
	for b.Loop() {
		_, _ = next()
	}
}

func TestALoopRepeatsAScheduleUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	trace, err := schedule.ReadTrace(strings.NewReader("at_ms,target\n0,a\n10,b\n40,a\n"), 1)
	require.NoError(t, err)
	loop := schedule.Loop{Of: trace, For: 95 * time.Millisecond}
	var got []schedule.Arrival
	next := loop.Arrivals()
	for a, more := next(); more; a, more = next() {
		got = append(got, a)
	}
	ms := time.Millisecond
	assert.Equal(t, []schedule.Arrival{{0, 0}, {10 * ms, 1}, {40 * ms, 0}, {40 * ms, 0}, {50 * ms, 1}, {80 * ms, 0}, {80 * ms, 0}, {90 * ms, 1}}, got)
	assert.Equal(t, 95*ms, loop.Length())
	assert.Equal(t, int64(8), schedule.Count(loop))
	assert.Zero(t, schedule.Count(schedule.Loop{Of: schedule.Constant(0, time.Millisecond), For: time.Second}), "of nothing comes nothing")
}

func TestSpreadDealsArrivalsOutInTurn(t *testing.T) {
	t.Parallel()
	next := schedule.Spread{Schedule: schedule.Constant(1000, 5*time.Millisecond), Targets: 3}.Arrivals()
	var targets []int
	for a, more := next(); more; a, more = next() {
		targets = append(targets, a.Target)
	}
	assert.Equal(t, []int{0, 1, 2, 0, 1}, targets)
}
