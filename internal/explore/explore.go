// Package explore goes through every state that a model can come to, breadth
// first, and says whether one of them is wrong, or one from which nothing good
// can be reached any more. What it finds it shows by a shortest way there.
//
// It is exact: states are compared, not hashes of them. It is bounded: a model
// with more states than it was given room for is an error, not a success.
package explore

import (
	"fmt"
	"strings"
)

// A Transition is one thing that can happen in a state.
type Transition[S comparable] struct {
	// Label says what happens; Model.Describe gives it in words.
	Label uint32
	To    S
	// Fault is true for what may happen and cannot be counted on: nothing good
	// is taken to come of it.
	Fault bool
	// Wrong says which rule is broken by its happening; empty: none.
	Wrong string
}

// A Model is a system as states and what can happen in them.
type Model[S comparable] struct {
	Initial S
	// Next yields everything that can happen in s.
	Next func(s S, yield func(Transition[S]))
	// Good marks what it must be possible to reach from everywhere without a
	// fault; nil asks for nothing.
	Good func(s S) bool
	// Describe puts a label in words, and State, if not nil, a state.
	Describe func(label uint32) string
	State    func(s S) string
	// Limit is the most states that there may be.
	Limit int
}

// A Result is what an exploration came to.
type Result[S comparable] struct {
	States, Transitions int
	// Depth is the length of the longest of the shortest ways.
	Depth int
	// Wrong says what was found, empty if nothing was. Trap is true where it is
	// a state from which nothing good can be reached.
	Wrong string
	Trap  bool
	// Trace is a shortest way there.
	Trace []Step[S]
	// Full is true when Limit was reached: nothing is known then of what was
	// left out.
	Full bool
}

// A Step is what happened, and the state that it led to.
type Step[S comparable] struct {
	Label uint32
	To    S
}

// Run explores m.
func Run[S comparable](m Model[S]) Result[S] {
	e := &exploration[S]{Model: m, index: newIndex[S]()}
	e.add(m.Initial, -1, 0)
	for at := 0; at < len(e.states) && e.wrong == "" && !e.full; at++ {
		e.expand(int32(at))
	}
	r := Result[S]{States: len(e.states), Transitions: e.transitions, Depth: e.depth(int32(len(e.states) - 1)), Full: e.full}
	switch {
	case e.wrong != "":
		r.Wrong, r.Trace = e.wrong, append(e.trace(e.from), e.last)
	case e.full:
		r.Wrong = fmt.Sprintf("more than %d states", m.Limit)
	case m.Good != nil:
		if at := e.trapped(); at >= 0 {
			r.Wrong, r.Trap, r.Trace = "nothing good can be reached any more", true, e.trace(at)
		}
	}
	return r
}

// An exploration is what is known so far. States are numbered as they are
// found, which is by distance.
type exploration[S comparable] struct {
	Model[S]
	index  *index[S]
	states []S
	parent []int32
	labels []uint32 // of the step from the parent

	// The successors without a fault of state i are next[first[i]:first[i+1]].
	first []int32
	next  []int32

	transitions int
	full        bool
	wrong       string
	from        int32
	last        Step[S]
}

func (e *exploration[S]) add(s S, parent int32, label uint32) int32 {
	at, known := e.index.number(s, e.states)
	if known {
		return at
	}
	e.states = append(e.states, s)
	e.parent = append(e.parent, parent)
	e.labels = append(e.labels, label)
	return at
}

func (e *exploration[S]) expand(at int32) {
	e.first = append(e.first, int32(len(e.next)))
	e.Next(e.states[at], func(t Transition[S]) {
		if e.wrong != "" || e.full {
			return
		}
		e.transitions++
		if t.Wrong != "" {
			e.wrong, e.from, e.last = t.Wrong, at, Step[S]{t.Label, t.To}
			return
		}
		to := e.add(t.To, at, t.Label)
		if !t.Fault && e.Good != nil {
			e.next = append(e.next, to)
		}
		e.full = len(e.states) > e.Limit
	})
}

// trapped is the first state from which nothing good can be reached; negative:
// there is none.
func (e *exploration[S]) trapped() int32 {
	before := e.reversed()
	saved := make([]bool, len(e.states))
	var todo []int32
	for at, s := range e.states {
		if e.Good(s) {
			saved[at] = true
			todo = append(todo, int32(at))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range before(at) {
			if !saved[from] {
				saved[from] = true
				todo = append(todo, from)
			}
		}
	}
	for at, ok := range saved {
		if !ok {
			return int32(at)
		}
	}
	return -1
}

// reversed gives the states that a state can be reached from in one step.
func (e *exploration[S]) reversed() func(int32) []int32 {
	e.first = append(e.first, int32(len(e.next)))
	ends := make([]int32, len(e.states)+1)
	for _, to := range e.next {
		ends[to+1]++
	}
	for i := range e.states {
		ends[i+1] += ends[i]
	}
	froms, fill := make([]int32, len(e.next)), append([]int32(nil), ends...)
	for from := range e.states {
		for _, to := range e.next[e.first[from]:e.first[from+1]] {
			froms[fill[to]] = int32(from)
			fill[to]++
		}
	}
	return func(at int32) []int32 { return froms[ends[at]:ends[at+1]] }
}

func (e *exploration[S]) depth(at int32) (n int) {
	for ; e.parent[at] >= 0; at = e.parent[at] {
		n++
	}
	return n
}

func (e *exploration[S]) trace(at int32) []Step[S] {
	steps := make([]Step[S], e.depth(at))
	for i := len(steps) - 1; i >= 0; i-- {
		steps[i] = Step[S]{e.labels[at], e.states[at]}
		at = e.parent[at]
	}
	return steps
}

// Tell puts what was found, and the way there, in words.
func (m Model[S]) Tell(r Result[S]) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, after %d steps:\n", r.Wrong, len(r.Trace))
	for i, s := range r.Trace {
		fmt.Fprintf(&b, "%3d. %s\n", i+1, m.Describe(s.Label))
		if m.State != nil {
			fmt.Fprintf(&b, "       %s\n", m.State(s.To))
		}
	}
	return b.String()
}
