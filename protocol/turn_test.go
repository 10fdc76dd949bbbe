package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/explore"
	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

const contenders = 3

// A contender is one of several workloads of which no two may run: what the
// store says of it, whether it runs, and what whoever carries out its wake
// knows. It reads its rivals one after the other, and the world goes on
// meanwhile.
type contender struct {
	phase  workload.Phase
	turn   protocol.Turn
	ticket uint8 // when its wake began, by whatever clock
	runs   bool

	looking bool
	read    uint8 // so many rivals have been read
	rivals  protocol.Rivals
}

type contest [contenders]contender

func (c contender) state(i int) workload.State {
	s := workload.State{Workload: string(rune('a' + i)), Phase: c.phase, Since: time.Unix(int64(c.ticket), 0)}
	if c.turn != protocol.TurnTaken {
		s.Reason.Code, s.Claimed = workload.ReasonConflict, c.turn == protocol.TurnClaimed
	}
	return s
}

// A contestModel has those rules, or one left out.
type contestModel struct {
	next func(protocol.Facts) protocol.Step
	meet func(r protocol.Rivals, mine, rival workload.State, runs bool) protocol.Rivals
}

func (m contestModel) run() explore.Result[contest] {
	return explore.Run(explore.Model[contest]{
		Next: m.steps,
		Good: func(s contest) bool { // everybody had what was asked for
			for _, c := range s {
				if c.turn != protocol.TurnTaken {
					return false
				}
			}
			return true
		},
		Limit: 3_000_000,
	})
}

func (m contestModel) steps(s contest, yield func(explore.Transition[contest])) {
	for i := range s {
		m.stepsOf(s, i, func(to contender, fault bool) {
			next, t := s, explore.Transition[contest]{Label: uint32(i), Fault: fault}
			next[i] = to
			t.To = next
			up := 0
			for _, c := range next {
				if c.runs {
					up++
				}
			}
			if up > 1 {
				t.Wrong = "two run that conflict"
			}
			yield(t)
		})
	}
}

// stepsOf are all that can happen to one of them.
func (m contestModel) stepsOf(s contest, i int, yield func(to contender, fault bool)) {
	c := s[i]
	switch c.phase {
	case workload.Asleep:
		for ticket := range uint8(2) { // nobody can be counted on to ask
			yield(contender{phase: workload.Waking, turn: protocol.TurnWaits, ticket: ticket}, true)
			yield(contender{phase: workload.Waking, turn: protocol.TurnClaimed, ticket: ticket}, true)
		}
	case workload.Waking:
		yield(contender{phase: c.phase, turn: c.turn, ticket: c.ticket, runs: c.runs}, true) // another scaler has taken over
		m.wake(s, i, yield)
	case workload.Ready: // it makes way
		yield(contender{phase: workload.Draining, runs: true}, false)
	case workload.Draining:
		yield(contender{phase: workload.Draining}, false)
		if !c.runs {
			yield(contender{}, false)
		}
	}
}

func (m contestModel) wake(s contest, i int, yield func(to contender, fault bool)) {
	c := s[i]
	if c.turn == protocol.TurnTaken {
		to := contender{phase: c.phase, runs: true}
		if c.runs {
			to.phase = workload.Ready
		}
		yield(to, false)
		return
	}
	yield(contender{}, true) // it has waited in vain
	if c.looking {
		yield(m.look(s, i), false)
		return
	}
	if c.rivals.Known { // for a while
		yield(contender{phase: c.phase, turn: c.turn, ticket: c.ticket}, false)
	}
	f := protocol.Facts{Phase: workload.Waking, Lease: protocol.LeaseMine, Listed: true, Runs: c.runs}
	f.Wake = protocol.Wake{Own: true, Turn: c.turn, Rivals: c.rivals}
	to := contender{phase: c.phase, turn: c.turn, ticket: c.ticket}
	switch m.next(f).Move {
	case protocol.LookRound:
		to.looking = true
	case protocol.Claim:
		to.turn = protocol.TurnClaimed
	case protocol.Withdraw:
		to.turn = protocol.TurnWaits
	case protocol.TakeTurn:
		to.turn, to.ticket = protocol.TurnTaken, 0
	default:
		return
	}
	yield(to, false)
}

// look reads the next rival.
func (m contestModel) look(s contest, i int) contender {
	c := s[i]
	j := (i + 1 + int(c.read)) % contenders
	c.rivals = m.meet(c.rivals, c.state(i), s[j].state(j), false) // nobody else knows what runs
	if c.read++; c.read == contenders-1 {
		c.looking, c.read, c.rivals.Known = false, 0, true
	}
	return c
}

func TestNoTwoRivalsRunAndAllHaveTheirTurn(t *testing.T) {
	m := contestModel{protocol.Next, protocol.Rivals.Meet}
	r := m.run()
	require.False(t, r.Full)
	require.Empty(t, r.Wrong, "%+v", r.Trace)
	t.Logf("%d states, %d transitions", r.States, r.Transitions)

	for name, mutant := range map[string]contestModel{
		"no claim": {func(f protocol.Facts) protocol.Step {
			if f.Wake.Turn == protocol.TurnWaits {
				f.Wake.Turn = protocol.TurnClaimed
			}
			return protocol.Next(f)
		}, protocol.Rivals.Meet},
		"a claim is no obstacle": {func(f protocol.Facts) protocol.Step {
			f.Wake.Rivals.Claims = false
			return protocol.Next(f)
		}, protocol.Rivals.Meet},
		"nobody gives way": {protocol.Next, func(r protocol.Rivals, mine, rival workload.State, runs bool) protocol.Rivals {
			if r = r.Meet(mine, rival, runs); r.First {
				r.First, r.Claims = false, true
			}
			return r
		}},
		"who drains is gone": {protocol.Next, func(r protocol.Rivals, mine, rival workload.State, runs bool) protocol.Rivals {
			if rival.Phase == workload.Draining {
				return r
			}
			return r.Meet(mine, rival, runs)
		}},
	} {
		r := mutant.run()
		assert.NotEmpty(t, r.Wrong, name)
	}
}

func TestMeet(t *testing.T) {
	at := func(name string, p workload.Phase, sec int64) workload.State {
		return workload.State{Workload: name, Phase: p, Since: time.Unix(sec, 0)}
	}
	waits := func(s workload.State) workload.State { s.Reason.Code = workload.ReasonConflict; return s }
	mine := waits(at("m", workload.Waking, 5))
	givenUp := at("x", workload.Failed, 1)
	givenUp.Owner = "s1"
	cases := map[string]struct {
		rival workload.State
		runs  bool
		want  protocol.Rivals
	}{
		"asleep":                 {rival: at("x", workload.Asleep, 1)},
		"asleep and it runs":     {at("x", workload.Asleep, 1), true, protocol.Rivals{Up: true}},
		"starting":               {at("x", workload.Waking, 9), false, protocol.Rivals{Up: true}},
		"failed":                 {rival: at("x", workload.Failed, 1)},
		"failed, being stopped":  {givenUp, false, protocol.Rivals{Up: true}},
		"waits for longer":       {waits(at("x", workload.Waking, 4)), false, protocol.Rivals{Before: true}},
		"waits for as long, b":   {waits(at("b", workload.Waking, 5)), false, protocol.Rivals{Before: true}},
		"waits for as long, x":   {rival: waits(at("x", workload.Waking, 5))},
		"reason of days gone by": {rival: waits(at("x", workload.Asleep, 4))},
	}
	for name, c := range cases {
		assert.Equal(t, c.want, protocol.Rivals{}.Meet(mine, c.rival, c.runs), name)
	}
}
