package protocol_test

import (
	"github.com/rouse-dev/rouse/internal/explore"
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

const (
	starts = protocol.TaskStart
	stops  = protocol.TaskStop
)

// atWork reports whether another scaler than i, which was not robbed of its
// lease, is at that task.
func (s *step) atWork(i int, task protocol.Task) bool {
	for j := range s.lives {
		if l := &s.lives[j]; j != i && l.up && l.task == task && !l.robbed {
			return true
		}
	}
	return false
}

// name is how the scaler is called in leases.
func name(i int) uint8 { return uint8(i + 1) }

// lease says whose the lease of the state is, to scaler i.
func (w *world) lease(i int) protocol.Lease {
	l := &w.lives[i]
	switch {
	case l.state.owner == 0:
		return protocol.LeaseNone
	case l.state.let:
		return protocol.LeaseLapsed
	case l.state.owner == name(i):
		return protocol.LeaseMine
	case l.ranOut:
		return protocol.LeaseLapsed
	}
	return protocol.LeaseHeld
}

// facts are what scaler i knows.
func (w *world) facts(i int) protocol.Facts {
	l := &w.lives[i]
	return protocol.Facts{
		Phase: l.state.phase, Lease: w.lease(i), Task: l.task, Renewal: l.robbed && l.state.owner == name(i),
		BackOff: l.state.phase == workload.Failed && w.cool, Unwritten: l.state.rev == 0 && w.stored.rev == 0, Cleared: l.state.replica == 0,
		Listed: l.listed, Runs: l.runs != 0, Proved: l.proved, Match: l.match(),
		Asked: l.ask, Refused: l.ask && l.askRefused && l.askGen == l.state.gen,
		Shut:  l.ask && l.askNew && l.askGen == l.state.gen,
		Trial: l.trial, Sleep: l.sleep, Barred: w.barred(), Broken: l.broken,
		Wake: l.wake, Drain: l.drain,
	}
}

func (l *life) match() protocol.Match {
	kept := l.state.replica != 0 && l.state.replica == l.runs
	switch {
	case kept && l.proved:
		return protocol.MatchAll
	case kept:
		return protocol.MatchSome
	}
	return protocol.MatchNone
}

// barred reports whether a gateway is silent, or none is heard.
func (w *world) barred() bool {
	heard := false
	for _, g := range w.gates {
		if g.known && g.silent {
			return true
		}
		heard = heard || g.known
	}
	return !heard
}

// scaler is what can happen at a scaler.
func (t turn) scaler(i int) {
	l := t.from.lives[i]
	if l.absent {
		return
	}
	if !l.up {
		t.can(surely, itStarts, 0x10|i, func(s *step) { s.lives[i].up = true })
		return
	}
	t.decide(i)
	t.hears(i)
	t.works(i)
	t.drains(i)
	t.can(fault, itCrashes, 0x10|i, func(s *step) { s.crash(i, false) })
	t.can(fault, itCrashesForGood, 0x10|i, func(s *step) { s.crash(i, true) })
	if l.read {
		t.can(fault, itLeaves, 0x10|i, func(s *step) { s.leave(i) })
	}
}

// decide is the next step of the rules.
func (t turn) decide(i int) {
	if !t.from.lives[i].read {
		t.can(surely, itReadsTheState, 0x10|i, func(s *step) { s.see(i, s.stored) })
		return
	}
	f := t.outdated(i).facts(i)
	t.take(i, surely, f)
	if f.Phase == workload.Ready && f.Listed && f.Task == protocol.TaskNone {
		f.Idle = true
		t.take(i, surely, f)
	}
	if f.Drain.Own && f.Drain.Explicit && f.Drain.Answered {
		f.Drain.Over = true
		t.take(i, surely, f)
	}
}

// outdated is the world after the scaler forgot what the state has got past.
func (t turn) outdated(i int) *world {
	w := t.from
	w.lives[i].outdate(name(i))
	return &w
}

func (l *life) outdate(name uint8) {
	mine := l.state.owner == name
	if l.wake.Own && (l.state.phase != workload.Waking || !mine) {
		l.wake = protocol.Wake{}
	}
	if l.drain.Own && (l.state.phase != workload.Draining || !mine) {
		l.drain, l.from = protocol.Drain{}, record{}
	}
	if l.state.phase != workload.Ready {
		l.trial = protocol.TrialNone
	}
	if l.state.phase != workload.Draining && l.state.phase != workload.Failed {
		l.broken = false
	}
	if !mine {
		l.robbed = l.robbed && l.task != protocol.TaskNone
	}
}

// take carries a step out, with each outcome that a write can have.
func (t turn) take(i int, k kind, f protocol.Facts) {
	p := t.next(f)
	if p.Move == protocol.Wait && p.Asks == protocol.AnswerNone && p.Sleeps == protocol.SleepNone {
		return
	}
	t.carryOut(i, k, p, written)
	if _, writes := t.draft(p.Move, 0, 0, 0); writes {
		t.carryOut(i, fault, p, lost)
		t.carryOut(i, fault, p, open)
	}
}

func (t turn) carryOut(i int, k kind, p protocol.Step, o outcome) {
	s := step{world: t.from, model: t.model}
	if k == fault {
		if s.world.faults == 0 || !t.kinds.has(aMove) {
			return
		}
		s.world.faults--
	}
	s.lives[i].outdate(name(i))
	s.answer(i, p.Asks)
	if p.Sleeps != protocol.SleepNone {
		s.lives[i].sleep = false
	}
	s.move(i, p, o)
	s.compact(t.late, t.edge)
	t.yield(explore.Transition[world]{
		Label: label(aMove, int(o)<<4|i, p.Move), To: s.world, Fault: k != surely, Wrong: s.wrong,
	})
}

// answer answers the ask that scaler i has.
func (s *step) answer(i int, a protocol.Answer) {
	l := &s.lives[i]
	if a == protocol.AnswerNone || !l.ask {
		return
	}
	mine := !l.askLost
	l.ask, l.askRefused, l.askNew, l.askLost, l.askGen = false, false, false, false, 0
	switch {
	case a == protocol.AnswerLater:
		if mine && s.slot.with == name(i) {
			s.slot.with = pending
		}
		return
	case a == protocol.AnswerDone:
		s.mustBe(l.state.phase == workload.Ready || l.state.phase == workload.Failed, "a wake was taken for done that is not")
	case a == protocol.AnswerPermanent:
		s.mustBe(l.state.phase == workload.Failed, "a wake was taken for failed that has not")
	}
	if !mine {
		return
	}
	s.slot = slot{}
	for j := range s.lives {
		if other := &s.lives[j]; j != i && other.ask {
			other.askLost = true
		}
	}
}

// move carries out a move, but for the answers that go before it.
func (s *step) move(i int, p protocol.Step, o outcome) {
	l := &s.lives[i]
	switch p.Move {
	case protocol.Wait:
	case protocol.LeaveAlone:
		s.see(i, s.stored)
	case protocol.Resume:
		l.wake = protocol.Wake{Own: true}
	case protocol.Start:
		l.wake.Begun, l.wake.Started, l.wake.Found = true, false, false
		l.before, l.task = l.runs, protocol.TaskStart
		s.callStart(i)
	case protocol.Doom:
		l.wake.Failed, l.wake.GivenUp = true, l.wake.Late
	case protocol.FetchLogs:
		l.wake.Logged = true
	case protocol.AskGateways:
		s.askGateways(i)
	case protocol.AskLater:
		l.drain.Answered, l.drain.Said = false, protocol.Sum{}
	case protocol.Stop:
		s.beginStop(i)
	case protocol.ResumeStop:
		if l.state.phase == workload.Draining {
			l.drain, l.from = protocol.Drain{Own: true, Recorded: true}, l.state
		}
		s.beginStop(i)
	case protocol.TryAll:
		l.task = protocol.TaskProof
	default:
		s.write(i, p, o)
	}
}

func (s *step) beginStop(i int) {
	s.lives[i].task = protocol.TaskStop
	s.callStop(i)
}

// write is a move that writes.
func (s *step) write(i int, p protocol.Step, o outcome) {
	l := &s.lives[i]
	before := l.state
	if p.Move == protocol.AnnounceTried || p.Move == protocol.BeginWake && l.state.phase == workload.Ready {
		l.proved, l.trial = false, protocol.TrialNone
	}
	done := s.put(i, p.Move, o)
	if p.Move == protocol.RecordStop {
		l.drain.Recorded, l.drain.Answered = done, done
		l.drain.Said = protocol.Sum{}
	}
	if !done {
		return
	}
	switch p.Move {
	case protocol.BeginWake, protocol.KeepWarm:
		l.wake = protocol.Wake{Own: true}
	case protocol.BeginSleep:
		l.drain, l.from = protocol.Drain{Own: true, Explicit: p.Explicit}, before
	case protocol.Fail:
		s.cool = true
	case protocol.GiveUp:
		s.cool = true
		s.beginStop(i)
	}
	l.outdate(name(i))
}

// see has scaler i know a state.
func (s *step) see(i int, r record) {
	l := &s.lives[i]
	if !l.read || r.phase != l.state.phase || r.gen != l.state.gen {
		l.askNew = false
	}
	if r.rev != l.state.rev {
		l.ranOut = false
		l.listed = l.listed && !l.contradicts(r)
	}
	l.read, l.state = true, r
	l.outdate(name(i))
	l.trust()
}

// contradicts reports that another's news is not what runs as far as this one
// knows: only a new list can tell.
func (l *life) contradicts(r record) bool {
	resting := r.phase == workload.Asleep || r.phase == workload.Failed
	return resting && l.runs != 0 || r.phase == workload.Ready && r.replica != l.runs
}

// trust takes for proved what a Ready says and still runs.
func (l *life) trust() {
	if l.listed && l.state.phase == workload.Ready && l.state.replica != 0 && l.state.replica == l.runs {
		l.proved = true
	}
}
