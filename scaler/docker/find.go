package docker

import (
	"cmp"
	"slices"

	"github.com/rouse-dev/rouse/workload"
)

// The methods here answer what the view is asked for.

// find returns the IDs of w's containers, the replaced ones too.
func (v *view) find(w *workload.Workload) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var ids []string
	for id, e := range v.entries {
		if w.Selects(e.Container) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(v.entries[a].Name, v.entries[b].Name) })
	return ids
}

// current returns the IDs of w's containers that are to run: those that are
// not replaced by a newer one, and not about to be removed.
func (v *view) current(w *workload.Workload) []string {
	ids := v.find(w)
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.DeleteFunc(ids, func(id string) bool {
		e := v.entries[id]
		return e == nil || e.doomed() || v.replaced(e)
	})
}

func (v *view) replaced(e *entry) bool {
	for _, other := range v.entries {
		if other.replaces(&e.sighting) {
			return true
		}
	}
	return false
}

// A match is a container with one of the workloads that select it.
type match struct {
	record   record
	workload workload.Workload
}

// up returns what runs, or is paused, of the known workloads.
func (v *view) up() []match {
	v.mu.Lock()
	defer v.mu.Unlock()
	var all []match
	for _, e := range v.entries {
		if !e.looked || !e.serving() && !e.frozen() {
			continue
		}
		for _, w := range v.selecting(e) {
			all = append(all, match{e.record, w})
		}
	}
	return all
}

// unseen reports that a look at e is due before anything can be told of it:
// without its ports, half a description would be taken for a wrong one.
func (v *view) unseen(e *entry) bool { return !e.looked && v.wanted(e) }

// replacedBySeen is replaced, once there is something to tell of the newer
// one: until then the older one stands in for it.
func (v *view) replacedBySeen(e *entry) bool {
	for _, other := range v.entries {
		if other.replaces(&e.sighting) && !v.unseen(other) {
			return true
		}
	}
	return false
}

// settled reports that nothing is unseen.
func (v *view) settled() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range v.entries {
		if v.unseen(e) && !e.doomed() {
			return false
		}
	}
	return true
}

func (v *view) containers() []workload.Container {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]workload.Container, 0, len(v.entries))
	for _, e := range v.entries {
		if !e.doomed() && !v.unseen(e) && !v.replacedBySeen(e) {
			all = append(all, e.Container)
		}
	}
	slices.SortFunc(all, func(a, b workload.Container) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
