package protocol_test

// runtime is what can happen to the replica.
func (t turn) runtime() {
	switch t.from.place.condition {
	case down:
		t.can(fault, itIsStartedByHand, 0, func(s *step) {
			s.begin(0)
			s.place.own = true
		})
	case starting:
		t.can(surely, itAnswers, 0, func(s *step) {
			s.place.condition = up
			s.place.answered |= 1 << s.place.start
		})
		t.can(fault, itDies, 0, func(s *step) { s.end() })
	case up:
		t.can(fault, itDies, 0, func(s *step) { s.end() })
	case stopping, halting:
		t.can(surely, itEnds, 0, func(s *step) { s.end() })
	}
}

// begin starts the replica.
func (s *step) begin(gen uint8) {
	s.place.condition = starting
	s.place.start++
	s.place.gen, s.place.own = gen, false
	s.tellStart()
}

// end is the end of the replica, and of all that is in flight on it.
func (s *step) end() {
	s.place.condition, s.place.own = down, true
	s.tellEnd()
	for i := range s.gates {
		if g := &s.gates[i]; g.request == served && g.target == s.place.start {
			s.endRequest(i)
		}
	}
}

// callStart is a scaler's call: what runs already is found.
func (s *step) callStart(i int) {
	l := &s.lives[i]
	if s.place.condition == down {
		s.mustBe(s.place.gen != l.state.gen || s.place.own, "it was started twice for one cold start")
		s.begin(l.state.gen)
	} else if s.place.condition >= stopping {
		s.mustBe(!s.atWork(i, stops), "a start while another scaler stops it")
	}
	l.call = s.place.start
}

// callStop is a scaler's call to stop what runs.
func (s *step) callStop(i int) {
	l := &s.lives[i]
	l.call = s.place.runs()
	if l.call == 0 {
		return
	}
	s.mustBe(!s.atWork(i, starts), "a stop while another scaler starts it")
	for _, g := range s.gates {
		inFlight := g.request == served && g.target == l.call
		s.mustBe(!inFlight, "stopped in use")
	}
	switch s.place.condition {
	case starting:
		s.place.condition = halting
	case up:
		s.place.condition = stopping
	}
}
