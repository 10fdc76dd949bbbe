package sablier

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// An index finds workloads by what callers call them. It is never changed.
type index struct {
	named  map[string]*member   // workload, or one of its containers -> it
	groups map[string][]*member // group -> those in it, by name
}

// A member is a workload as calls reach it.
type member struct {
	name     string
	gate     *activator.Gate
	replicas int    // that it has while awake, at least
	ready    []byte // its part of an answer while it is ready
}

func newIndex(ws []workload.Workload, gates Gates) *index {
	x := &index{named: map[string]*member{}, groups: map[string][]*member{}}
	for _, w := range ws {
		gate := gates.Gate(w.Name)
		if gate == nil {
			continue
		}
		m := &member{name: w.Name, gate: gate, replicas: max(1, w.Min)}
		m.ready, _ = json.Marshal(instance(instanceInfo{ // strings and ints cannot fail
			Name: m.name, CurrentReplicas: m.replicas, DesiredReplicas: m.replicas, Status: statusReady,
		}))
		x.named[w.Name] = m
		for _, group := range w.Groups {
			x.groups[group] = append(x.groups[group], m)
		}
	}
	for _, w := range ws { // a workload's own name goes before a container's
		for _, container := range w.Containers {
			if m := x.named[w.Name]; m != nil && x.named[container] == nil {
				x.named[container] = m
			}
		}
	}
	for _, members := range x.groups {
		slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	}
	return x
}

func (x *index) groupNames() []string {
	return append([]string{}, slices.Sorted(maps.Keys(x.groups))...)
}

// instance is one part of an answer.
func instance(info instanceInfo) instancePart {
	part := instancePart{Instance: info}
	if info.Status == statusError {
		part.Error = info.Message
	}
	return part
}

type instancePart struct {
	Instance instanceInfo `json:"instance"`
	Error    string       `json:"error,omitempty"`
}

type instanceInfo struct {
	Name            string `json:"name"`
	CurrentReplicas int    `json:"currentReplicas"`
	DesiredReplicas int    `json:"desiredReplicas"`
	Status          status `json:"status"`
	Message         string `json:"message,omitempty"`
}

// A status is what Sablier calls the phase of one instance.
type status string

const (
	statusReady    status = "ready"
	statusStarting status = "starting"
	statusError    status = "error"
)
