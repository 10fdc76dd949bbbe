//go:build linux

package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memory is ten minutes of readings as a heap gives them: it fills at first,
// goes up and down with each collection, and what is read in a row is alike.
func memory(seed uint64, perMinute float64) []Point {
	random := rand.New(rand.NewPCG(seed, 1))
	var series []Point
	drift := 0.0
	for i := range 600 {
		at := time.Duration(i) * time.Second
		drift = 0.9*drift + random.NormFloat64()*0.5
		saw := float64(i%17) / 17 * 10
		fill := 20 * (1 - 1/(1+at.Seconds()/20))
		series = append(series, Point{at, (60 + fill + saw + drift + perMinute*at.Minutes()) * (1 << 20)})
	}
	return series
}

func TestALeakIsToldFromAHeapThatBreathes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		assert.False(t, trendOf(memory(seed, 0)).leaks(allowances[Memory]), "seed %d: no leak", seed)
		assert.True(t, trendOf(memory(seed, 4)).leaks(allowances[Memory]), "seed %d: 4 MiB a minute", seed)
	}
}

func TestTheSlopeIsThatOfTheLeakAndWildReadingsDoNotMoveIt(t *testing.T) {
	t.Parallel()
	var series []Point
	for i := range 400 {
		value := 100 + 3*float64(i)/60
		if i%10 == 0 {
			value = 1e6
		}
		series = append(series, Point{time.Duration(i) * time.Second, value})
	}
	trend := trendOf(series)
	assert.InDelta(t, 3, trend.Slope, 0.2)
	assert.LessOrEqual(t, trend.Low, trend.Slope)
	assert.GreaterOrEqual(t, trend.High, trend.Slope)
	assert.InDelta(t, 400*0.8/60, trend.Minutes, 0.1)
}

func TestWhatFallsOrStandsOrIsHardlyKnownIsNoLeak(t *testing.T) {
	t.Parallel()
	rises := Allowance{}
	series := func(n int, step float64) []Point {
		var points []Point
		for i := range n {
			points = append(points, Point{time.Duration(i) * time.Second, 50 + step*float64(i)})
		}
		return points
	}
	assert.True(t, trendOf(series(100, 1)).leaks(rises))
	assert.False(t, trendOf(series(100, 0)).leaks(rises))
	assert.False(t, trendOf(series(100, -1)).leaks(rises))
	assert.False(t, trendOf(series(20, 1)).leaks(rises), "too few readings for a verdict")
	assert.False(t, trendOf(nil).leaks(rises))
}

func TestASteadyRiseWithinItsAllowanceIsNoLeak(t *testing.T) {
	t.Parallel()
	trend := Trend{Blocks: 40, Level: 100, Slope: 1, Low: 0.9, High: 1.1, Minutes: 8}
	assert.True(t, trend.leaks(Allowance{Least: 7, Share: 0.05}))
	assert.False(t, trend.leaks(Allowance{Least: 9}))
	assert.False(t, trend.leaks(Allowance{Share: 0.09}))
}

func TestTheIntervalHoldsTheSlopeAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	held := 0
	const trials = 1000
	for range trials {
		var points []Point
		for i := range 40 {
			points = append(points, Point{time.Duration(i) * time.Minute, 2*float64(i) + 5*random.NormFloat64()})
		}
		if trend := theilSen(points); trend.Low <= 2 && 2 <= trend.High {
			held++
		}
	}
	require.GreaterOrEqual(t, held, trials*98/100, "of %d", trials)
}
