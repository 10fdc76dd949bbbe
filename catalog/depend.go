package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// depend fills in what compose knows about dependencies, and cuts those that
// lead nowhere or in a circle. A cut is a problem, but takes nothing out: a
// workload that starts without its dependency tells more than one that is
// not there.
func (b *builder) depend(settled []*draft) {
	known := map[string]*draft{}    // workload -> draft
	services := map[string]string{} // project and service -> workload
	for _, d := range settled {
		known[d.name] = d
		for _, c := range d.containers {
			services[c.Project+"\x00"+c.Service] = d.name
		}
	}
	for _, d := range settled {
		if d.settings["depends_on"] == "" {
			d.w.DependsOn = composeDependencies(d, services)
		}
		b.cutUnknown(d, known)
	}
	b.cutCycles(settled, known)
}

// composeDependencies are the compose services that the draft depends on, as
// far as they are workloads.
func composeDependencies(d *draft, services map[string]string) []string {
	var names []string
	for _, c := range d.containers {
		for _, service := range c.DependsOn {
			name := services[c.Project+"\x00"+service]
			if name != "" && name != d.name && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Compose's words for how far a service has to be. Where it is service_started
// it has to be ready all the same: one that is not has no use yet.
const (
	healthy   = "service_healthy"
	completed = "service_completed_successfully"
)

// conditions notes what the containers of the drafts wait for.
func (b *builder) conditions(drafts []*draft) {
	b.needs = map[service]map[string]string{}
	for _, d := range drafts {
		for _, c := range d.containers {
			for name, condition := range c.Conditions {
				s := service{c.Project, name}
				if b.needs[s] == nil {
					b.needs[s] = map[string]string{}
				}
				if who := b.needs[s][condition]; who == "" || d.name < who {
					b.needs[s][condition] = d.name
				}
			}
		}
	}
}

// needed names who waits for that condition of d; empty if nobody does.
func (b *builder) needed(d *draft, condition string) string {
	for _, c := range d.containers {
		if who := b.needs[service{c.Project, c.Service}][condition]; who != "" && who != d.name {
			return who
		}
	}
	return ""
}

// checkJob makes a job of what others wait for to complete.
func (b *builder) checkJob(d *draft) {
	by := b.needed(d, completed)
	if by == "" {
		return
	}
	if len(d.w.Hosts) > 0 {
		b.report(workload.Problem{
			Workload: d.name, Place: d.placeOf("host"),
			Message: fmt.Sprintf("%s waits for %s to complete, which has a host and serves until it is put to sleep; it is waited for until it is ready", by, d.name),
			Fix:     "remove the host, or write condition: service_healthy",
		})
		return
	}
	d.w.Job = true
}

func (b *builder) cutUnknown(d *draft, known map[string]*draft) {
	var kept []string
	for _, name := range d.w.DependsOn {
		if known[name] != nil {
			kept = append(kept, name)
			continue
		}
		if b.blind {
			continue // it may be a workload by its labels
		}
		b.report(workload.Problem{
			Workload: d.name, Place: d.placeOf("depends_on"),
			Message: fmt.Sprintf("%s depends on %s, which is no workload or has a problem of its own; it starts without", d.name, name),
			Fix:     strict.DidYouMean(name, sortedNames(known)),
		})
	}
	d.w.DependsOn = unique(kept)
}

// cutCycles drops each dependency that closes a circle, found from the
// workloads in their order.
func (b *builder) cutCycles(settled []*draft, known map[string]*draft) {
	done := map[string]bool{} // workload -> all below it is free of circles
	var path []string         // from where the search began to where it is
	var visit func(d *draft)
	visit = func(d *draft) {
		path = append(path, d.name)
		var kept []string
		for _, name := range d.w.DependsOn {
			if i := slices.Index(path, name); i >= 0 {
				circle := strings.Join(append(slices.Clone(path[i:]), name), " -> ")
				b.report(workload.Problem{
					Workload: d.name, Place: d.placeOf("depends_on"),
					Message: fmt.Sprintf("dependencies go in a circle: %s; %s starts without %s", circle, d.name, name),
					Fix:     "remove one of them",
				})
				continue
			}
			if kept = append(kept, name); !done[name] {
				visit(known[name])
			}
		}
		d.w.DependsOn = kept
		done[d.name] = true
		path = path[:len(path)-1]
	}
	for _, d := range settled {
		if !done[d.name] {
			visit(d)
		}
	}
}
