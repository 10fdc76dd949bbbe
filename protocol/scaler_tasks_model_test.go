package protocol_test

import (
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// works is what comes of the scaler's tasks but the drain, and of its proofs.
func (t turn) works(i int) {
	l := t.from.lives[i]
	switch l.task {
	case protocol.TaskStart:
		t.can(surely, theStartReturns, i, func(s *step) { s.startReturned(i) })
		if t.from.place.condition == starting {
			t.can(fault, theStartFails, i, func(s *step) { s.end(); s.startFailed(i) })
		}
	case protocol.TaskStop:
		if l.call == 0 || t.from.place.runs() != l.call {
			t.can(surely, theStopReturns, i, func(s *step) { s.stopReturned(i) })
		} else {
			t.can(fault, theStopFails, i, func(s *step) { s.stopFailed(i) })
		}
	case protocol.TaskProof:
		t.can(surely, theTrialEnds, i, func(s *step) { s.trialEnded(i) })
	}
	if l.read && l.runs != 0 && !l.proved && t.from.place.answers(l.runs) && t.prove(t.from.facts(i)) {
		t.can(surely, itIsProved, i, func(s *step) { s.lives[i].proved = true })
	}
	if l.wake.Own && l.wake.Started && !l.wake.Failed && !l.wake.Late && !l.proved && !t.from.place.answers(l.runs) {
		t.can(fault, itsTimeIsOver, i, func(s *step) { s.lives[i].wake.Late = true })
	}
}

func (s *step) startReturned(i int) {
	l := &s.lives[i]
	found := l.call == l.before || l.call == l.runs
	if l.runs != l.call {
		l.proved = false
	}
	l.runs, l.task = l.call, protocol.TaskNone
	if l.wake.Own {
		l.wake.Called, l.wake.Started, l.wake.Found = true, true, found
	}
	l.call, l.before = 0, 0
}

func (s *step) startFailed(i int) {
	l := &s.lives[i]
	l.task = protocol.TaskNone
	if l.wake.Own {
		l.wake.Called, l.wake.Failed = true, true
	}
	l.call, l.before = 0, 0
}

func (s *step) stopReturned(i int) {
	l := &s.lives[i]
	l.runs, l.proved, l.broken = 0, false, false
	l.drain.Stopped = l.drain.Own
	l.task, l.call = protocol.TaskNone, 0
}

// stopFailed leaves what was to be stopped as it was.
func (s *step) stopFailed(i int) {
	l := &s.lives[i]
	if s.place.condition == halting {
		s.place.condition = starting
	} else {
		s.place.condition = up
	}
	l.listed, l.broken = false, true
	l.drain, l.from = protocol.Drain{}, record{}
	l.task, l.call = protocol.TaskNone, 0
}

func (s *step) trialEnded(i int) {
	l := &s.lives[i]
	l.task = protocol.TaskNone
	if l.state.phase != workload.Ready {
		return
	}
	l.trial = protocol.TrialBad
	if s.place.answers(l.state.replica) {
		l.trial = protocol.TrialGood
	}
}

// askGateways asks all that can be heard; those that are known have to answer.
func (s *step) askGateways(i int) {
	l := &s.lives[i]
	l.task = protocol.TaskDrain
	for j := range s.gates {
		g := &s.gates[j]
		l.answers[j] = unasked
		if g.known && !g.silent {
			l.answers[j] = missing
		}
		if g.up && !g.cut {
			g.drain, g.drainRev = name(i), l.state.rev
		}
	}
}

// drains is how a drain ends.
func (t turn) drains(i int) {
	l := t.from.lives[i]
	if l.task != protocol.TaskDrain {
		return
	}
	open, hopeless := false, false
	for j, a := range l.answers {
		open = open || a == missing || a == unasked && t.from.gates[j].drain == name(i) // for whom there is a grace
		hopeless = hopeless || a == missing && t.from.gates[j].drain != name(i)
	}
	switch {
	case !open:
		t.can(surely, theDrainEnds, i, func(s *step) { s.drainEnded(i) })
	case hopeless:
		t.can(surely, theDrainTimesOut, i, func(s *step) { s.drainEnded(i) })
	default:
		t.can(fault, theDrainTimesOut, i, func(s *step) { s.drainEnded(i) })
	}
}

var gatewayNames = [gateways]string{"g1", "g2"}

func (s *step) drainEnded(i int) {
	l := &s.lives[i]
	var got []workload.Drained
	var asked []string
	for j, a := range l.answers {
		if a != unasked {
			asked = append(asked, gatewayNames[j])
		}
		if a > missing {
			d := workload.Drained{Gateway: gatewayNames[j]}
			d.InFlight, d.Queued, d.Open = count(a == busy), count(a == waiting), a == unclosed
			got = append(got, d)
		}
		l.answers[j] = unasked
		if g := &s.gates[j]; g.drain == name(i) {
			g.drain = nobody
		}
	}
	l.task = protocol.TaskNone
	if l.drain.Own {
		l.drain.Answered, l.drain.Said = true, s.sumUp(got, asked)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
