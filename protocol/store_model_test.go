package protocol_test

import (
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// put writes by compare-and-set. It reports whether the scaler is sure of it.
func (s *step) put(i int, m protocol.Move, o outcome) bool {
	l := &s.lives[i]
	d, _ := s.draft(m, l.state.phase, uint64(l.state.gen), l.from.phase)
	if o == lost || s.compare && l.state.rev != s.stored.rev {
		s.see(i, s.stored)
		return false
	}
	next := record{phase: d.Phase, gen: uint8(d.Generation), replica: s.replicas(i, d.Replicas)}
	switch d.Lease {
	case protocol.LeaseMine:
		next.owner = name(i)
	case protocol.LeaseLapsed:
		next.owner, next.let = l.state.owner, true
	}
	s.commit(i, next)
	if o == open {
		s.see(i, s.stored)
		return false
	}
	l.robbed = l.robbed && next.owner != name(i)
	l.state = s.stored
	s.see(i, s.stored)
	s.answer(i, d.Asks)
	if d.Sleeps != protocol.SleepNone {
		l.sleep = false
	}
	return true
}

func (s *step) replicas(i int, which protocol.Replicas) uint8 {
	l := &s.lives[i]
	switch which {
	case protocol.ReplicasKept, protocol.ReplicasTried:
		return l.state.replica
	case protocol.ReplicasBefore:
		return l.from.replica
	case protocol.ReplicasProved:
		return l.runs
	}
	return 0
}

// commit is a write that the store has taken.
func (s *step) commit(i int, next record) {
	was := s.stored
	next.rev = was.rev + 1
	s.mustBe(next.gen == was.gen || next.gen == was.gen+1, "the generation went down, or left one out")
	s.mustBe(arrows[was.phase]&(1<<next.phase) != 0, "the phase moved along no arrow")
	s.mustBe(next.phase != workload.Waking || was.phase == next.phase || next.gen > was.gen, "a wake without a generation of its own")
	serving := was.phase == workload.Ready && was.replica == s.place.start && s.place.condition == up
	s.mustBe(next.phase != workload.Asleep || !serving, "what serves was taken for gone")
	s.mustBe(next.replica == 0 || s.place.answered&(1<<next.replica) != 0, "ready without proof")
	if o := was.owner; o != 0 && o != name(i) && o <= scalers && !was.let {
		other := &s.lives[o-1]
		s.mustBe(!other.up || other.robbed, "a phase was taken from a scaler at work on it")
	}
	s.past, s.stored = was, next
	if next.phase != workload.Failed {
		s.cool = false
	}
	s.tellState()
}

// arrows are where each phase may lead.
var arrows = [...]uint8{
	workload.Asleep:   1<<workload.Asleep | 1<<workload.Waking | 1<<workload.Ready | 1<<workload.Draining,
	workload.Failed:   1<<workload.Failed | 1<<workload.Waking | 1<<workload.Ready | 1<<workload.Draining,
	workload.Waking:   1<<workload.Waking | 1<<workload.Ready | 1<<workload.Failed | 1<<workload.Asleep,
	workload.Ready:    1<<workload.Ready | 1<<workload.Draining | 1<<workload.Asleep | 1<<workload.Waking,
	workload.Draining: 1<<workload.Draining | 1<<workload.Ready | 1<<workload.Asleep | 1<<workload.Waking | 1<<workload.Failed,
}
