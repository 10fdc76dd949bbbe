package migration

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

// A composed is one service of a compose file.
type composed struct {
	name   string
	labels []source
	keys   mapping
}

// compose reads the services of a compose file.
func (r *reader) compose(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.problem(strict.Place(r.plan.File, node), "services is not a mapping", "write services: { NAME: … }")
		return
	}
	var services []composed
	for _, p := range mappingOf(node) {
		if s, ok := r.composed(p); ok {
			services = append(services, s)
		}
	}
	if len(r.problems) > 0 {
		return
	}
	r.sablier(services)
	r.lazytainer(services)
	r.godoxy(services)
}

func (r *reader) composed(p pair) (composed, bool) {
	if p.value.Kind != yaml.MappingNode {
		r.problem(strict.Place(r.plan.File, p.value), "the service "+p.key+" is not a mapping", "write "+p.key+": { image: … }")
		return composed{}, false
	}
	s := composed{name: p.key, keys: mappingOf(p.value)}
	if s.keys.find("extends") != nil {
		r.plan.Remarks = append(r.plan.Remarks, "the service "+p.key+" extends another, which was not followed: `docker compose config` writes a file with all of it")
	}
	labels := s.keys.find("labels")
	switch {
	case labels == nil, labels.Kind == yaml.ScalarNode && labels.ShortTag() == "!!null":
	case labels.Kind == yaml.MappingNode:
		for _, l := range mappingOf(labels) {
			s.labels = append(s.labels, r.label(l.key, l.at, l.value))
		}
	case labels.Kind == yaml.SequenceNode:
		for _, item := range labels.Content {
			name, value, _ := strings.Cut(resolve(item).Value, "=")
			s.labels = append(s.labels, r.label(name, item, &yaml.Node{Kind: resolve(item).Kind, Value: value}))
		}
	default:
		r.problem(strict.Place(r.plan.File, labels), "labels of "+p.key+" are neither a mapping nor a list", "write NAME: value, or - NAME=value")
	}
	return s, true
}

func (r *reader) label(name string, at, value *yaml.Node) source {
	place := strict.Place(r.plan.File, at)
	if value.Kind != yaml.ScalarNode {
		r.problem(place, "the label "+name+" is not one value", "write NAME: value, or - NAME=value")
	}
	return source{strings.TrimSpace(name), strings.TrimSpace(value.Value), place}
}

// with gives the labels that begin with prefix.
func (s composed) with(prefix string) []source {
	var all []source
	for _, l := range s.labels {
		if strings.HasPrefix(l.name, prefix) {
			all = append(all, l)
		}
	}
	return all
}

// label gives one label.
func (s composed) label(name string) (source, bool) {
	i := slices.IndexFunc(s.labels, func(l source) bool { return l.name == name })
	if i < 0 {
		return source{}, false
	}
	return s.labels[i], true
}

// own are the names of Rouse's labels that it has.
func (s composed) own() []string {
	var names []string
	for _, l := range s.with("rouse.") {
		names = append(names, l.name)
	}
	return names
}

// text is the value of a key that is one value; empty for all else.
func (s composed) text(key string) string {
	if n := s.keys.find(key); n != nil && n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return ""
}

// dependsOn are the services that compose starts first.
func (s composed) dependsOn() []string {
	n := s.keys.find("depends_on")
	if n == nil {
		return nil
	}
	if n.Kind == yaml.MappingNode {
		var names []string
		for _, p := range mappingOf(n) {
			names = append(names, p.key)
		}
		return names
	}
	names, _ := texts(n)
	return names
}

var (
	routerRule = regexp.MustCompile(`^traefik\.http\.routers\.[^.]+\.rule$`)
	hostRule   = regexp.MustCompile("^\\s*Host\\(\\s*`[^`]+`(?:\\s*,\\s*`[^`]+`)*\\s*\\)(?:\\s*\\|\\|\\s*Host\\(\\s*`[^`]+`(?:\\s*,\\s*`[^`]+`)*\\s*\\))*\\s*$")
	quoted     = regexp.MustCompile("`([^`]+)`")
)

// host proposes the names that Traefik routes to the service, or says that
// they are not known.
func (r *reader) host(p *Service, s composed) {
	for _, l := range s.labels {
		if !routerRule.MatchString(l.name) || !hostRule.MatchString(l.value) {
			continue
		}
		var hosts []string
		for _, m := range quoted.FindAllStringSubmatch(l.value, -1) {
			hosts = append(hosts, m[1])
		}
		r.propose(p, "host", strings.Join(hosts, ","), l)
		return
	}
	if !slices.Contains(s.own(), "rouse.host") {
		p.remark("add rouse.host with the names under which it is reached: this file does not say them")
	}
}
