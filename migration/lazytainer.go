package migration

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
)

// A lazyGroup is what Lazytainer's own labels say of one group.
type lazyGroup struct {
	manager string // the service that is Lazytainer
	props   map[string]source
}

// lazyProps are the properties of a group, with what becomes of those that
// Rouse has no use for.
var lazyProps = map[string]string{
	"ports": "", "inactiveTimeout": "", "sleepMethod": "",
	"minPacketThreshold":  "needless: requests are counted, not packets",
	"pollRate":            "needless: nothing is polled",
	"netInterface":        "needless: no packets are captured",
	"ignoreActiveClients": "not done: what has a request or a tunnel in flight is never put to sleep",
}

const lazyGroupLabel = "lazytainer.group"

// lazytainer proposes for the members of Lazytainer's groups.
func (r *reader) lazytainer(services []composed) {
	groups := r.lazyGroups(services)
	for _, s := range services {
		for _, l := range s.with("lazytainer.") {
			if l.name != lazyGroupLabel && !strings.HasPrefix(l.name, lazyGroupLabel+".") {
				r.plan.Remarks = append(r.plan.Remarks, l.place+": "+l.name+" is none of Lazytainer's labels that are known here"+inBrackets(strict.DidYouMean(l.name, []string{lazyGroupLabel})))
				r.found("Lazytainer")
			}
		}
		if l, ok := s.label(lazyGroupLabel); ok {
			r.found("Lazytainer")
			r.lazyMember(s, l, groups, services)
		}
	}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (r *reader) lazyGroups(services []composed) map[string]lazyGroup {
	groups := map[string]lazyGroup{}
	for _, s := range services {
		for _, l := range s.with(lazyGroupLabel + ".") {
			name, prop, ok := strings.Cut(strings.TrimPrefix(l.name, lazyGroupLabel+"."), ".")
			if _, known := lazyProps[prop]; !ok || !known {
				r.problem(l.place, l.name+" is no property of a group", strict.DidYouMean(prop, []string{"ports", "inactiveTimeout", "sleepMethod", "minPacketThreshold", "pollRate", "netInterface", "ignoreActiveClients"}))
				continue
			}
			if _, begun := groups[name]; !begun {
				groups[name] = lazyGroup{s.name, map[string]source{}}
				r.plan.Remarks = append(r.plan.Remarks, "the service "+s.name+" is Lazytainer: remove it with its published ports, and send what came to them to Rouse")
			}
			groups[name].props[prop] = l
		}
	}
	r.plan.Remarks = slices.Compact(r.plan.Remarks)
	return groups
}

func (r *reader) lazyMember(s composed, member source, groups map[string]lazyGroup, services []composed) {
	p := r.service(s.name, s.own(), member.name)
	g, known := groups[member.value]
	if !known {
		p.remark("the group %s is not in this file: its port and its timeout are not known here", member.value)
	}
	r.lazyPorts(p, g.props["ports"])
	if l, ok := g.props["inactiveTimeout"]; ok {
		r.seconds(p, "idle_timeout", l)
	} else if known {
		r.propose(p, "idle_timeout", "30s", source{name: "inactiveTimeout, by default"})
	}
	if l, ok := g.props["sleepMethod"]; ok {
		r.propose(p, "stop", l.value, l)
	}
	for _, prop := range []string{"minPacketThreshold", "pollRate", "netInterface", "ignoreActiveClients"} {
		if l, ok := g.props[prop]; ok {
			p.remark("%s: %s", l.name, lazyProps[prop])
		}
	}
	r.lazyOthers(p, member, services)
	if mode := s.text("network_mode"); strings.HasPrefix(mode, "service:") {
		p.Keys = append(p.Keys, Label{Name: "network_mode", Value: "null", Tag: "!reset", From: "it needs an address of its own"})
	}
	if slices.Contains(s.dependsOn(), g.manager) {
		p.remark("take %s out of its depends_on", g.manager)
	}
	p.remark("Rouse carries HTTP and what is upgraded from it: other protocols, which Lazytainer wakes for, not yet")
	r.host(p, s)
}

func (r *reader) lazyPorts(p *Service, l source) {
	switch ports := strings.Split(l.value, ","); {
	case l.value == "":
	case len(ports) == 1:
		r.propose(p, "port", l.value, l)
	default:
		p.remark("%s: add rouse.port with the one of %s that this service listens on", l.name, l.value)
	}
}

// seconds proposes a number of seconds as a duration.
func (r *reader) seconds(p *Service, key string, l source) {
	if l.open() {
		p.remark("%s: add rouse.%s, whose value is compose's to fill in, and needs its unit", l.name, strings.ReplaceAll(key, "_", "-"))
		return
	}
	if n, err := strconv.Atoi(l.value); err != nil || n < 0 {
		r.problem(l.place, l.name+" is not a number of seconds", "write 300")
		return
	}
	r.propose(p, key, l.value+"s", l)
}

// lazyOthers says which services Lazytainer starts together with this one.
func (r *reader) lazyOthers(p *Service, member source, services []composed) {
	var others []string
	for _, s := range services {
		if l, ok := s.label(lazyGroupLabel); ok && l.value == member.value && s.name != p.Name {
			others = append(others, s.name)
		}
	}
	if len(others) > 0 {
		p.remark("%s starts it together with %s: the one that is requested gets rouse.depends-on with the others", member.name, strings.Join(others, ", "))
	}
}
