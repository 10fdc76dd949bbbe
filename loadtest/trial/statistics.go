//go:build linux

package trial

import (
	"math"
	"slices"
)

// An Estimate is the median of one figure over the trials, with an interval
// that holds the true median at the given coverage.
type Estimate struct {
	N      int     `json:"n"`
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Coverage is the probability that the interval holds the median: at
	// least 0.95, or what N trials can give: 1 - 2^(1-N) of fewer than 6.
	Coverage float64 `json:"coverage"`
	Min      float64 `json:"min"`
	Max      float64 `json:"max"`
}

// EstimateOf is the estimate of some values, one a trial; the zero value of
// none. The interval comes from the order statistics: for n values in order,
// x(k) to x(n+1-k) holds the median with a probability of 1 - 2·P(B < k), B
// binomial of n and 1/2, whatever the distribution (David and Nagaraja, Order
// Statistics, 3rd ed., 7.1). k is the largest that keeps 95 %, or 1.
func EstimateOf(values []float64) Estimate {
	n := len(values)
	if n == 0 {
		return Estimate{}
	}
	sorted := slices.Sorted(slices.Values(values))
	k, coverage := 1, 1-2*binomialBelow(n, 1)
	for next := 2; 2*next <= n; next++ {
		c := 1 - 2*binomialBelow(n, next)
		if c < 0.95 {
			break
		}
		k, coverage = next, c
	}
	return Estimate{
		N: n, Median: medianOf(values), Low: sorted[k-1], High: sorted[n-k], Coverage: max(0, coverage),
		Min: sorted[0], Max: sorted[n-1],
	}
}

// binomialBelow is P(B < k) of n tosses of a coin.
func binomialBelow(n, k int) float64 {
	sum, term := 0.0, math.Pow(0.5, float64(n))
	for i := range k {
		sum += term
		term *= float64(n-i) / float64(i+1)
	}
	return sum
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
