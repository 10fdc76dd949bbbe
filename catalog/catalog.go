// Package catalog makes workloads out of what describes them: the labels of
// containers and the entries of the config file.
//
// Build is a pure function from one snapshot of both to one workload.Catalog.
// Of a setting that several of them give, the entry wins over the label and
// the label over the default. Whatever is wrong takes out the one workload it
// belongs to, as a Problem that names the place and the way to mend it; all
// others stay as they are. A workload in the result is valid: its names,
// hosts, paths, ports and bounds need no second look, no two of them have the
// same route, their dependencies are known and free of cycles, and their
// conflicts are known, mutual, and not with what has to be awake beside them.
//
// A container that neither opted in by its label nor is named by an entry is
// never part of anything. The package knows no platform, does no I/O and
// starts nothing; nothing in its input makes it panic.
package catalog

import (
	"cmp"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// An Input is one snapshot of everything that describes workloads. Build does
// not change it, and keeps nothing of it but strings.
type Input struct {
	// Node is the scaler's reach that all of it belongs to.
	Node string
	// Defaults has the settings of a workload of which nothing else is said;
	// BuiltIn is where to start from.
	Defaults workload.Workload
	// Prefix of the labels, for messages: "rouse".
	Prefix string
	// Containers are all that the platform has, opted in or not.
	Containers []workload.Container
	// Entries are those of the config file, in its order.
	Entries []Entry
}

// BuiltIn gives the defaults of every workload.
func BuiltIn() workload.Workload {
	return workload.Workload{
		Path:        "/",
		IdleTimeout: 15 * time.Minute,
		HoldTimeout: 50 * time.Second,
		WakeTimeout: 3 * time.Minute,
		Wait:        workload.WaitAuto,
		PageAfter:   800 * time.Millisecond,
		Ready:       workload.Readiness{Kind: workload.ReadyAuto},
		Stop:        workload.StopStop,
		Strategy:    workload.StrategyLeastInFlight,
		StopTimeout: 10 * time.Second,
	}
}

// Build makes the catalog of the input. Workloads are sorted by name, and
// Problems by workload and place.
func Build(in Input) workload.Catalog {
	b := builder{in: in}
	return b.build()
}

// Check finds what is wrong with the entries alone, for a machine on which
// no container is known: doubled names and routes, cycles, bounds that
// contradict each other. What only the containers can tell is not missed.
func Check(defaults workload.Workload, entries []Entry) []workload.Problem {
	b := builder{in: Input{Node: "check", Defaults: defaults, Entries: entries}, blind: true}
	return b.build().Problems
}

// A builder is one run of Build.
type builder struct {
	in Input
	// blind says that the containers are not known, so that nothing may be
	// concluded from the absence of one.
	blind    bool
	problems []workload.Problem
	// needs are the conditions that others have for compose's services.
	needs map[service]map[string]string // service -> condition -> who has it
}

// A service is one of compose.
type service struct{ project, name string }

func (b *builder) build() workload.Catalog {
	var settled []*draft
	drafts := b.drafts()
	b.conditions(drafts)
	for _, d := range drafts {
		if b.settle(d); !d.bad {
			settled = append(settled, d)
		}
	}
	settled = b.route(settled)
	b.depend(settled)
	b.conflict(settled)

	var c workload.Catalog
	for _, d := range settled {
		c.Workloads = append(c.Workloads, d.w)
	}
	slices.SortFunc(c.Workloads, func(x, y workload.Workload) int { return cmp.Compare(x.Name, y.Name) })
	slices.SortStableFunc(b.problems, func(x, y workload.Problem) int {
		return cmp.Or(cmp.Compare(x.Workload, y.Workload), cmp.Compare(x.Place, y.Place))
	})
	c.Problems = b.problems
	return c
}

// report adds a problem that takes nothing out.
func (b *builder) report(p workload.Problem) { b.problems = append(b.problems, p) }

// reject adds a problem that takes the draft out.
func (b *builder) reject(d *draft, place, message, fix string) {
	d.bad = true
	b.report(workload.Problem{Workload: d.name, Place: place, Message: message, Fix: fix})
}
