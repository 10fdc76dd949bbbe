package scaler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// lookAgain is how often a wake that waits for its turn reads the states
	// of its rivals without a cause.
	lookAgain = 250 * time.Millisecond
	// patience is how long a rival that is in use is served on before it has
	// to make way: its gates close, and it sleeps once its last requests have
	// ended. It has that long at least, whoever waits.
	patience = 10 * time.Second
	// lull is how long a rival is ready before it makes way for being unused:
	// what was held for it is on its way to it.
	lull = time.Second
)

// conflicts of a workload are those that it never runs beside, as far as they
// are of this node.
func (l *life) conflicts() []*life {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	var rivals []*life
	for _, name := range l.spec.ConflictsWith {
		if rival := l.s.lives[name]; rival != nil {
			rivals = append(rivals, rival)
		}
	}
	return rivals
}

// await fills in that a wake waits for its turn. Where nothing seems to be in
// its way it means to start at once.
func (l *life) await(st *workload.State) {
	if len(l.spec.ConflictsWith) == 0 {
		return
	}
	var seen protocol.Rivals
	var inTheWay []string
	for _, rival := range l.conflicts() {
		g := rival.glimpse()
		met := seen.Meet(*st, g.state, g.runs)
		if met != seen || met.Up {
			inTheWay = append(inTheWay, rival.name)
		}
		seen = met
	}
	st.Claimed = seen.Free(false)
	st.Reason = waitsFor(l.spec.ConflictsWith)
	if len(inTheWay) > 0 {
		st.Reason = waitsFor(inTheWay)
	}
}

func waitsFor(names []string) workload.Reason {
	return workload.Reason{Code: workload.ReasonConflict, Detail: "it waits until " + strings.Join(names, ", ") + " sleeps, which it never runs beside"}
}

// lookRound reads what its rivals do: from the store, since another scaler may
// have them in hand. What this scaler knows less of is read again by whoever
// looks after it.
func (l *life) lookRound(ctx context.Context, w *waking) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	var seen protocol.Rivals
	w.inTheWay = nil
	for _, rival := range l.conflicts() {
		st, err := l.s.deps.Store.Current(ctx, rival.name)
		if err != nil {
			l.trouble("state of "+rival.name+" not read", err)
			return
		}
		st.Workload = rival.name
		g := rival.glimpse()
		if st.Revision != g.state.Revision {
			rival.post(func() { rival.stale = true })
		}
		met := seen.Meet(l.st, st, g.runs)
		if met != seen || met.Up {
			w.inTheWay = append(w.inTheWay, rival.name)
		}
		seen = met
	}
	seen.Known = true
	w.rivals, w.lookAgain = seen, time.Now().Add(lookAgain)
	l.pause, l.moved = 0, true
}

// takeTurn takes a step of a wake that waits for its turn.
func (l *life) takeTurn(ctx context.Context, m protocol.Move) {
	w := l.waking
	took := l.write(ctx, m, func(st *workload.State) {
		switch m {
		case protocol.TakeTurn:
			st.Claimed, st.Reason = false, workload.Reason{}
		default:
			st.Claimed = m == protocol.Claim
			w.tell(st)
		}
	})
	w.rivals = protocol.Rivals{} // what was seen before the write proves nothing
	if took && m == protocol.TakeTurn {
		w.deadline = time.Now().Add(l.wakeTimeout()) // the start has all of it
	}
}

// seen is what the last look has shown, unless it is too old.
func (w *waking) seen(now time.Time) protocol.Rivals {
	seen := w.rivals
	seen.Known = seen.Known && now.Before(w.lookAgain)
	return seen
}

// tell says what it waits for, as of the last look.
func (w *waking) tell(st *workload.State) {
	if len(w.inTheWay) > 0 && protocol.TurnOf(*st) != protocol.TurnTaken {
		st.Reason = waitsFor(w.inTheWay)
	}
}

// waitedInVain is why a wake failed that did not have its turn in time.
func (l *life) waitedInVain(w *waking) workload.Reason {
	names := w.inTheWay
	if len(names) == 0 {
		names = l.spec.ConflictsWith
	}
	return workload.Reason{
		Code:   workload.ReasonConflict,
		Detail: fmt.Sprintf("it never runs beside %s, which did not sleep within %s", strings.Join(names, ", "), l.wakeTimeout()),
	}
}

// rivalsOf are, for each workload, those for whose wakes it has to make way:
// what it conflicts with, and what something that it depends on does, which
// cannot sleep before it. Workloads without any are left out.
func rivalsOf(ws map[string]workload.Workload) map[string][]string {
	rivals := map[string][]string{}
	for name := range ws {
		visited := map[string]bool{}
		var found []string
		var visit func(string)
		visit = func(name string) {
			if visited[name] {
				return
			}
			visited[name] = true
			found = append(found, ws[name].ConflictsWith...)
			for _, needed := range ws[name].DependsOn {
				visit(needed)
			}
		}
		if visit(name); len(found) > 0 {
			rivals[name] = found
		}
	}
	return rivals
}

// rival is the one that has waited for longest until name sleeps, and since
// when; empty if there is none.
func (s *Scaler) rival(name string) (rival string, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.rivals[name] {
		l := s.lives[other]
		if l == nil {
			continue
		}
		g := l.glimpse()
		if protocol.TurnOf(g.state) != protocol.TurnTaken && (rival == "" || g.phaseAt.Before(since)) {
			rival, since = other, g.phaseAt
		}
	}
	return rival, since
}

// outdone reports whether a rival runs or waits to: no window wakes what would
// have to make way for it.
func (s *Scaler) outdone(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rivals[name], func(other string) bool {
		l := s.lives[other]
		return l != nil && (l.glimpse().runs || !down(l.glimpse().state.Phase))
	})
}

// makesWay reports whether a ready workload has to sleep for a rival: now that
// nobody uses it, or whoever does (pressed), since the rival has waited for
// long enough. It sees to it that the life looks again.
func (l *life) makesWay(now time.Time) (unused, pressed bool) {
	rival, since := l.s.rival(l.name)
	if rival == "" {
		return false, false
	}
	press := latest(since, l.readySince).Add(patience)
	if !now.Before(press) {
		return false, true
	}
	l.lookAt(press)
	if rested := latest(l.floor, l.readySince).Add(lull); now.Before(rested) {
		l.lookAt(rested)
		return false, false
	}
	l.lookAt(now.Add(lookAgain))
	use := l.s.deps.Board.Use(l.name, now)
	return use.InFlight+use.Queued+len(l.asks) == 0, false
}

// nudge has those look again that wait for this workload, or that it waits
// for.
func (s *Scaler) nudge(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, rivals := range s.rivals {
		l := s.lives[other]
		if l != nil && other != name && (slices.Contains(rivals, name) || slices.Contains(s.rivals[name], other)) {
			l.post(l.nudged)
		}
	}
}

func (l *life) nudged() {
	if l.waking != nil {
		l.waking.rivals.Known = false
	}
}
