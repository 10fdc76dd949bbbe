// Package migration reads how another product describes what it puts to sleep
// - a compose file with the labels of Sablier, Lazytainer or GoDoxy, or the
// config.yml of ContainerNursery - and proposes the labels that say the same
// to Rouse, as a compose file to put over the other.
//
// It changes nothing and asks nobody. What has no counterpart becomes a
// comment that says why; a file that cannot be read, or a value that cannot,
// is a problem with its place, and nothing is proposed then.
package migration

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// A Plan is what is proposed for one file.
type Plan struct {
	// File is where it comes from.
	File string
	// Products are those whose settings were found.
	Products []string
	// Services are in the order of the file.
	Services []*Service
	// Remarks are on the whole.
	Remarks []string
}

// A Service is what is proposed for one service of compose.
type Service struct {
	Name   string
	Labels []Label
	// Keys are compose's own, beside the labels.
	Keys []Label
	// Remarks say what has no counterpart, and what is to be done by hand.
	Remarks []string

	own []string // Rouse's labels that the service has already
}

// A Label is a name, its value, and what it was made of.
type Label struct {
	Name, Value, From string
	// Tag is YAML's, where the value has another meaning than its text.
	Tag string
}

// Read reads a file and proposes; data is its contents. It returns the
// problems alone where there are some.
func Read(file string, data []byte) (Plan, []strict.Problem) {
	root, problems := strict.Parse(file, data)
	if len(problems) > 0 {
		return Plan{}, problems
	}
	r := &reader{plan: Plan{File: file}, table: catalog.Fields(&workload.Workload{})}
	top := mappingOf(root)
	r.networks = mappingOf(top.find("networks"))
	services, hosts := top.find("services"), top.find("proxyHosts")
	switch {
	case services != nil:
		r.compose(services)
	case hosts != nil:
		r.nursery(top, hosts)
	default:
		r.problem(file+":1:1", "it has neither services, as a compose file, nor proxyHosts, as ContainerNursery's config.yml", "name another file")
	}
	if len(r.problems) == 0 && len(r.plan.Services) == 0 {
		r.problem(file+":1:1", "nothing in it opted in to Sablier, Lazytainer or GoDoxy by a label", "name the file that has their labels; `docker compose config` writes one with all that is included")
	}
	if len(r.problems) > 0 {
		return Plan{}, r.problems
	}
	return r.plan, nil
}

// A reader makes a plan of one file.
type reader struct {
	plan     Plan
	table    strict.Table // what Rouse's labels may say
	networks mapping      // of a compose file
	problems []strict.Problem
}

func (r *reader) problem(place, message, fix string) {
	r.problems = append(r.problems, strict.Problem{Place: place, Message: message, Fix: fix})
}

func (r *reader) found(product string) {
	if !slices.Contains(r.plan.Products, product) {
		r.plan.Products = append(r.plan.Products, product)
	}
}

// service gives the plan's service of that name, which it begins where there
// is none, opted in because of from.
func (r *reader) service(name string, own []string, from string) *Service {
	for _, s := range r.plan.Services {
		if s.Name == name {
			return s
		}
	}
	s := &Service{Name: name, own: own}
	r.plan.Services = append(r.plan.Services, s)
	if !slices.Contains(own, "rouse.enable") {
		s.Labels = append(s.Labels, Label{Name: "rouse.enable", Value: "true", From: from})
	}
	return s
}

// propose adds the label for a key of Rouse, unless the service has it. What
// compose is yet to fill in is not looked into.
func (r *reader) propose(s *Service, key, value string, from source) {
	name := "rouse." + strings.ReplaceAll(key, "_", "-")
	if slices.Contains(s.own, name) || slices.ContainsFunc(s.Labels, func(l Label) bool { return l.Name == name }) {
		s.remark("%s: %s is there already, %s is left out", from.name, name, value)
		return
	}
	field := r.table.Find(key).Value
	if !from.open() {
		for _, item := range field.Split(value) {
			if err := field.Check(item); err != nil {
				r.problems = append(r.problems, strict.ProblemOf(from.place, from.name, err))
				return
			}
		}
	}
	s.Labels = append(s.Labels, Label{Name: name, Value: value, From: from.name})
}

func (s *Service) remark(format string, args ...any) {
	s.Remarks = append(s.Remarks, fmt.Sprintf(format, args...))
}

// A source is one setting of the other product.
type source struct{ name, value, place string }

// open says that compose puts a variable into the value.
func (s source) open() bool { return strings.Contains(strings.ReplaceAll(s.value, "$$", ""), "$") }

// A mapping is one of YAML, with what it merges, each key once.
type mapping []pair

type pair struct {
	key   string
	at    *yaml.Node
	value *yaml.Node
}

// mergeMost bounds of how many others a mapping may be made.
const mergeMost = 100

// mappingOf reads a node; nil where it is none. What is given goes before what
// is merged.
func mappingOf(n *yaml.Node) mapping {
	var m mapping
	from := []*yaml.Node{n}
	for i := 0; i < min(len(from), mergeMost); i++ { // from grows
		n := resolve(from[i])
		if n == nil || n.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], resolve(n.Content[i+1])
			switch {
			case key.ShortTag() == "!!merge" && value.Kind == yaml.SequenceNode:
				from = append(from, value.Content...)
			case key.ShortTag() == "!!merge":
				from = append(from, value)
			case m.find(key.Value) == nil:
				m = append(m, pair{key.Value, key, value})
			}
		}
	}
	return m
}

// find gives the value of a key, nil if there is none.
func (m mapping) find(key string) *yaml.Node {
	for _, p := range m {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

func resolve(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// texts are the values of a node that is a list of them, or one; ok is false
// for anything else.
func texts(n *yaml.Node) (values []string, ok bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return nil, true
		}
		return []string{n.Value}, true
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item = resolve(item); item.Kind != yaml.ScalarNode {
				return nil, false
			}
			values = append(values, item.Value)
		}
		return values, true
	}
	return nil, false
}
