package protocol_test

import (
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// hears is what a scaler hears.
func (t turn) hears(i int) {
	l := t.from.lives[i]
	if t.from.slot.with == pending && !l.ask {
		t.can(surely, itGetsTheWake, i, func(s *step) { s.giveWake(i) })
	}
	if with := t.from.slot.with; with != 0 && with <= scalers && with != name(i) && !l.ask {
		t.can(fault, itGetsTheWakeToo, i, func(s *step) { s.giveWake(i) })
	}
	if l.read && !l.ranOut && t.from.lease(i) == protocol.LeaseHeld && l.state.rev == t.from.stored.rev {
		t.leaseRunsOut(i)
	}
	if !l.away && l.read {
		t.can(fault, itIsAway, i, func(s *step) { s.lives[i].away = true })
	}
	if l.task == protocol.TaskNone && (!l.listed || l.away || l.runs != t.from.place.runs() || l.state.rev != t.from.stored.rev) {
		t.can(surely, itListsWhatRuns, i, func(s *step) { s.list(i) })
	}
	if !l.sleep {
		t.can(fault, itIsAskedToSleep, i, func(s *step) { s.lives[i].sleep = true; s.see(i, s.stored) })
	}
}

func (t turn) leaseRunsOut(i int) {
	owner := t.from.lives[i].state.owner
	if owner == gone {
		t.can(surely, theLeaseRunsOut, i, func(s *step) { s.lives[i].ranOut = true })
		return
	}
	k, what := surely, theLeaseRunsOut
	if t.from.lives[owner-1].up {
		k, what = fault, theLeaseIsLost
	}
	t.can(k, what, i, func(s *step) { s.lives[i].ranOut, s.lives[owner-1].robbed = true, true })
}

func (s *step) giveWake(i int) {
	l := &s.lives[i]
	s.slot.with = name(i)
	l.ask, l.askRefused, l.askGen, l.askNew, l.askLost = true, s.slot.refused, s.slot.gen, true, false
	if l.state.phase != workload.Asleep && l.state.owner != name(i) {
		s.see(i, s.stored)
	}
}

func (s *step) list(i int) {
	l := &s.lives[i]
	if runs := s.place.runs(); runs != l.runs {
		l.runs, l.proved = runs, false
	}
	l.listed, l.away = true, false
	s.see(i, s.stored)
}

// tellEnd is the news that what ran has ended.
func (s *step) tellEnd() {
	for i := range s.lives {
		if l := &s.lives[i]; l.up && !l.away {
			l.runs, l.proved = 0, false
		}
	}
}

// tellStart is the news that something runs, which is listed at once by who is
// at no task.
func (s *step) tellStart() {
	for i := range s.lives {
		if l := &s.lives[i]; l.up && !l.away && l.task == protocol.TaskNone {
			l.runs, l.proved = s.place.start, false
		}
	}
}

// tellState has those see a write who have no lease of their own.
func (s *step) tellState() {
	for i := range s.lives {
		if l := &s.lives[i]; l.up && l.read && !l.away && l.state.owner != name(i) {
			s.see(i, s.stored)
		}
	}
}

// crash ends scaler i; what it has called goes on. Its wake is handed out
// again.
func (s *step) crash(i int, forGood bool) {
	if s.slot.with == name(i) {
		s.slot.with = pending
	}
	s.lives[i] = life{robbed: s.lives[i].robbed && !forGood}
	for j := range s.gates {
		if s.gates[j].drain == name(i) {
			s.gates[j].drain = nobody
		}
	}
	if !forGood {
		return
	}
	s.forget(name(i))
}

// forget has nobody come back by that name.
func (s *step) forget(name uint8) {
	bury := func(r *record) {
		if r.owner == name {
			r.owner = gone
		}
	}
	bury(&s.stored)
	bury(&s.past)
	for j := range s.lives {
		bury(&s.lives[j].state)
	}
}

// leave is a clean end.
func (s *step) leave(i int) {
	l := &s.lives[i]
	l.outdate(name(i))
	if m := protocol.Leave(s.facts(i)); m != protocol.Wait {
		s.put(i, m, written)
	}
	s.crash(i, true)
}
