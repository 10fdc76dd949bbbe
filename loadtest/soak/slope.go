//go:build linux

package soak

import (
	"math"
	"slices"
	"time"
)

// A Point is one reading of a series.
type Point struct {
	At    time.Duration // since the soak began
	Value float64
}

// Trend is how a series goes, by the slopes between all pairs of its blocks:
// their median (Theil, 1950; Sen, 1968), which nearly a third of wild readings
// cannot move.
type Trend struct {
	// Blocks are medians of equal stretches of time: what is read in a row
	// is not independent, their medians nearly are.
	Blocks int `json:"blocks"`
	// Level is the median of the blocks.
	Level float64 `json:"level"`
	// Slope per minute, and the interval that holds it with 99 %: the ranks
	// are those of Kendall's tau (Hollander and Wolfe, Nonparametric
	// Statistical Methods, 9.3).
	Slope float64 `json:"slope_per_minute"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Minutes are the stretch that was looked at.
	Minutes float64 `json:"minutes"`
}

const (
	// settling is the part of a series at its begin that is not looked at.
	settling = 0.2
	// mostBlocks is how many stretches a series is cut into.
	mostBlocks = 40
	// leastBlocks is what a verdict takes: of 5 blocks, no order whatever is
	// rarer than once in 100 by chance.
	leastBlocks = 8
	// quantile of the normal distribution for 99 %, both sides.
	quantile99 = 2.5758
)

// trendOf cuts a series into blocks. Of too few readings it has none.
func trendOf(series []Point) Trend {
	if len(series) == 0 {
		return Trend{}
	}
	end := series[len(series)-1].At
	begin := time.Duration(float64(end) * settling)
	first, _ := slices.BinarySearchFunc(series, begin, func(p Point, at time.Duration) int { return int(p.At - at) })
	series = series[first:]
	count := min(mostBlocks, len(series)/3)
	if count < leastBlocks {
		return Trend{}
	}
	blocks := make([]Point, count)
	for i := range blocks {
		blocks[i] = middle(series[i*len(series)/count : (i+1)*len(series)/count])
	}
	t := theilSen(blocks)
	t.Minutes = (end - begin).Minutes()
	return t
}

// middle is the median of a block, at the middle of its time.
func middle(block []Point) Point {
	values := make([]float64, len(block))
	for i, p := range block {
		values[i] = p.Value
	}
	return Point{(block[0].At + block[len(block)-1].At) / 2, medianOf(values)}
}

func theilSen(points []Point) Trend {
	n := len(points)
	slopes := make([]float64, 0, n*(n-1)/2)
	values := make([]float64, n)
	for i, p := range points {
		values[i] = p.Value
		for _, q := range points[:i] {
			slopes = append(slopes, (p.Value-q.Value)/(p.At-q.At).Minutes())
		}
	}
	slices.Sort(slopes)
	spread := quantile99 * math.Sqrt(float64(n*(n-1)*(2*n+5))/18)
	low := max(0, int(math.Floor((float64(len(slopes))-spread)/2)))
	return Trend{
		Blocks: n, Level: medianOf(values), Slope: medianOf(slopes),
		Low: slopes[low], High: slopes[len(slopes)-1-low],
	}
}

// An Allowance is what a series may gain in the stretch that is looked at: a
// cache that fills, a heap that finds its size.
type Allowance struct {
	Least float64 `json:"least"`
	Share float64 `json:"share"` // of the level
}

// of is the gain that is allowed at a level.
func (a Allowance) of(level float64) float64 { return max(a.Least, a.Share*level) }

// leaks is the rule: a series leaks if it rises with 99 %, and has gained
// more than what is allowed.
func (t Trend) leaks(a Allowance) bool {
	return t.Blocks > 0 && t.Low > 0 && t.Slope*t.Minutes > a.of(t.Level)
}

// medianOf is the mean of the middle two of an even number; 0 of none.
func medianOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
