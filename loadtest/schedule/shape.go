package schedule

import "time"

// Spread deals the arrivals of another schedule out to so many targets in
// turn; those of the other are not looked at.
type Spread struct {
	Schedule
	Targets int
}

// Arrivals gives those of the other.
func (s Spread) Arrivals() Next {
	next, n := s.Schedule.Arrivals(), -1
	return func() (Arrival, bool) {
		a, more := next()
		n++
		a.Target = n % s.Targets
		return a, more
	}
}

// Loop repeats another schedule, which must have a length, for a time.
type Loop struct {
	Of  Schedule
	For time.Duration
}

// Length is that time.
func (l Loop) Length() time.Duration { return l.For }

// Arrivals ends with the last before the time is over.
func (l Loop) Arrivals() Next {
	next, base := l.Of.Arrivals(), time.Duration(0)
	return func() (Arrival, bool) {
		for base < l.For {
			a, more := next()
			if more {
				a.At += base
				return a, a.At < l.For
			}
			next, base = l.Of.Arrivals(), base+max(l.Of.Length(), time.Millisecond)
		}
		return Arrival{}, false
	}
}
