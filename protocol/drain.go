package protocol

import "github.com/rouse-dev/rouse/workload"

// A Sum is what the gateways said, all together, when they closed their gates.
type Sum struct {
	InFlight bool // requests are in flight
	Queued   bool // requests are held
	Silent   bool // a gateway did not say, or could not, or there is none to ask
}

// SumUp adds up what the gateways answered of those that had to. One that is
// missing is not taken for idle.
func SumUp(answers []workload.Drained, asked []string) Sum {
	s := Sum{Silent: len(asked) == 0}
	for _, a := range answers {
		s.InFlight = s.InFlight || a.InFlight > 0
		s.Queued = s.Queued || a.Queued > 0
		s.Silent = s.Silent || a.Open
	}
	for _, name := range asked {
		s.Silent = s.Silent || !hasAnswer(answers, name)
	}
	return s
}

func hasAnswer(answers []workload.Drained, gateway string) bool {
	for i := range answers {
		if answers[i].Gateway == gateway {
			return true
		}
	}
	return false
}

// Busy reports whether a stop would cut a request, or come to one who waits.
// Where the sleep was asked for, those who wait are woken for afterwards.
func (s Sum) Busy(explicit bool) bool {
	return s.InFlight || s.Silent || s.Queued && !explicit
}
