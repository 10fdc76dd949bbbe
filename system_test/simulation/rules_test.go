package simulation

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// recovery is how long after the loss of the whole store its former contents
// may still lead to what would be wrong otherwise.
const recovery = 10 * time.Second

// lateness is how long after something has ended, at the latest, it is known
// to have: news of the engine, a list and a write.
const lateness = 3 * time.Second

// Rules are what must hold, checked at the moment it could be broken.
type rules struct {
	w *world

	mu     sync.Mutex
	broken []string // guarded by mu

	started map[startOf]*replica // guarded by world.mu
}

// A startOf names what may be started once.
type startOf struct {
	store      int
	box        string
	generation uint64
}

func newRules(w *world) *rules { return &rules{w: w, started: map[startOf]*replica{}} }

// broke notes that a rule was broken.
func (r *rules) broke(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.w.note("RULE", "%s", text)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, text)
}

func (r *rules) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.broken...)
}

// An arrow is a move from one phase to another; true where the next
// generation begins with it.
type arrow struct {
	from, to workload.Phase
	next     bool
}

// arrows are those of scaler/DESIGN.md, and the ones to the same phase.
var arrows = map[arrow]bool{
	{workload.Asleep, workload.Waking, true}:      true, // wake
	{workload.Failed, workload.Waking, true}:      true,
	{workload.Asleep, workload.Ready, true}:       true, // adopted
	{workload.Failed, workload.Ready, true}:       true,
	{workload.Asleep, workload.Draining, false}:   true, // asked to sleep, and it runs
	{workload.Failed, workload.Draining, false}:   true,
	{workload.Waking, workload.Waking, false}:     true, // lease
	{workload.Failed, workload.Failed, false}:     true, // lease of what is given up
	{workload.Waking, workload.Ready, false}:      true, // proved
	{workload.Waking, workload.Failed, false}:     true,
	{workload.Waking, workload.Asleep, false}:     true, // nobody asks, nothing runs
	{workload.Ready, workload.Ready, false}:       true, // replicas, or told again
	{workload.Ready, workload.Ready, true}:        true, // adopted
	{workload.Ready, workload.Draining, false}:    true, // idle, or asked
	{workload.Ready, workload.Asleep, false}:      true, // ended
	{workload.Ready, workload.Waking, true}:       true, // refused by all
	{workload.Draining, workload.Draining, false}: true, // lease, or the stop begins
	{workload.Draining, workload.Ready, false}:    true, // called off
	{workload.Draining, workload.Asleep, false}:   true, // stopped
	{workload.Draining, workload.Failed, false}:   true, // called off
	{workload.Draining, workload.Ready, true}:     true, // of nobody, adopted
	{workload.Draining, workload.Waking, true}:    true, // of nobody, and somebody asks
}

// written checks a write of a state. Under world.mu.
func (r *rules) written(node string, before, after workload.State) {
	r.w.note(node, "%s is %s %d, revision %d, %v", after.Workload, after.Phase, after.Generation, after.Revision, ids(after.Replicas))
	a := arrow{before.Phase, after.Phase, after.Generation == before.Generation+1}
	if after.Phase == workload.Waking && a.next {
		r.w.did("cold start")
	}
	first := before.Revision == 0 && a == (arrow{workload.Asleep, workload.Asleep, false})
	if r.forgiven() { // a revision of the lost store may be one of the new
		return
	}
	if (!arrows[a] && !first) || (!a.next && after.Generation != before.Generation) {
		r.broke("%s moved %s from %s %d to %s %d", node, after.Workload, before.Phase, before.Generation, after.Phase, after.Generation)
	}
	if before.Owner != "" && before.Owner != node && time.Now().Before(before.LeaseUntil) {
		r.broke("%s wrote %s of %s, whose lease ends in %v", node, after.Workload, before.Owner, time.Until(before.LeaseUntil))
	}
	if protocol.TurnOf(before) != protocol.TurnTaken && after.Phase == workload.Waking && protocol.TurnOf(after) == protocol.TurnTaken {
		r.turn(node, after)
	}
	if a == (arrow{workload.Ready, workload.Asleep, false}) {
		r.asleep(node, before)
	}
	if after.Phase == workload.Ready && a.next {
		r.adopted(node, after)
	}
}

// turn checks that nobody who conflicts has had its turn: what was adopted has
// had none.
func (r *rules) turn(node string, after workload.State) {
	r.w.did("turn")
	for _, s := range r.w.plan.specs {
		if !slices.Contains(s.ConflictsWith, after.Workload) || r.unknown(s.Name) {
			continue
		}
		rival := r.stored(s.Name)
		up := rival.Phase == workload.Waking && protocol.TurnOf(rival) == protocol.TurnTaken ||
			(rival.Phase == workload.Ready || rival.Phase == workload.Draining) && rival.Wake != nil
		if up {
			r.broke("%s starts %s beside %s, which is %s", node, after.Workload, s.Name, rival.Phase)
		}
	}
}

// unknown reports that a scaler may not know of a workload, which was taken out
// of the catalog or has come back a moment ago. Under world.mu.
func (r *rules) unknown(name string) bool {
	b := r.w.bus
	return !names(b.catalog)[name] || !b.changed.IsZero() && time.Since(b.changed) < lateness
}

// asleep checks that what is said to have ended has.
func (r *rules) asleep(node string, before workload.State) {
	for _, known := range before.Replicas {
		if at := r.w.engine.find(known.ID); at != nil && at.box.phase == up && !r.forgiven() {
			r.broke("%s says that %s sleeps, and %s runs", node, before.Workload, known.ID)
		}
	}
}

