//go:build linux

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A scale takes values to places on a plot.
type scale struct {
	at    func(float64) float64
	ticks []tick
}

// A tick is a line of the grid. Without a label it is a faint one.
type tick struct {
	at    float64 // a place
	label string
}

// linear goes from lo to hi, widened to round numbers, in about n steps.
func linear(lo, hi, from, to float64, n int) scale {
	if !(hi > lo) {
		hi = lo + 1
	}
	step := round125((hi - lo) / float64(n))
	lo, hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	s := scale{at: func(v float64) float64 { return from + (to-from)*(min(max(v, lo), hi)-lo)/(hi-lo) }}
	for i := 0; ; i++ {
		v := lo + float64(i)*step
		if v > hi+step/2 {
			return s
		}
		s.ticks = append(s.ticks, tick{s.at(v), plain(v)})
	}
}

// round125 is the next of 1, 2, 5, 10 … that is not below v.
func round125(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logarithmic has a labelled line at each power of ten, and where there are
// few of these at 2 and 5 as well.
func logarithmic(lo, hi, from, to float64) scale {
	if !(lo > 0) {
		lo = hi / 1e3
	}
	if !(hi > lo) {
		hi = lo * 2
	}
	lo, hi = floor125(lo), round125(hi)
	few := math.Log10(hi/lo) <= 2.5
	s := scale{at: func(v float64) float64 {
		return from + (to-from)*math.Log(min(max(v, lo), hi)/lo)/math.Log(hi/lo)
	}}
	for power := math.Pow(10, math.Floor(math.Log10(lo)+1e-9)); power <= hi*1.001; power *= 10 {
		for m := 1.0; m < 10; m++ {
			v := m * power
			if v < lo*0.999 || v > hi*1.001 {
				continue
			}
			label := ""
			if m == 1 || few && (m == 2 || m == 5) {
				label = plain(v)
			}
			s.ticks = append(s.ticks, tick{s.at(v), label})
		}
	}
	return s
}

func floor125(v float64) float64 {
	up := round125(v)
	if up <= v*(1+1e-9) {
		return up
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*power <= v {
			return m * power
		}
	}
	return power
}

// manyTimes is from which ratio on values are shown by their logarithm.
const manyTimes = 15

// upward is the scale of latencies: from 0 or, where they differ much,
// logarithmic.
func upward(lo, hi, from, to float64, n int) scale {
	if lo > 0 && hi/lo > manyTimes {
		return logarithmic(lo, hi, from, to)
	}
	return linear(min(0, lo), hi, from, to, n)
}

// nines is the scale of quantiles: each step is ten times nearer to 1, as far
// as so many values tell of it.
func nines(count int64, from, to float64) (s scale, most float64) {
	most = min(max(math.Log10(float64(max(count, 1))), 1), 6)
	s = scale{at: func(q float64) float64 {
		return from + (to-from)*min(-math.Log10(max(1-q, 1e-12)), most)/most
	}}
	s.ticks = append(s.ticks, tick{s.at(0), "0"}, tick{s.at(0.5), "p50"})
	for n, label := range []string{"p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999"} {
		if float64(n+1) <= most {
			s.ticks = append(s.ticks, tick{s.at(1 - math.Pow(10, -float64(n+1))), label})
		}
	}
	return s, most
}

// plain is a number in as few digits as it has.
func plain(v float64) string {
	return strings.Replace(strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64), "-", "\u2212", 1)
}

// ms is a time in milliseconds for a reader: what a histogram of three digits
// knows of it.
func ms(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case abs < 10:
		return fmt.Sprintf("%.3f", v)
	case abs < 100:
		return fmt.Sprintf("%.2f", v)
	}
	return thousands(fmt.Sprintf("%.1f", v))
}

// signed is a difference.
func signed(v float64) string {
	if v < 0 {
		return "\u2212" + ms(-v)
	}
	return "+" + ms(v)
}

// count says how many there are of something.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// whole is a count.
func whole(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

// thousands puts narrow spaces between them.
func thousands(digits string) string {
	end := len(digits)
	for i, r := range digits {
		if r == '.' {
			end = i
			break
		}
	}
	for i := end - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}
