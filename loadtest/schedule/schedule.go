// Package schedule fixes when each request of a load is due, before the
// first is sent: what becomes of one request never moves another. That is
// what makes a load open-loop, and what lets a stall show.
//
// It owns the arithmetic of arrivals: constant, Poisson, ramps, steps,
// bursts, and traces. It knows nothing of requests but a number for each
// kind, and never looks at a clock.
//
// Guarantees: a schedule is read any number of times, by several readers at
// once, and gives the same arrivals each time; it takes constant memory, but
// for a trace, which takes 16 bytes an arrival.
package schedule

import "time"

// An Arrival is one request that is due.
type Arrival struct {
	// At is the time from the start of the load.
	At time.Duration
	// Target tells which of the load's requests it is, from 0.
	Target int
}

// Next gives one arrival after the other, none earlier than the one before,
// and false after the last. It is not safe for concurrent use.
type Next func() (Arrival, bool)

// A Schedule is a set of arrivals in their order.
type Schedule interface {
	// Arrivals begins with the first.
	Arrivals() Next
	// Length is the time from the start to the end, at which no request
	// need be due.
	Length() time.Duration
}

// Count reads a whole schedule.
func Count(s Schedule) int64 {
	n := int64(0)
	next := s.Arrivals()
	for _, more := next(); more; _, more = next() {
		n++
	}
	return n
}
