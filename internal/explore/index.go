package explore

import "hash/maphash"

// An index finds the number of a state. The states themselves are kept by
// their number alone, once: they are what fills the memory.
type index[S comparable] struct {
	seed  maphash.Seed
	slots []slot // a power of two of them, half of them free at least
	used  int
}

// A slot is free where its number is 0.
type slot struct {
	hash   uint32
	number int32 // of the state, from 1
}

func newIndex[S comparable]() *index[S] {
	return &index[S]{seed: maphash.MakeSeed(), slots: make([]slot, 1024)}
}

// number gives the number of s, which is the next one if it is not among the
// states.
func (x *index[S]) number(s S, states []S) (at int32, known bool) {
	if 2*x.used >= len(x.slots) {
		x.grow()
	}
	hash := uint32(maphash.Comparable(x.seed, s))
	i := x.start(hash)
	for ; x.slots[i].number != 0; i = x.after(i) {
		if found := x.slots[i]; found.hash == hash && states[found.number-1] == s {
			return found.number - 1, true
		}
	}
	at = int32(len(states))
	x.slots[i] = slot{hash, at + 1}
	x.used++
	return at, false
}

func (x *index[S]) start(hash uint32) int { return int(hash) & (len(x.slots) - 1) }

func (x *index[S]) after(i int) int { return (i + 1) & (len(x.slots) - 1) }

func (x *index[S]) grow() {
	before := x.slots
	x.slots = make([]slot, 2*len(before))
	for _, s := range before {
		if s.number == 0 {
			continue
		}
		i := x.start(s.hash)
		for x.slots[i].number != 0 {
			i = x.after(i)
		}
		x.slots[i] = s
	}
}
