package protocol_test

import (
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// gate is the gate of the package that the gateway has.
func (g *gateway) gate() protocol.Gate {
	return protocol.Gate{
		Known:  protocol.News{Phase: g.phase, Generation: uint64(g.gen), Revision: uint64(g.rev), Serving: g.replica != 0},
		Closed: uint64(g.closed), Refused: g.refused,
	}
}

// keep takes over what became of the gate.
func (g *gateway) keep(p protocol.Gate) {
	g.phase, g.gen, g.rev = p.Known.Phase, uint8(p.Known.Generation), uint8(p.Known.Revision)
	g.closed, g.refused = uint8(p.Closed), p.Refused
	if !p.Refused {
		g.told = false
	}
}

// gateway is what can happen at a gateway.
func (t turn) gateway(i int) {
	g := t.from.gates[i]
	if g.absent {
		return
	}
	if !g.up {
		t.can(surely, itStarts, i, func(s *step) { s.startGateway(i) })
	}
	if (!g.up || g.cut) && g.known && !g.silent {
		t.can(surely, itsSilenceIsNoticed, i, func(s *step) { s.gates[i].silent = true })
	}
	if !g.up {
		return
	}
	t.requests(i)
	if g.cut {
		t.can(surely, itIsBack, i, func(s *step) {
			s.gates[i].cut, s.gates[i].silent = false, false
			s.readState(i)
		})
	} else {
		t.events(i)
	}
	t.can(fault, itCrashes, i, func(s *step) {
		s.gates[i] = gateway{known: g.known, silent: g.silent}
	})
}

// requests is what becomes of the gateway's request.
func (t turn) requests(i int) {
	g := t.from.gates[i]
	switch g.request {
	case none:
		if t.from.requests() >= t.requestsMost {
			break
		}
		t.can(perhaps, aRequestComes, i, func(s *step) { s.admit(i) })
	case held:
		t.can(fault, itsClientLeaves, i, func(s *step) { s.gates[i].request = none; s.settle(i) })
	case served:
		t.can(surely, theRequestEnds, i, func(s *step) { s.endRequest(i) })
	}
	if g.asking && t.asks(g.request == held, g.taken) {
		t.can(surely, itAsks, i, func(s *step) { s.publish(i) })
	}
	if g.refused && g.told {
		t.can(surely, itTriesAgain, i, func(s *step) {
			gate := s.gates[i].gate()
			gate.Retry()
			s.gates[i].keep(gate)
			s.settle(i)
		})
	}
}

// events is what reaches a gateway that is not cut off.
func (t turn) events(i int) {
	g := t.from.gates[i]
	if g.rev != t.from.stored.rev || t.late {
		t.can(surely, newsComes, i, func(s *step) { s.hear(i, s.stored) })
	}
	if past := t.from.past; past.rev != 0 && (past.rev > g.rev || t.late) {
		t.can(surely, lateNewsComes, i, func(s *step) { s.hear(i, past) })
	}
	if g.closed != 0 {
		t.can(surely, itReadsTheState, i, func(s *step) { s.readState(i) })
	}
	if g.fresh {
		t.can(surely, itsReportIsHeard, i, func(s *step) { s.greet(i) })
	}
	if g.drain != 0 {
		t.can(surely, theDrainComes, i, func(s *step) { s.drained(i, true) })
		t.can(fault, theAnswerIsLost, i, func(s *step) { s.drained(i, false) })
		t.can(fault, theDrainIsLost, i, func(s *step) { s.dropDrain(i) })
	}
	if g.request == none && !g.asking {
		t.can(fault, itLeaves, i, func(s *step) { s.gates[i] = gateway{} })
	}
	t.can(fault, itIsCutOff, i, func(s *step) { s.gates[i].cut = true; s.dropDrain(i) })
}

// startGateway starts one anew: its first report is stored before it reads the
// state, and it serves nothing before.
func (s *step) startGateway(i int) {
	g := &s.gates[i]
	g.up, g.fresh = true, true
	s.readState(i)
}

// greet has the first report of a gateway heard: whoever was silent at its
// place is dead.
func (s *step) greet(i int) {
	g := &s.gates[i]
	g.known, g.fresh, g.silent = true, false, false
}

// admit is a request that comes.
func (s *step) admit(i int) {
	g := &s.gates[i]
	gate := g.gate()
	switch {
	case !s.shut(&gate):
		s.release(i)
	case g.phase == workload.Failed && s.cool: // told at the door
	default:
		s.hold(i)
	}
}

func (s *step) hold(i int) {
	g := &s.gates[i]
	g.request, g.target = held, 0
	if !g.asking {
		g.asking, g.taken = true, false
	}
}

// release gives a request a lease, with which it reaches the replica or is
// refused and comes back.
func (s *step) release(i int) {
	g := &s.gates[i]
	open := g.phase == workload.Ready && g.replica != 0 && g.closed == 0 && !g.refused
	s.mustBe(open, "a request was let to a gate that is shut")
	s.mustBe(g.replica != s.place.start || s.place.condition < stopping, "a request was let to a replica that is being stopped")
	g.asking, g.taken = false, false
	if s.place.answers(g.replica) {
		g.request, g.target = served, g.replica
		return
	}
	g.request = none
	gate := g.gate()
	gate.Refuse()
	g.keep(gate)
	s.admit(i)
}

func (s *step) endRequest(i int) {
	g := &s.gates[i]
	g.request, g.target = none, 0
}

// settle brings what the gateway does in line with what it knows.
func (s *step) settle(i int) {
	g := &s.gates[i]
	gate := g.gate()
	if !s.shut(&gate) {
		g.asking, g.taken = false, false
		if g.request == held {
			s.release(i)
		}
		return
	}
	if g.request == held && !g.asking {
		g.asking = true
	}
	if !protocol.Asks(g.request == held, g.taken) {
		g.asking, g.taken = false, false
	}
}

// publish is one ask: the wake, if there is room for it, and then what the
// store says.
func (s *step) publish(i int) {
	g := &s.gates[i]
	gate := g.gate()
	g.told = g.refused
	if g.cut {
		return
	}
	g.taken = true
	if s.slot.with == 0 {
		s.slot = slot{with: pending, gen: g.gen, refused: gate.Unreachable()}
	}
	s.readState(i)
	s.settle(i)
}

// readState reads what the store says now.
func (s *step) readState(i int) {
	s.hear(i, s.stored)
}

// hear takes in news.
func (s *step) hear(i int, r record) {
	g := &s.gates[i]
	gate := g.gate()
	n := protocol.News{Phase: r.phase, Generation: uint64(r.gen), Revision: uint64(r.rev), Serving: r.replica != 0}
	heard := s.rules.hear(&gate, n)
	if heard == protocol.HeardOld || heard == protocol.HeardAgain {
		return
	}
	g.keep(gate)
	g.replica = r.replica
	if heard.Fails(n, s.cool) {
		g.asking, g.taken = false, false
		if g.request == held {
			g.request = none
		}
	}
	s.settle(i)
}

// drained is a drain that reaches the gateway. Whoever started since is not
// the one that was asked.
func (s *step) drained(i int, answered bool) {
	g := &s.gates[i]
	gate := g.gate()
	shut := s.rules.drain(&gate, uint64(g.drainRev))
	g.keep(gate)
	s.settle(i)
	asker, said := g.drain, idle
	switch {
	case g.request == served:
		said = busy
	case !shut:
		said = unclosed
	case g.request == held:
		said = waiting
	}
	g.drain, g.drainRev = 0, 0
	if asker == nobody || !answered {
		return
	}
	// Who has started in place of another does not answer for it.
	if a := &s.lives[asker-1].answers[i]; *a == missing && !g.fresh || *a == unasked {
		*a = said
	}
}

func (s *step) dropDrain(i int) { s.gates[i].drain, s.gates[i].drainRev = 0, 0 }
