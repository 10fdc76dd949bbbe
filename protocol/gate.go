package protocol

import "github.com/rouse-dev/rouse/workload"

// News is what a gate learns of a state.
type News struct {
	Phase                workload.Phase
	Generation, Revision uint64
	Serving              bool // it has replicas
}

// A Gate is what one gateway knows of a workload, and what keeps its gate shut.
// The zero value knows nothing and is shut. It is a value: to compare two is
// to compare all they know.
type Gate struct {
	Known     News
	Closed    uint64 // revision of the drain that shut it and is not known yet; 0: none
	Refused   bool   // every replica refused
	Forgotten bool   // the next news is taken, whatever its revision
}

// A Hearing says what news was to a gate.
type Hearing uint8

const (
	HeardOld   Hearing = iota // older than what is known: dropped
	HeardAgain                // what is known already
	HeardFirst                // the first of all, which may tell of what is long past
	HeardMore                 // newer, of the phase and generation that are known
	HeardNew
)

// Hear takes in news, in whatever order it comes: its revision alone decides.
func (g *Gate) Hear(n News) Hearing {
	heard := HeardNew
	switch known := g.Known.Revision; {
	case g.Forgotten || known == 0 && n.Revision > 0:
		heard = HeardFirst
	case n.Revision == known:
		return HeardAgain
	case n.Revision < known:
		return HeardOld
	case n.Phase == g.Known.Phase && n.Generation == g.Known.Generation:
		heard = HeardMore
	}
	if n.Revision >= g.Closed {
		g.Closed = 0
	}
	g.Known, g.Refused, g.Forgotten = n, false, false
	return heard
}

// Fails reports whether news ends those who wait. The first of all may tell of
// a failure that is long ago: those who wait are to meet it as they would have
// met it at the door, and only while it keeps everybody off. More of one that
// is known, a lease that was renewed, is nothing to those who came after it.
func (h Hearing) Fails(n News, backOff bool) bool {
	return n.Phase == workload.Failed && (h == HeardNew || h == HeardFirst && backOff)
}

// Forget has the next news taken whatever its revision, because the store was
// replaced. What is shut stays so until then.
func (g *Gate) Forget() {
	g.Forgotten, g.Closed = true, min(g.Closed, 1)
}

// Drain shuts the gate for a sleep that was written as that revision, even
// before the news of it: what was written earlier must not open it again. It
// reports whether the gate is shut, and stays so until newer news. If it is
// not, that revision is long past, and nothing can be said for it.
func (g *Gate) Drain(revision uint64) bool {
	if revision > g.Known.Revision || g.Forgotten {
		g.Closed = max(g.Closed, revision)
	}
	return g.Shut()
}

// Refuse takes in that every replica refused. What was there may have ended,
// and its address may belong to another by now: nothing is tried again before
// the scaler has been told and the store asked.
func (g *Gate) Refuse() { g.Refused = true }

// Retry lets one request try again, once that was done and brought no newer
// news: then what refused is there and will answer again, or the store cannot
// be asked and must not take a workload down.
func (g *Gate) Retry() { g.Refused = false }

// Shut reports whether requests must not pass.
func (g *Gate) Shut() bool {
	return g.Known.Phase != workload.Ready || !g.Known.Serving || g.Closed != 0 || g.Refused
}

// Unreachable reports whether what claims to be ready has to be proved again.
func (g *Gate) Unreachable() bool {
	return g.Refused || g.Known.Phase == workload.Ready && !g.Known.Serving
}

// Asks reports whether a shut gate is to be asked for: while somebody waits,
// and, should all have left, until the first ask was handed over.
func Asks(waiting, taken bool) bool { return waiting || !taken }
