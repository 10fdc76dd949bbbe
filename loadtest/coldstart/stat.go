package coldstart

import (
	"math"
	"slices"
)

// Stat describes a set of measurements, in milliseconds. The zero value
// describes none.
type Stat struct {
	N      int     `json:"n"`
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// statOf describes the values: the median of an even number of them is the
// mean of the middle two, the p95 the smallest that 95 % do not exceed.
func statOf(values []float64) Stat {
	n := len(values)
	if n == 0 {
		return Stat{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Stat{
		N:      n,
		Min:    sorted[0],
		Median: (sorted[(n-1)/2] + sorted[n/2]) / 2,
		P95:    sorted[int(math.Ceil(0.95*float64(n)))-1],
		Max:    sorted[n-1],
	}
}
