package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// A draft is a workload in the making: an entry, containers, or both.
type draft struct {
	name       string
	entry      *Entry               // nil: found by labels alone
	containers []workload.Container // by name; none for a process, or where they are yet to come
	settings   map[string]string    // key -> place of the value that counts
	w          workload.Workload
	bad        bool // taken out
}

// place is where the draft is described, for a problem of the whole.
func (d *draft) place() string {
	if d.entry != nil {
		return d.entry.Place
	}
	return d.containers[0].Name
}

// placeOf is where the value of the key was given, or else the draft.
func (d *draft) placeOf(key string) string {
	if place := d.settings[key]; place != "" {
		return place
	}
	return d.place()
}

// drafts sorts entries and containers into workloads: entries first, in the
// order of the file, then those found by their labels, by name.
func (b *builder) drafts() []*draft {
	s := &sorter{b: b, named: map[string]*draft{}, container: map[string]*draft{}, service: map[string]*draft{}}
	for i := range b.in.Entries {
		s.entry(&b.in.Entries[i])
	}
	containers := withoutPassing(b.in.Containers)
	slices.SortFunc(containers, func(x, y workload.Container) int {
		return cmp.Or(cmp.Compare(x.WorkloadName(), y.WorkloadName()), cmp.Compare(x.Name, y.Name))
	})
	for _, c := range containers {
		s.sort(c)
	}
	return s.drafts
}

// A sorter knows which draft an entry or container belongs to.
type sorter struct {
	b         *builder
	drafts    []*draft
	named     map[string]*draft // workload -> draft
	container map[string]*draft // container that an entry names -> its draft
	service   map[string]*draft // service that an entry names -> its draft
}

func (s *sorter) add(d *draft) *draft {
	s.drafts = append(s.drafts, d)
	s.named[d.name] = d
	return d
}

func (s *sorter) entry(e *Entry) {
	d := &draft{name: e.Name, entry: e}
	if first := s.named[e.Name]; first != nil {
		s.b.reject(d, e.Place, fmt.Sprintf("the name %s is taken by %s", e.Name, first.place()), "give one of them another name")
		return
	}
	s.add(d)
	s.claim(d, s.container, "container", e.Container)
	s.claim(d, s.service, "service", e.Service)
}

// claim notes that the draft is about what the entry names.
func (s *sorter) claim(d *draft, claims map[string]*draft, kind, name string) {
	if name == "" {
		return
	}
	if first := claims[name]; first != nil {
		s.b.reject(d, d.entry.Place, fmt.Sprintf("%s %s belongs to %s already (%s)", kind, name, first.name, first.place()), "name another, or remove one of the entries")
		return
	}
	claims[name] = d
}

// sort finds the draft of one container.
func (s *sorter) sort(c workload.Container) {
	byName, byService := s.container[c.Name], s.service[c.Service]
	switch {
	case byName != nil && byService != nil:
		s.b.reject(byService, byService.place(), fmt.Sprintf("container %s of service %s belongs to %s already (%s)", c.Name, c.Service, byName.name, byName.place()), "remove one of the entries")
		byName.containers = append(byName.containers, c)
	case byName != nil:
		byName.containers = append(byName.containers, c)
	case byService != nil:
		byService.containers = append(byService.containers, c)
	default:
		s.labelled(c)
	}
}

// labelled finds the draft of a container that no entry names.
func (s *sorter) labelled(c workload.Container) {
	name := c.WorkloadName()
	if enable, given := c.Labels["enable"]; given && enable != "true" && enable != "false" {
		s.b.report(workload.Problem{Workload: name, Place: c.Name, Message: fmt.Sprintf("%s: %q is neither true nor false", s.b.label("enable"), enable), Fix: "write true or false"})
		return
	}
	if !c.Enabled() {
		return
	}
	if err := workload.ValidName(name); err != nil {
		s.b.report(workload.Problem{Place: c.Name, Message: err.Error(), Fix: "set " + s.b.label("name")})
		return
	}
	d := s.named[name]
	switch {
	case d == nil:
		d = s.add(&draft{name: name})
	case d.entry != nil && d.entry.kind() != "":
		s.b.report(workload.Problem{Workload: name, Place: c.Name, Message: fmt.Sprintf("the name %s is taken by %s, which does not mean this container", name, d.place()), Fix: "set another " + s.b.label("name")})
		return
	}
	d.containers = append(d.containers, c)
}

// kind names what the entry is about, empty for the containers that carry
// its name.
func (e *Entry) kind() string {
	switch {
	case e.Container != "":
		return "container " + e.Container
	case e.Service != "":
		return "service " + e.Service
	case e.Process != nil:
		return "process"
	}
	return ""
}

// withoutPassing leaves out the one of a pair of containers that compose is
// about to remove or rename: while it recreates a service, one of the two is
// named after the ID of the old. Their labels may differ, and must not take
// out the workload for that moment.
func withoutPassing(containers []workload.Container) []workload.Container {
	ids := map[string]bool{} // first 12 characters of an ID -> listed
	for _, c := range containers {
		ids[shortID(c)] = true
	}
	passing := func(c workload.Container) bool {
		id, _, ok := strings.Cut(c.Name, "_")
		return ok && len(id) == shortLen && ids[id]
	}
	settled := map[string]bool{} // project and service -> has one that stays
	for _, c := range containers {
		if c.Service != "" && !passing(c) {
			settled[c.Project+"\x00"+c.Service] = true
		}
	}
	var kept []workload.Container
	for _, c := range containers {
		if !passing(c) || !settled[c.Project+"\x00"+c.Service] {
			kept = append(kept, c)
		}
	}
	return kept
}

const shortLen = 12

func shortID(c workload.Container) string {
	if len(c.ID) < shortLen {
		return c.ID
	}
	return c.ID[:shortLen]
}
