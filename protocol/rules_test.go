package protocol_test

import (
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// Rules are what the model decides by: those of the package, or others in
// their place, to see that they would be found out.
type rules struct {
	next    func(protocol.Facts) protocol.Step
	draft   func(protocol.Move, workload.Phase, uint64, workload.Phase) (protocol.Draft, bool)
	sumUp   func([]workload.Drained, []string) protocol.Sum
	hear    func(*protocol.Gate, protocol.News) protocol.Hearing
	drain   func(*protocol.Gate, uint64) bool
	shut    func(*protocol.Gate) bool
	asks    func(waiting, taken bool) bool
	prove   func(protocol.Facts) bool
	compare bool // writes compare revisions
	late    bool // states may arrive that everybody is past
	edge    bool // whether an ask was made matters to who waits
}

// theRules are those of the package.
func theRules() rules {
	return rules{
		next:    protocol.Next,
		draft:   protocol.Move.Draft,
		sumUp:   protocol.SumUp,
		hear:    (*protocol.Gate).Hear,
		drain:   (*protocol.Gate).Drain,
		shut:    (*protocol.Gate).Shut,
		asks:    protocol.Asks,
		prove:   protocol.Facts.MayProve,
		compare: true,
	}
}
