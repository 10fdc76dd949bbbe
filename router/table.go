package router

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// A table says which workload a host and path belong to. It is immutable: a
// change of the catalog makes a new one.
type table struct {
	exact    map[string]*site // normal host -> its routes
	wildcard map[string]*site // what follows "*." -> its routes
}

// A site is every route of one host.
type site struct {
	routes []*route // longest path first
}

// A route leads one path of some hosts to one workload. It is shared by all
// hosts of the workload and never changes.
type route struct {
	workload *workload.Workload
	path     string // starts with "/"; ends in one only when it is "/"
	meter    *meter // pre-resolved metrics of the workload
}

// match finds the route of a request: the exact host first, then the host
// with its first label replaced by the wildcard; in each the longest path
// prefix that ends at a segment. nil means that nobody serves it. path is the
// decoded path. It does not allocate.
func (t *table) match(host, path string) *route {
	var room hostName
	name := room.normalize(host)
	if found := t.exact[string(name)].match(path); found != nil {
		return found
	}
	return t.parent(name).match(path)
}

// named finds the route of a workload by name among those of one host.
func (t *table) named(host, workload string) *route {
	var room hostName
	name := room.normalize(host)
	if found := t.exact[string(name)].named(workload); found != nil {
		return found
	}
	return t.parent(name).named(workload)
}

// parent gives the wildcard site that a normal host belongs to; nil for none.
func (t *table) parent(name []byte) *site {
	if dot := bytes.IndexByte(name, '.'); dot > 0 {
		return t.wildcard[string(name[dot+1:])]
	}
	return nil
}

func (s *site) match(path string) *route {
	if s == nil {
		return nil
	}
	for _, r := range s.routes {
		if underPath(path, r.path) {
			return r
		}
	}
	return nil
}

func (s *site) named(name string) *route {
	if s == nil {
		return nil
	}
	for _, r := range s.routes {
		if r.workload.Name == name {
			return r
		}
	}
	return nil
}

// each calls f for every route, once for each host.
func (t *table) each(f func(*route)) {
	for _, sites := range []map[string]*site{t.exact, t.wildcard} {
		for _, s := range sites {
			for _, r := range s.routes {
				f(r)
			}
		}
	}
}

// underPath reports whether path is prefix or lies below it, cut at a
// segment: "/wiki" has "/wiki" and "/wiki/a", not "/wikipedia".
func underPath(path, prefix string) bool {
	if prefix == "/" {
		return true
	}
	return strings.HasPrefix(path, prefix) &&
		(len(path) == len(prefix) || path[len(prefix)] == '/')
}

// newTable builds the table of workloads, which it sorts by name: of two that
// claim one host and path the first gets it, and the other a Problem.
// meterOf resolves the metrics of a workload.
func newTable(workloads []workload.Workload, meterOf func(name string) *meter) (*table, []workload.Problem) {
	sorted := slices.Clone(workloads)
	slices.SortStableFunc(sorted, func(a, b workload.Workload) int { return cmp.Compare(a.Name, b.Name) })
	t := &table{exact: map[string]*site{}, wildcard: map[string]*site{}}
	var problems []workload.Problem
	for i := range sorted {
		w := &sorted[i]
		r := &route{workload: w, path: routePath(w.Path), meter: meterOf(w.Name)}
		for _, host := range w.Hosts {
			if problem := t.add(host, r); problem != nil {
				problems = append(problems, *problem)
			}
		}
	}
	t.sort()
	return t, problems
}

// routePath is the form of a workload's path that underPath takes.
func routePath(path string) string {
	return "/" + strings.Trim(path, "/")
}

// add enters one host of a route; the Problem says why it could not.
func (t *table) add(host string, r *route) *workload.Problem {
	sites, name := t.exact, host
	if suffix, ok := strings.CutPrefix(host, "*."); ok {
		sites, name = t.wildcard, suffix
	}
	var room hostName
	key := string(room.normalize(name))
	if key == "" || strings.Contains(key, "*") {
		return r.problem(fmt.Sprintf("%q is not a host", host),
			"use a host name, with at most one leading wildcard label as in *.example.com")
	}
	s := sites[key]
	if s == nil {
		s = &site{}
		sites[key] = s
	}
	for _, other := range s.routes {
		if other.path == r.path {
			return r.conflict(host, other)
		}
	}
	s.routes = append(s.routes, r)
	return nil
}

// conflict is the Problem of a route whose host and path other already has;
// nil when other is the same workload, which named the host twice.
func (r *route) conflict(host string, other *route) *workload.Problem {
	if other.workload.Name == r.workload.Name && other.workload.Node == r.workload.Node {
		return nil
	}
	return r.problem(
		fmt.Sprintf("host %s with path %s is served by workload %s (%s, node %s)",
			host, r.path, other.workload.Name, other.workload.Origin, other.workload.Node),
		"give one of the two another host or path")
}

func (r *route) problem(message, fix string) *workload.Problem {
	return &workload.Problem{Workload: r.workload.Name, Place: r.workload.Origin, Message: message, Fix: fix}
}

// sort puts the longest path first in every site.
func (t *table) sort() {
	for _, sites := range []map[string]*site{t.exact, t.wildcard} {
		for _, s := range sites {
			slices.SortStableFunc(s.routes, func(a, b *route) int { return len(b.path) - len(a.path) })
		}
	}
}
