package protocol_test

import (
	"fmt"
	"strings"

	"github.com/rouse-dev/rouse/internal/explore"
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// A scope is the part of the world that is explored.
type scope struct {
	gateways, scalers int
	requestsMost      int // at a time
	faults            uint8
	kinds             faults // that there may be
	limit             int    // of states
}

// A model is a world of that scope under some rules.
type model struct {
	rules
	scope
}

// beginning is a workload that never ran, with everything up.
func (m model) beginning() world {
	w := world{faults: m.faults}
	for i := range w.gates {
		here := i < m.gateways
		w.gates[i] = gateway{absent: !here, up: here, known: here}
	}
	for i := range w.lives {
		here := i < m.scalers
		w.lives[i] = life{absent: !here, up: here, read: here, listed: here}
	}
	w.compact(m.late, m.edge)
	return w
}

// resting is what it must be possible to come to from anywhere: nobody waits,
// nothing is under way, and nothing runs.
func (m model) resting(w world) bool {
	if w.stored.phase != workload.Asleep && w.stored.phase != workload.Failed || w.place.condition != down || w.slot.with != 0 {
		return false
	}
	up := 0
	for i := range w.gates {
		if g := &w.gates[i]; g.request != none || g.asking {
			return false
		} else if g.up {
			up++
		}
	}
	for i := range w.lives {
		if l := &w.lives[i]; l.task != protocol.TaskNone || l.ask {
			return false
		} else if l.up {
			up++
		}
	}
	return up == m.gateways+m.scalers
}

// A step is one thing that happens: it changes its world, and notes what was
// wrong with that.
type step struct {
	world
	model
	wrong string
}

func (s *step) mustBe(right bool, wrong string) {
	if !right && s.wrong == "" {
		s.wrong = wrong
	}
}

// A kind says what can be made of it that something can happen.
type kind uint8

const (
	surely  kind = iota // it happens sooner or later, unless something else makes it needless
	perhaps             // somebody may do it
	fault               // it goes wrong; so many times
)

// A turn offers what can happen in a world.
type turn struct {
	model
	from  world
	yield func(explore.Transition[world])
}

func (t turn) can(k kind, what happening, who int, do func(*step)) {
	s := step{world: t.from, model: t.model}
	if k == fault {
		if s.world.faults == 0 || !t.kinds.has(what) {
			return
		}
		s.world.faults--
	}
	do(&s)
	s.compact(t.late, t.edge)
	t.yield(explore.Transition[world]{
		Label: label(what, who, 0), To: s.world, Fault: k != surely, Wrong: s.wrong,
	})
}

func (m model) turns(w world, yield func(explore.Transition[world])) {
	t := turn{model: m, from: w, yield: yield}
	t.runtime()
	for i := range w.gates {
		t.gateway(i)
	}
	for i := range w.lives {
		t.scaler(i)
	}
	if w.cool {
		t.can(surely, theBackOffIsOver, 0, func(s *step) { s.cool = false })
	}
}

// A happening is what can happen.
type happening uint8

const (
	aMove happening = iota
	theBackOffIsOver
	itAnswers
	itDies
	itEnds
	itIsStartedByHand
	aRequestComes
	itsClientLeaves
	theRequestEnds
	itAsks
	newsComes
	lateNewsComes
	itReadsTheState
	itTriesAgain
	theDrainComes
	theDrainIsLost
	theAnswerIsLost
	itCrashes
	itStarts
	itIsCutOff
	itIsBack
	itsSilenceIsNoticed
	itsReportIsHeard
	itLeaves
	itGetsTheWake
	itGetsTheWakeToo
	theLeaseRunsOut
	theLeaseIsLost
	itIsAway
	itListsWhatRuns
	itIsProved
	theStartReturns
	theStartFails
	theStopReturns
	theStopFails
	theTrialEnds
	theDrainEnds
	theDrainTimesOut
	itsTimeIsOver
	itIsIdle
	itIsAskedToSleep
	itCrashesForGood
)

var happenings = [...]string{
	"", "the back-off is over", "the replica answers", "the replica dies", "the replica has stopped",
	"the replica is started by hand", "a request comes", "its client leaves",
	"its request ends", "it asks", "it hears the news", "it hears late news", "it reads the state", "it tries again",
	"the drain reaches it", "its drain is lost", "its answer is lost", "it crashes", "it starts", "it is cut off",
	"it is back", "its silence is noticed", "its first report is heard", "it leaves", "it gets the wake",
	"it gets the wake of another too", "it sees the lease run out", "it sees the lease of a live one run out",
	"it hears nothing for a while", "it lists what runs", "it proves what runs", "its start returns", "its start fails",
	"its stop returns", "its stop fails", "its trial ends", "its drain is answered", "its drain times out",
	"the time of its wake is over", "it finds the workload idle", "it is asked for a sleep", "it crashes for good",
}

func label(what happening, who int, move protocol.Move) uint32 {
	return uint32(what)<<16 | uint32(who)<<8 | uint32(move)
}

// describe puts a label in words. Gateways that are alike may change names.
func describe(l uint32) string {
	what, who, move := happening(l>>16), int(l>>8&0xf), protocol.Move(l&0xff)
	name := "        "
	switch {
	case what == aMove, what >= itGetsTheWake:
		name = fmt.Sprint("scaler ", who+1)
	case what >= aRequestComes:
		name = fmt.Sprint("gate ", who+1, "  ")
		if l>>12&0xf != 0 {
			name = fmt.Sprint("scaler ", who+1)
		}
	}
	if what != aMove {
		return name + ": " + happenings[what]
	}
	return fmt.Sprint(name, ": ", move, outcomes[l>>12&0xf])
}

// An outcome is what came of a write.
type outcome uint8

const (
	written outcome = iota
	lost            // nothing was written
	open            // it was written, and the writer was told of an error
)

var outcomes = [...]string{"", " (not written)", " (written, but not told so)"}

// show is what matters most of a world, in a line.
func show(w world) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; runtime %s %d; slot %d", w.stored, conditions[w.place.condition], w.place.start, w.slot.with)
	for i, g := range w.gates {
		r := record{phase: g.phase, gen: g.gen, rev: g.rev, replica: g.replica}
		fmt.Fprintf(&b, "; g%d %s %s%s", i+1, r, requests[g.request],
			words("down", !g.up, "cut", g.cut, "silent", g.silent, "closed", g.closed != 0, "refused", g.refused, "fresh", g.fresh, "drain", g.drain != 0))
	}
	for i, l := range w.lives {
		fmt.Fprintf(&b, "; s%d %s runs %d%s", i+1, l.state, l.runs,
			words("down", !l.up, "away", l.away, "listed", l.listed, "proved", l.proved, "asked", l.ask, "sleep", l.sleep, "broken", l.broken))
		if l.task != protocol.TaskNone {
			fmt.Fprintf(&b, " task %d", l.task)
		}
	}
	return b.String()
}

var (
	conditions = [...]string{"down", "starting", "up", "stopping", "halting"}
	requests   = [...]string{"-", "held", "served"}
)

func (r record) String() string {
	s := fmt.Sprintf("%s g%d r%d", r.phase, r.gen, r.rev)
	if r.owner != 0 {
		s += fmt.Sprintf(" of %d", r.owner)
	}
	if r.replica != 0 {
		s += fmt.Sprintf(" at %d", r.replica)
	}
	return s
}

// words are those whose condition holds.
func words(pairs ...any) (s string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1].(bool) {
			s += " " + pairs[i].(string)
		}
	}
	return s
}

// A faults is a set of those happenings that are faults.
type faults uint64

func some(hs ...happening) (f faults) {
	for _, h := range hs {
		f |= 1 << h
	}
	return f
}

func (f faults) has(h happening) bool { return f&(1<<h) != 0 }
