package explore_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/explore"
)

// jugs are the two of three and of five litres.
type jugs struct{ three, five int }

const (
	fillThree uint32 = iota
	fillFive
	emptyThree
	emptyFive
	threeIntoFive
	fiveIntoThree
)

func pour(s jugs, yield func(explore.Transition[jugs])) {
	room := min(s.three, 5-s.five)
	back := min(s.five, 3-s.three)
	for label, to := range []jugs{
		fillThree:     {3, s.five},
		fillFive:      {s.three, 5},
		emptyThree:    {0, s.five},
		emptyFive:     {s.three, 0},
		threeIntoFive: {s.three - room, s.five + room},
		fiveIntoThree: {s.three + back, s.five - back},
	} {
		wrong := ""
		if to.five == 4 {
			wrong = "four litres"
		}
		yield(explore.Transition[jugs]{Label: uint32(label), To: to, Wrong: wrong})
	}
}

func TestTheShortestWayToWhatIsWrongIsFound(t *testing.T) {
	m := explore.Model[jugs]{
		Next: pour, Limit: 100,
		Describe: func(l uint32) string { return fmt.Sprint("pour ", l) },
		State:    func(s jugs) string { return fmt.Sprint(s.three, " and ", s.five) },
	}
	r := explore.Run(m)
	require.Equal(t, "four litres", r.Wrong)
	var labels []uint32
	for _, s := range r.Trace {
		labels = append(labels, s.Label)
	}
	assert.Equal(t, []uint32{fillFive, fiveIntoThree, emptyThree, fiveIntoThree, fillFive, fiveIntoThree}, labels)
	assert.Equal(t, jugs{3, 4}, r.Trace[len(r.Trace)-1].To)
	assert.Contains(t, m.Tell(r), "four litres, after 6 steps:\n  1. pour 1\n       0 and 5\n")
}

// count goes from 0 to n, and from some numbers somewhere else.
func count(n int, jumps map[int]explore.Transition[int]) explore.Model[int] {
	return explore.Model[int]{
		Next: func(s int, yield func(explore.Transition[int])) {
			if s < n {
				yield(explore.Transition[int]{To: s + 1})
			}
			if j, ok := jumps[s]; ok {
				yield(j)
			}
		},
		Good:  func(s int) bool { return s == n },
		Limit: 1000,
	}
}

func TestEveryStateIsSeenOnce(t *testing.T) {
	r := explore.Run(count(10, map[int]explore.Transition[int]{3: {To: 1}, 10: {To: 0}}))
	assert.Empty(t, r.Wrong)
	assert.Equal(t, 11, r.States)
	assert.Equal(t, 12, r.Transitions)
	assert.Equal(t, 10, r.Depth)
}

func TestATrapIsFoundByAShortestWay(t *testing.T) {
	m := count(10, map[int]explore.Transition[int]{4: {Label: 7, To: 99}, 99: {To: 98}, 98: {To: 99}})
	next := m.Next
	m.Next = func(s int, yield func(explore.Transition[int])) {
		if s == 99 || s == 98 {
			yield(explore.Transition[int]{To: 197 - s})
			return
		}
		next(s, yield)
	}
	r := explore.Run(m)
	assert.True(t, r.Trap)
	require.Len(t, r.Trace, 5)
	assert.Equal(t, explore.Step[int]{Label: 7, To: 99}, r.Trace[4])
}

func TestNothingGoodIsTakenToComeOfAFault(t *testing.T) {
	m := count(10, map[int]explore.Transition[int]{2: {To: 50, Fault: true}})
	next := m.Next
	m.Next = func(s int, yield func(explore.Transition[int])) {
		if s == 50 {
			yield(explore.Transition[int]{To: 3, Fault: true})
			return
		}
		next(s, yield)
	}
	r := explore.Run(m)
	assert.True(t, r.Trap, "only a fault leads out of it")
	assert.Equal(t, 50, r.Trace[len(r.Trace)-1].To)
}

func TestABoundThatIsReachedIsNoSuccess(t *testing.T) {
	m := count(5000, nil)
	r := explore.Run(m)
	assert.True(t, r.Full)
	assert.Equal(t, "more than 1000 states", r.Wrong)
}
