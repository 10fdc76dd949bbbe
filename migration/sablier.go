package migration

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

var sablierMiddleware = regexp.MustCompile(`^(traefik\.http\.middlewares\.[^.]+\.plugin\.[^.]+)\.(?i:sessionDuration)$`)

// sablier proposes for the services that opted in to Sablier.
func (r *reader) sablier(services []composed) {
	for _, s := range services {
		labels := s.with("sablier.")
		if len(labels) == 0 {
			continue
		}
		enable, _ := s.label("sablier.enable")
		if enable.value != "true" {
			r.plan.Remarks = append(r.plan.Remarks, "the service "+s.name+" has labels of Sablier without sablier.enable=true, so that Sablier leaves it alone: it is left out")
			continue
		}
		r.found("Sablier")
		p := r.service(s.name, s.own(), "sablier.enable")
		r.sablierLabels(p, s)
		r.session(p, services)
		r.host(p, s)
	}
}

// sablierLabels has the catalog read them, as compat: [sablier] does.
func (r *reader) sablierLabels(p *Service, s composed) {
	c := workload.Container{Name: s.name, Service: s.name, Foreign: map[string]string{}, HealthCheck: s.keys.find("healthcheck") != nil}
	places := map[string]source{}
	for _, l := range s.with("sablier.") {
		c.Foreign[l.name], places[l.name] = l.value, l
	}
	settings, problems := catalog.Foreign(c)
	from := map[string]string{"group": "sablier.group", "ready_after": "sablier.ready-after", "keep_warm": "sablier.running-hours", "ready": "healthcheck"}
	for _, set := range settings {
		l, given := places[from[set.Key]]
		if l.name = from[set.Key]; !given && set.Key == "group" {
			l.name += ", by default"
		}
		r.propose(p, set.Key, strings.Join(set.Text, ","), l)
	}
	for _, wrong := range problems {
		p.remark("%s", strings.TrimPrefix(strict.Problem{Message: wrong.Message, Fix: wrong.Fix}.Error(), ": "))
	}
}

// session proposes the session of the middleware that calls for the group of a
// service, which the same file may have as labels for Traefik.
func (r *reader) session(p *Service, services []composed) {
	i := slices.IndexFunc(p.Labels, func(l Label) bool { return l.Name == "rouse.group" })
	if i < 0 {
		return
	}
	groups := strings.Split(p.Labels[i].Value, ",")
	for _, s := range services {
		for _, l := range s.labels {
			m := sablierMiddleware.FindStringSubmatch(l.name)
			if m == nil {
				continue
			}
			group, _ := s.label(m[1] + ".group")
			names, _ := s.label(m[1] + ".names")
			if slices.Contains(groups, group.value) || slices.Contains(strings.Split(names.value, ","), p.Name) {
				r.propose(p, "idle_timeout", l.value, l)
				return
			}
		}
	}
	p.remark("rouse.idle-timeout is 15m unless it is given: sessionDuration is not in this file")
}
