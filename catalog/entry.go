package catalog

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// An Entry is one item of the config file's list of workloads, each value of
// it parsed once and found good.
type Entry struct {
	// Name of the workload.
	Name string
	// Place is where the entry begins: file:line:col.
	Place string
	// Container, Service and Process tell what the entry is about; at most
	// one is set. None means the workload whose containers carry the name.
	Container, Service string
	Process            *workload.Process
	// Settings are all keys given, in the order of the file, with the place
	// of each.
	Settings []strict.Setting
}

// EntryTable binds every key of an entry: those of what it is about to e, and
// all others to w. A process is bound to p, for the caller to put into e.
func EntryTable(e *Entry, p *workload.Process, w *workload.Workload) strict.Table {
	return append(strict.Table{
		{Name: "name", Doc: "Name of the workload, unique over all nodes.", Value: strict.One(&e.Name, strict.Text(workload.ValidName))},
		{Name: "container", Doc: "Name of the container that it is.", Value: strict.One(&e.Container, strict.Text(filled))},
		{Name: "service", Doc: "Compose service whose containers it is.", Value: strict.One(&e.Service, strict.Text(filled))},
		{Name: "process.command", Doc: "Program and arguments; {port} in any of them becomes the port, which is also in PORT.", Value: strict.Many(&p.Command, strict.Words, strict.Text(nil))},
		{Name: "process.dir", Doc: "Working directory; by default the scaler's own.", Value: strict.One(&p.Dir, strict.Text(filled))},
		{Name: "process.env", Doc: "Environment, added to the scaler's own.", Value: strict.Many(&p.Env, strict.Pairs, strict.Text(assignment))},
	}, Fields(w)...)
}

// assignment refuses a text that is not KEY=value.
func assignment(s string) error {
	if i := strings.IndexByte(s, '='); i < 1 || strings.ContainsRune(s, 0) {
		return &strict.Wrong{Message: "an item is not KEY=value", Fix: "write KEY=value, or a mapping KEY: value"}
	}
	return nil
}

// Entries reads the list of workloads in a config file. An entry that has a
// problem is left out, the others are returned.
func Entries(file string, list *yaml.Node) ([]Entry, []strict.Problem) {
	kind := strict.ItemKind{List: "workloads", Item: "workload", Key: "name"}
	return strict.Items(file, list, kind, func(place string, node *yaml.Node) (Entry, []strict.Problem) {
		return readEntry(file, place, node)
	})
}

func readEntry(file, place string, node *yaml.Node) (Entry, []strict.Problem) {
	e := Entry{Place: place}
	var p workload.Process
	var w workload.Workload
	settings, problems := EntryTable(&e, &p, &w).Decode(file, node)
	e.Settings = settings
	if mentions(node, "process") {
		e.Process = &p
	}
	if len(problems) == 0 { // else a part may be missing for that reason
		problems = e.incomplete()
	}
	return e, problems
}

// mentions reports whether a mapping has the key, whatever its value.
func mentions(mapping *yaml.Node, key string) bool {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}

// incomplete finds what is wrong with an entry of which every value is good.
func (e *Entry) incomplete() []strict.Problem {
	var problems []strict.Problem
	add := func(message, fix string) {
		problems = append(problems, strict.Problem{Place: e.Place, Message: message, Fix: fix})
	}
	if e.Name == "" {
		add("a workload has no name", "add name: …")
	}
	if n := count(e.Container != "", e.Service != "", e.Process != nil); n > 1 {
		add(e.Name+" is more than one of container, service and process", "keep one of them")
	}
	if e.Process != nil && (len(e.Process.Command) == 0 || e.Process.Command[0] == "") {
		add(e.Name+" is a process without a command", `add process: { command: ["program", "argument"] }`)
	}
	return problems
}

func count(conditions ...bool) int {
	n := 0
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}
