package simulation

import (
	"sync"
	"time"
)

// A dice is chance that can be had again: what it gives depends on the seed,
// on what it is asked about, and on the moment of the simulation. So it does
// not matter in which order goroutines that run at the same instant ask, as
// long as each asks about something of its own; nor does one that asks once
// more than another time change what is given later.
type dice struct {
	seed  uint64
	begun time.Time

	mu     sync.Mutex
	rolled map[about]rolled // guarded by mu
}

// An about is what chance is asked about: what happens, to whom, for whom.
type about struct{ what, who, whom string }

// A rolled is how often it was asked about something at one instant.
type rolled struct {
	at    time.Duration
	times uint64
}

func newDice(seed uint64) *dice {
	return &dice{seed: seed, begun: time.Now(), rolled: map[about]rolled{}}
}

func (d *dice) roll(a about) uint64 {
	at := time.Since(d.begun)
	d.mu.Lock()
	r := d.rolled[a]
	if r.at != at {
		r = rolled{at: at}
	}
	r.times++
	d.rolled[a] = r
	d.mu.Unlock()
	h := uint64(14695981039346656037)
	for _, s := range [...]string{a.what, a.who, a.whom} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return mix(mix(mix(d.seed^h)+uint64(at)) + r.times)
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// float gives a number from 0 up to 1.
func (d *dice) float(a about) float64 { return float64(d.roll(a)>>11) / (1 << 53) }

func (d *dice) chance(a about, p float64) bool { return d.float(a) < p }

// between gives a duration to the nanosecond, so that no two things that were
// begun at one instant end at one.
func (d *dice) between(a about, low, high time.Duration) time.Duration {
	return low + time.Duration(d.float(a)*float64(high-low))
}

func (d *dice) pick(a about, n int) int { return int(d.roll(a) % uint64(n)) }
