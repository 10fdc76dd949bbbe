package catalog

import (
	"fmt"
	"slices"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// conflict makes conflicts mutual, and cuts those that lead nowhere or could
// never be kept: with itself, and with what has to be awake beside it. A cut is
// a problem, but takes nothing out.
func (b *builder) conflict(settled []*draft) {
	known := map[string]*draft{} // workload -> draft
	for _, d := range settled {
		known[d.name] = d
	}
	asked := make([][]string, len(settled))
	for i, d := range settled {
		asked[i], d.w.ConflictsWith = unique(d.w.ConflictsWith), nil
	}
	for i, d := range settled {
		for _, name := range asked[i] {
			if !b.compatible(d, name, known) {
				continue
			}
			other := known[name]
			d.w.ConflictsWith = unique(append(d.w.ConflictsWith, name))
			other.w.ConflictsWith = unique(append(other.w.ConflictsWith, d.name))
		}
	}
	for _, d := range settled {
		slices.Sort(d.w.ConflictsWith)
		b.checkStop(d)
	}
}

// compatible reports whether d can conflict with name.
func (b *builder) compatible(d *draft, name string, known map[string]*draft) bool {
	report := func(message, fix string) bool {
		b.report(workload.Problem{Workload: d.name, Place: d.placeOf("conflicts_with"), Message: message, Fix: fix})
		return false
	}
	other := known[name]
	switch {
	case name == d.name:
		return report(fmt.Sprintf("%s conflicts with itself", name), "name the others alone")
	case other == nil && b.blind:
		return false // it may be a workload by its labels
	case other == nil:
		return report(fmt.Sprintf("%s conflicts with %s, which is no workload or has a problem of its own", d.name, name), strict.DidYouMean(name, sortedNames(known)))
	case d.w.Min > 0 && other.w.Min > 0:
		return report(fmt.Sprintf("%s conflicts with %s, and both have a min, so that neither ever sleeps; they run side by side", d.name, name), "take min away from one of them, or the conflict")
	case needs(d, name, known):
		return report(fmt.Sprintf("%s conflicts with %s and depends on it, so that it could never start; they run side by side", d.name, name), "remove one of the two")
	case needs(other, d.name, known):
		return report(fmt.Sprintf("%s conflicts with %s, which depends on it and could never start; they run side by side", d.name, name), "remove one of the two")
	}
	for _, who := range sortedNames(known) {
		if w := known[who]; needs(w, d.name, known) && needs(w, name, known) {
			return report(fmt.Sprintf("%s conflicts with %s, and %s depends on both and could never start; they run side by side", d.name, name, who), "remove the conflict, or one of the dependencies")
		}
	}
	return true
}

// needs reports whether d depends on name, itself or through others. There are
// no circles any more.
func needs(d *draft, name string, known map[string]*draft) bool {
	return slices.ContainsFunc(d.w.DependsOn, func(next string) bool {
		return next == name || known[next] != nil && needs(known[next], name, known)
	})
}

// checkStop has what conflicts with something stopped: what is paused keeps its
// memory, and that of the GPU, which the other needs.
func (b *builder) checkStop(d *draft) {
	if len(d.w.ConflictsWith) == 0 || d.w.Stop == workload.StopStop {
		return
	}
	if place := d.settings["stop"]; place != "" {
		b.report(workload.Problem{
			Workload: d.name, Place: place,
			Message: fmt.Sprintf("%s conflicts with %s, and would keep its memory with stop: %s; it is stopped", d.name, d.w.ConflictsWith[0], d.w.Stop),
			Fix:     "write stop: stop, or remove the conflict",
		})
	}
	d.w.Stop = workload.StopStop
}

func sortedNames(known map[string]*draft) []string {
	var names []string
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
