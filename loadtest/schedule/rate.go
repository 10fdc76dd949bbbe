package schedule

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// A Phase is a stretch of time in which the rate goes evenly from one to
// another, in requests per second; equal ones are a constant rate, 0 and 0 a
// pause.
type Phase struct {
	Duration time.Duration
	From, To float64
}

// expected is how many requests the phase has.
func (p Phase) expected() float64 { return (p.From + p.To) / 2 * p.Duration.Seconds() }

// at is when n of them are over, from the phase's start: the root of
// From·t + (To-From)/(2·Duration)·t² = n, in the form without cancellation.
func (p Phase) at(n float64) time.Duration {
	if n == 0 {
		return 0
	}
	slope := (p.To - p.From) / p.Duration.Seconds()
	root := math.Sqrt(max(0, p.From*p.From+2*slope*n))
	return time.Duration(math.Round(2 * n / (p.From + root) * float64(time.Second)))
}

// Rates is a schedule by rate: phases one after the other.
type Rates struct {
	Phases []Phase
	// Poisson makes the distances random, as of many users who know nothing
	// of each other: exponential at the rate of the moment. Without it they
	// are even.
	Poisson bool
	// Seed fixes what is random.
	Seed uint64
}

// Constant is one rate, per second, for a time.
func Constant(rate float64, d time.Duration) Rates {
	return Rates{Phases: []Phase{{d, rate, rate}}}
}

// Length is that of the phases together.
func (r Rates) Length() time.Duration {
	var sum time.Duration
	for _, p := range r.Phases {
		sum += p.Duration
	}
	return sum
}

// Arrivals gives the k-th request when the rate, added up, has come to k; of
// a Poisson schedule, to the sum of k exponential steps. Stretching time so
// makes a Poisson process of changing rate exactly (time rescaling; Devroye,
// Non-Uniform Random Variate Generation, VI.1.3).
func (r Rates) Arrivals() Next {
	step := func() float64 { return 1 }
	count := 0.0
	if r.Poisson {
		source := rand.New(rand.NewPCG(r.Seed, 0x9e3779b97f4a7c15))
		step = source.ExpFloat64
		count = step()
	}
	phases := r.Phases
	var begun time.Duration
	past := 0.0 // the count at begun
	return func() (Arrival, bool) {
		for len(phases) > 0 && count-past >= phases[0].expected() {
			past += phases[0].expected()
			begun += phases[0].Duration
			phases = phases[1:]
		}
		if len(phases) == 0 {
			return Arrival{}, false
		}
		due := begun + phases[0].at(count-past)
		count += step()
		return Arrival{At: due}, true
	}
}

// ParseRates reads phases as "1000x10s,1000..5000x30s,0x5s": rates per
// second, each for a time, two dots for a ramp.
func ParseRates(text string) ([]Phase, error) {
	var phases []Phase
	for part := range strings.SplitSeq(text, ",") {
		phase, err := parsePhase(part)
		if err != nil {
			return nil, fmt.Errorf("phase %q: %w", part, err)
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

func parsePhase(text string) (Phase, error) {
	rates, length, found := strings.Cut(text, "x")
	if !found {
		return Phase{}, errors.New("want RATExDURATION or RATE..RATExDURATION")
	}
	d, err := time.ParseDuration(length)
	if err == nil && d <= 0 {
		err = errors.New("want a positive duration")
	}
	if err != nil {
		return Phase{}, err
	}
	from, to, ramp := strings.Cut(rates, "..")
	if !ramp {
		to = from
	}
	p := Phase{Duration: d}
	if p.From, err = parseRate(from); err == nil {
		p.To, err = parseRate(to)
	}
	return p, err
}

func parseRate(text string) (float64, error) {
	rate, err := strconv.ParseFloat(text, 64)
	if err == nil && !(rate >= 0 && rate <= 1e7) {
		err = fmt.Errorf("rate %s: want 0 to 10000000 per second", text)
	}
	return rate, err
}
