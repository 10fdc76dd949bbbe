package activator

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// maxEarly bounds the states kept for workloads that no catalog has brought.
// One that is not kept is read again by the first ask.
const maxEarly = 4096

// Update takes the whole catalog. Gates of workloads that stay keep all they
// have, and the new description holds at once. Those who wait for a workload
// that is gone get ErrRemoved; what it has in flight is still counted.
func (a *Activator) Update(ws []workload.Workload) {
	a.mu.Lock()
	defer a.mu.Unlock()
	gates := make(map[string]*Gate, len(ws))
	for _, w := range ws {
		gates[w.Name] = a.place(w)
	}
	for name, g := range a.known {
		if gates[name] == nil {
			a.remove(name, g)
		}
	}
	a.gates.Store(&gates)
}

// place gives the gate of w, an old one where there is one. Under the lock.
func (a *Activator) place(w workload.Workload) *Gate {
	g := a.known[w.Name]
	if g == nil {
		g = newGate(a, w)
		a.known[w.Name] = g
		g.observe(a.early[w.Name], time.Now())
		delete(a.early, w.Name)
	}
	g.update(w)
	if a.stopped {
		g.stop(ErrShutdown)
	}
	return g
}

// remove closes a gate for good. It is kept while it has anything in flight:
// should its workload come back, a drain must know. Under the lock.
func (a *Activator) remove(name string, g *Gate) {
	g.stop(ErrRemoved)
	if g.busy() {
		return
	}
	delete(a.known, name)
	if s, ok := g.news(); ok {
		a.keep(s)
	}
}

// news is what is known; false after a Reset that nothing has followed yet.
func (g *Gate) news() (s workload.State, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state, !g.rules.Forgotten
}

// keep remembers a state without a gate, the newest of each. Under the lock.
func (a *Activator) keep(s workload.State) {
	old, ok := a.early[s.Workload]
	if s.Revision > old.Revision && (ok || len(a.early) < maxEarly) {
		a.early[s.Workload] = s
	}
}

// Observe takes in news of a workload, in any order and any number of times:
// what is not newer than the last is dropped. The state must not be changed
// afterwards. News of an unknown workload is kept for the catalog to bring it.
func (a *Activator) Observe(s workload.State) {
	a.mu.Lock()
	g := a.known[s.Workload]
	if g == nil {
		a.keep(s)
	}
	a.mu.Unlock()
	if g != nil {
		g.observe(s, time.Now())
	}
}

// Reset forgets every revision, because the store was replaced: the next news
// of each workload is taken whatever its revision. Gates stay as they are.
func (a *Activator) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.early)
	for _, g := range a.known {
		g.forget()
	}
}

// lookup is Gate, but also finds the removed ones still in use.
func (a *Activator) lookup(name string) *Gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[name]
}

// all gives every gate, also the removed ones still in use.
func (a *Activator) all() []*Gate {
	a.mu.Lock()
	defer a.mu.Unlock()
	gates := make([]*Gate, 0, len(a.known))
	for _, g := range a.known {
		gates = append(gates, g)
	}
	return gates
}
