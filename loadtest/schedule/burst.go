package schedule

import "time"

// Bursts is a schedule of many requests at the same moment, again and again.
type Bursts struct {
	// Size is how many are due at once; Count how many bursts there are, the
	// first at the start, one each Every.
	Size, Count int
	Every       time.Duration
}

// Length is Count times Every.
func (b Bursts) Length() time.Duration { return time.Duration(b.Count) * b.Every }

// Arrivals gives Size arrivals for each burst.
func (b Bursts) Arrivals() Next {
	n := 0
	return func() (Arrival, bool) {
		if n >= b.Size*b.Count {
			return Arrival{}, false
		}
		at := time.Duration(n/b.Size) * b.Every
		n++
		return Arrival{At: at}, true
	}
}
