package sablier

import (
	"net/http"
	"slices"
	"strings"
)

// A party is whom a call is about.
type party struct {
	gating   []*member // those that have to be ready
	optional []*member // those that are woken with them
}

// optionalPrefix before a name says that nobody waits for it.
const optionalPrefix = "optional:"

// find gives whom the query names. The problem is nil if it names somebody.
// A group's members are those of the index, and must not be changed.
func (x *index) find(q *query) (party, *problem) {
	if q.group != "" {
		members := x.groups[q.group]
		if len(members) == 0 {
			return party{}, x.noGroup(q.group)
		}
		return party{gating: members}, nil
	}
	var p party
	for _, name := range q.names {
		name, optional := strings.CutPrefix(name, optionalPrefix)
		m := x.named[name]
		switch {
		case m == nil:
			return party{}, noName(name)
		case slices.Contains(p.gating, m) || slices.Contains(p.optional, m):
		case optional:
			p.optional = append(p.optional, m)
		default:
			p.gating = append(p.gating, m)
		}
	}
	return p, nil
}

func (x *index) noGroup(name string) *problem {
	return &problem{
		Status: http.StatusNotFound, id: "group-not-found", Title: "Group not found",
		Detail: "no workload is in the group " + quoted(name), RequestGroup: name, AvailableGroups: x.groupNames(),
	}
}

func noName(name string) *problem {
	return &problem{
		Status: http.StatusNotFound, id: "instance-not-managed", Title: "No such workload",
		Detail: "no workload, and no container of one, is called " + quoted(name) + "; only what carries rouse.enable=true, or is in the config file, can be reached",
	}
}