// adopted checks that what is adopted runs, as far as could be known.
func (r *rules) adopted(node string, after workload.State) {
	for _, known := range after.Replicas {
		ended := r.w.engine.ended[known.ID]
		if !ended.IsZero() && time.Since(ended) > lateness && !r.forgiven() {
			r.broke("%s adopts %s, which ended %v ago", node, known.ID, time.Since(ended))
		}
	}
}

// stale checks that no state names a replica for long which has ended, while
// nothing keeps anybody from knowing. Under world.mu.
func (r *rules) stale() {
	if r.w.troubled() || time.Since(r.w.engine.clearSince) < 2*lateness {
		return
	}
	for _, s := range r.w.plan.specs {
		st := r.stored(s.Name)
		if st.Phase != workload.Ready {
			continue
		}
		for _, known := range st.Replicas {
			if ended := r.w.engine.ended[known.ID]; !ended.IsZero() && time.Since(ended) > 2*lateness {
				r.broke("%s is ready with %s, which ended %v ago", s.Name, known.ID, time.Since(ended))
			}
		}
	}
}

func ids(rs []workload.Replica) (out []string) {
	for _, r := range rs {
		out = append(out, r.ID)
	}
	return out
}

// stored is the truth about a workload. Under world.mu.
func (r *rules) stored(name string) workload.State {
	rec := r.w.bus.states.latest[name]
	rec.key = name
	return decodeState(rec)
}

// forgiven reports that the store was lost not long ago: no rule is kept by
// those who acted on what it said. Under world.mu.
func (r *rules) forgiven() bool {
	t := r.w.bus.states.renewed
	return !t.IsZero() && time.Since(t) < recovery
}

// starts checks that a scaler brings up what does not run. Under world.mu.
func (r *rules) starts(node string, b *box) {
	st := r.stored(b.workload)
	of := startOf{r.w.bus.states.created, b.name, st.Generation}
	before := r.started[of]
	switch {
	case r.forgiven():
	case st.Phase != workload.Waking && r.w.scalerOf(node).conn.through(r.w.scalerOf(node).conn.number):
		r.broke("%s starts %s, which is %s", node, b.name, st.Phase)
	case before != nil && before.stopBy != nil:
		r.broke("%s starts %s a second time in generation %d", node, b.name, st.Generation)
	}
	r.started[of] = nil
}

// stops checks that nothing is stopped which is in use. Under world.mu.
func (r *rules) stops(p *platform, name string) {
	st := r.stored(name)
	draining := st.Phase == workload.Draining && st.Owner == p.node && len(st.Replicas) == 0
	if !draining && st.Phase != workload.Failed && !r.forgiven() {
		r.broke("%s stops %s, which is %s of %q with %v", p.node, name, st.Phase, st.Owner, ids(st.Replicas))
	}
	for _, b := range r.w.engine.boxes[name] {
		if b.phase != up || b.replica == nil {
			continue
		}
		r.w.did("stop")
		for q := range r.w.leased {
			if q.target.ID == b.replica.ID {
				r.inUse(p.node, q, b.replica, "is stopped with %s in flight")
			}
		}
	}
}

// accepted checks where a request has come. Under world.mu.
func (r *rules) accepted(q *request, target workload.Replica, to *replica) {
	q.executed++
	if q.executed > 1 {
		r.broke("%s is executed %d times", q.id, q.executed)
	}
	if to.stopBy != nil {
		r.inUse(to.stopBy.node, q, to, "is being stopped and gets %s")
	}
	if to.box.workload != q.workload {
		r.strayed(q, target, to)
	}
}

// inUse is a stop of what is in use. What a gateway does is not known to a
// scaler that has not heard of it for LostGateway, nor to one that came after
// the last word of that gateway was lost with the memory of the bus; and one
// that was cut off before it was told to end is taken for dead once its
// successor is heard from the same place.
func (r *rules) inUse(node string, q *request, on *replica, how string) {
	g, s := q.gateway, r.w.scalerOf(node)
	now := time.Now()
	switch {
	case r.forgiven():
	case now.Sub(g.heard) >= r.w.plan.lostGateway:
		r.w.did("in use, unheard for long")
	case g.leaving && !g.farewell: // its successor listens where it did
		r.w.did("in use, unheard at its end")
	case r.w.bus.activity.renewed.After(g.heard) && !knows(s.board, g.name, now):
		r.w.did("in use, forgotten by all")
	default:
		r.broke("%s "+how+" of %s, by %s", on.ID, q.id, g.name, node)
	}
}

func knows(b *workload.Board, name string, now time.Time) bool {
	for _, known := range append(b.Alive(now), b.Silent(now, now, time.Time{})...) {
		if known == name {
			return true
		}
	}
	return false
}

// strayed is a request that reached another workload at the address of a
// replica that has ended. Between the end and the news of it nobody can know
// better, nor can a gateway that hears nothing.
func (r *rules) strayed(q *request, target workload.Replica, to *replica) {
	since := time.Since(r.w.engine.ended[target.ID])
	r.w.did("strayed")
	r.w.note(q.gateway.name, "%s strayed to %s, %s ended %v ago", q.id, to.ID, target.ID, since)
	if since > lateness && !r.w.troubled() && !r.forgiven() && q.gateway.conn.connected {
		r.broke("%s of %s is sent to %s of %s, where %s ended %v ago", q.id, q.workload, to.ID, to.box.workload, target.ID, since)
	}
}
