package protocol_test

import (
	"math/bits"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// The world that the rules are tried in: one workload, its runtime, the store,
// the wake slot, and two each of
const (
	gateways = 2
	scalers  = 2
)

// A world is one state of everything. Revisions, generations and starts count
// without end, but only their order matters: they are numbered anew in each
// state (compact), so that there are finitely many.
type world struct {
	faults uint8 // that may still happen

	stored record
	past   record // the one before, if it can still be news to a gateway
	cool   bool   // the back-off of the last failure is not over

	slot  slot
	place runtime
	gates [gateways]gateway
	lives [scalers]life
}

// A record is a state in the store. 0 is never for what is counted.
type record struct {
	phase    workload.Phase
	gen, rev uint8
	owner    uint8 // a scaler, by number from 1; or gone
	let      bool  // the owner has let go of the lease
	replica  uint8 // the start of the runtime that it says to serve
}

// gone is the owner of leases whose scaler will never come back by that name.
const gone = scalers + 1

// A slot is the one wake that there can be in the queue.
type slot struct {
	with    uint8 // 0: it is empty; a scaler, by number from 1, that works on it; or pending
	gen     uint8
	refused bool
}

const pending = scalers + 1

// A condition is that of the runtime's one replica.
type condition uint8

const (
	down condition = iota
	starting
	up
	stopping // after it was up
	halting  // before it ever was
)

// A runtime is the platform. It goes on when who called it has ended.
type runtime struct {
	condition condition
	start     uint8 // the last one
	gen       uint8 // that it was for
	own       bool  // it has ended by itself since, or was not started by a scaler
	answered  uint8 // which starts ever answered, a bit for each
}

func (r runtime) runs() uint8 {
	if r.condition == down {
		return 0
	}
	return r.start
}

func (r runtime) answers(start uint8) bool {
	return start == r.start && (r.condition == up || r.condition == stopping)
}

// A request is where the one request of a gateway is.
type request uint8

const (
	none request = iota
	held
	served // it has a lease, and has reached the replica
)

// A gateway is one gateway's part: its gate, its request and its drain.
type gateway struct {
	absent bool // there is none
	up     bool
	cut    bool // off from the events
	silent bool // and that was noticed
	known  bool // to the scalers: it was heard, and has said no goodbye
	fresh  bool // it has started, and its first report was not heard yet

	phase             workload.Phase
	gen, rev, replica uint8
	closed            uint8 // the revision that it is shut by
	refused, told     bool

	request       request
	target        uint8
	asking, taken bool

	drain    uint8 // a drain on its way: the scaler that waits for the answer, by number from 1, or nobody
	drainRev uint8
}

const nobody = scalers + 1

// A life is a scaler's part.
type life struct {
	absent                   bool // there is none
	up, read, listed, proved bool
	away                     bool   // it neither hears nor sees what others do, until it looks
	state                    record // the last that it knows
	ranOut                   bool   // that of another was not renewed for as long as a lease lasts
	runs                     uint8
	task                     protocol.Task
	call                     uint8 // the start that the runtime's call is about
	robbed                   bool  // another has taken its lease while it was alive

	wake                             protocol.Wake
	before                           uint8 // what ran when the start was begun
	drain                            protocol.Drain
	from                             record // where the drain goes back to
	answers                          [gateways]answer
	broken                           bool
	trial                            protocol.Trial
	ask, askRefused, askNew, askLost bool // askNew: it came after the phase began; askLost: another has answered it
	askGen                           uint8
	sleep                            bool
}

// An answer is a gateway's to a drain.
type answer uint8

const (
	unasked answer = iota
	missing
	idle
	busy
	waiting
	unclosed
)

// requests counts those that are held or served.
func (w *world) requests() (n int) {
	for i := range w.gates {
		if w.gates[i].request != none {
			n++
		}
	}
	return n
}

// compact numbers what is counted anew, drops what can matter no more, and
// makes worlds equal that differ only in who is called what. Where old news is
// believed it matters still; where one ask is enough, it does whether it was
// made.
func (w *world) compact(old, edge bool) {
	if !old {
		w.dropOld(edge)
	}
	var revs, gens, starts numbers
	w.counted(func(kind *numbers, v *uint8) { *kind |= 1<<*v | 1 }, &revs, &gens, &starts)
	answered := uint8(0)
	for start := range 8 {
		if w.place.answered&starts.bit(start) != 0 {
			answered |= 1 << starts.rank(uint8(start))
		}
	}
	w.counted(func(kind *numbers, v *uint8) { *v = kind.rank(*v) }, &revs, &gens, &starts)
	w.place.answered = answered
	if w.gates[1].order() < w.gates[0].order() {
		w.swapGates()
	}
	if w.lives[1].order() < w.lives[0].order() {
		w.swapLives()
	}
}

// A numbers is a set of small numbers in use, which always has 0.
type numbers uint32

func (n numbers) bit(v int) uint8    { return uint8(n & (1 << v)) }
func (n numbers) rank(v uint8) uint8 { return uint8(bits.OnesCount32(uint32(n) & (1<<v - 1))) }

// counted shows everything that is counted, with the set that it belongs to.
func (w *world) counted(show func(*numbers, *uint8), rev, gen, start *numbers) {
	for _, r := range [...]*record{&w.stored, &w.past, &w.lives[0].state, &w.lives[1].state} {
		show(rev, &r.rev)
		show(gen, &r.gen)
		show(start, &r.replica)
	}
	show(gen, &w.slot.gen)
	show(gen, &w.place.gen)
	show(start, &w.place.start)
	for i := range w.gates {
		g := &w.gates[i]
		show(rev, &g.rev)
		show(rev, &g.closed)
		show(rev, &g.drainRev)
		show(gen, &g.gen)
		show(start, &g.replica)
		show(start, &g.target)
	}
	for i := range w.lives {
		l := &w.lives[i]
		show(start, &l.from.replica)
		show(gen, &l.askGen)
		show(start, &l.runs)
		show(start, &l.call)
		show(start, &l.before)
	}
}

// dropOld forgets what can make no difference any more: states that every
// gateway is past, revisions and generations that nothing is compared with.
func (w *world) dropOld(edge bool) {
	late := false
	for i := range w.gates {
		g := &w.gates[i]
		late = late || g.up && !g.cut && g.rev < w.past.rev
		if g.phase != workload.Ready && g.phase != workload.Failed {
			g.phase = workload.Asleep // shut is shut
		}
		if g.request == held && !edge {
			g.taken = false // one more ask, should it leave, does no harm
		}
		if g.phase != workload.Failed {
			w.dropGeneration(&g.gen)
		}
	}
	if !late {
		w.past = record{}
	}
	if w.past.phase != workload.Failed {
		w.dropGeneration(&w.past.gen)
	}
	w.dropGeneration(&w.slot.gen)
	w.dropGeneration(&w.place.gen)
	for i := range w.lives {
		l := &w.lives[i]
		w.dropGeneration(&l.askGen)
		l.from = record{phase: l.from.phase, replica: l.from.replica}
		if l.state.rev != w.stored.rev && l.state.owner != name(i) {
			l.state.rev = 0
		}
	}
}

// dropGeneration forgets one that is nobody's present.
func (w *world) dropGeneration(gen *uint8) {
	if *gen != w.stored.gen && *gen != w.lives[0].state.gen && *gen != w.lives[1].state.gen {
		*gen = 0
	}
}

func (w *world) swapGates() {
	w.gates[0], w.gates[1] = w.gates[1], w.gates[0]
	for i := range w.lives {
		a := &w.lives[i].answers
		a[0], a[1] = a[1], a[0]
	}
}

// swapLives has each scaler be called as the other.
func (w *world) swapLives() {
	w.lives[0], w.lives[1] = w.lives[1], w.lives[0]
	swap := func(name *uint8) {
		if *name == 1 || *name == 2 {
			*name = 3 - *name
		}
	}
	swap(&w.stored.owner)
	swap(&w.past.owner)
	swap(&w.slot.with)
	for i := range w.gates {
		swap(&w.gates[i].drain)
	}
	for i := range w.lives {
		swap(&w.lives[i].state.owner)
	}
}

// order is any that tells most lives apart.
func (l *life) order() uint64 {
	n := uint64(0)
	for _, v := range [...]uint8{
		flags(l.up, l.read, l.listed, l.proved, l.away, l.ranOut, l.ask, l.sleep),
		uint8(l.task), uint8(l.state.phase), l.state.rev, l.runs<<4 | l.call,
		flags(l.wake.Own, l.wake.Begun, l.wake.Called, l.wake.Started, l.wake.Failed, l.robbed, l.broken, l.askLost),
		flags(l.drain.Own, l.drain.Explicit, l.drain.Answered, l.drain.Recorded, l.drain.Stopped),
		uint8(l.answers[0]<<4 | l.answers[1]),
	} {
		n = n<<8 | uint64(v)
	}
	return n
}

// order is the same for gateways.
func (g *gateway) order() uint64 {
	n := uint64(0)
	for _, v := range [...]uint8{
		uint8(g.request), g.rev, g.target, g.drain, g.drainRev, g.closed,
		flags(g.up, g.cut, g.silent, g.known, g.fresh, g.refused, g.told),
		flags(g.asking, g.taken)<<4 | g.replica,
	} {
		n = n<<8 | uint64(v)
	}
	return n
}

func flags(bs ...bool) (n uint8) {
	for i, b := range bs {
		if b {
			n |= 1 << i
		}
	}
	return n
}
