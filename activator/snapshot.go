package activator

import (
	"crypto/sha256"
	"encoding/hex"
	"sync/atomic"

	"github.com/rouse-dev/rouse/workload"
)

// A snapshot is all that the warm path looks at: one immutable value, so that
// phase, generation and replicas can never disagree.
type snapshot struct {
	open    bool // requests may pass without the gate's lock
	state   workload.State
	targets []target
	version uint64 // of state and targets
}

// A target is a replica and its tally.
type target struct {
	workload.Replica
	*tally
	key string
}

// A tally is what one gateway knows of one replica. It belongs to the
// replica's ID and outlives every snapshot that the replica is in.
type tally struct {
	// load has the requests in flight in its lower half, and those of them
	// that do not count as use in its upper: one word, so that the two are
	// read as of one moment and the warm path pays for one atomic.
	load atomic.Uint64
	// suspect is the clock reading until which others are preferred, because
	// it refused; 0 is none.
	suspect atomic.Int64
	// refusals counts those in a row.
	refusals atomic.Int32
	// breaker keeps requests away that it would fail.
	breaker breaker
	// latency is a moving average of the time to the first byte, in ns, and
	// measured the clock reading of the last: of StrategyFastest alone.
	latency, measured atomic.Int64
}

// The weights of a request in a tally.
const (
	weightUse    = 1
	weightNoWake = 1<<32 | 1
)

func weightOf(noWake bool) uint64 {
	if noWake {
		return weightNoWake
	}
	return weightUse
}

func (t *tally) enter(weight uint64) { t.load.Add(weight) }

func (t *tally) leave(weight uint64) { t.load.Add(-weight) }

// inFlight is every request in flight, used those that count as use.
func (t *tally) inFlight() int { return int(uint32(t.load.Load())) }

func (t *tally) used() int {
	v := t.load.Load()
	return int(uint32(v)) - int(v>>32)
}

// suspected reports whether it refused of late.
func (t *tally) suspected(c clock) bool {
	until := t.suspect.Load()
	return until != 0 && c.now() < until
}

// cleared forgets every refusal.
func (t *tally) cleared() {
	if t.suspect.Load() != 0 || t.refusals.Load() != 0 {
		t.suspect.Store(0)
		t.refusals.Store(0)
	}
}

// retarget makes the targets of a new state. A replica that was there before
// keeps its tally. Under the lock.
func (g *Gate) retarget(s workload.State) {
	targets := make([]target, len(s.Replicas))
	for i, r := range s.Replicas {
		t := g.tallies[r.ID]
		if t == nil {
			t = &tally{}
			g.tallies[r.ID] = t
		}
		targets[i] = target{r, t, keyOf(r.ID)}
	}
	g.targets = targets
	g.unsuspect()
}

// keyOf names a replica to clients, who need not know how it is called.
func keyOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

// publish makes what is known what the warm path sees. Under the lock.
func (g *Gate) publish() {
	open := g.passing && g.opening == nil
	if s := g.snapshot.Load(); s.open == open && s.version == g.version {
		return
	}
	g.snapshot.Store(&snapshot{open: open, state: g.state, targets: g.targets, version: g.version})
}

// prune drops the tallies of replicas that are gone and carry nothing. It
// comes after publish: from then on no new lease can be made on them.
func (g *Gate) prune() {
	for id, t := range g.tallies {
		if t.inFlight() == 0 && g.find(id) == nil {
			delete(g.tallies, id)
		}
	}
}

// find gives the target of that ID, nil when the state has none.
func (g *Gate) find(id string) *target {
	for i := range g.targets {
		if g.targets[i].ID == id {
			return &g.targets[i]
		}
	}
	return nil
}
