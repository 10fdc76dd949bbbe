package migration

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

// doxyDirect are labels whose value Rouse takes as it is.
var doxyDirect = []struct{ label, key string }{
	{"proxy.wake_timeout", "wake_timeout"}, {"proxy.stop_timeout", "stop_timeout"},
}

// doxyRead are all labels of a container that are looked at by name.
var doxyRead = []string{
	"proxy.aliases", "proxy.exclude", "proxy.idle_timeout", "proxy.wake_timeout", "proxy.stop_method", "proxy.stop_timeout",
	"proxy.stop_signal", "proxy.start_endpoint", "proxy.depends_on", "proxy.no_loading_page", "proxy.network",
}

// doxyNot says of labels, or properties of a route, why they have no counterpart.
var doxyNot = map[string]string{
	"start_endpoint":      "not yet, because every path wakes but those of rouse.no-wake",
	"idle_notify":         "elsewhere: webhooks in rouse.yaml",
	"idle_notify_to":      "elsewhere: webhooks in rouse.yaml",
	"idle_notify_events":  "elsewhere: webhooks in rouse.yaml",
	"middlewares":         "not yet, because Rouse has none but rouse.forward-auth and rouse.wake-allow: keep a proxy in front",
	"rules":               "not yet, because Rouse routes by host and path alone: keep a proxy in front",
	"homepage":            "not there: the dashboard lists workloads by name",
	"load_balance":        "elsewhere: containers of one name are replicas, see rouse.strategy and rouse.sticky",
	"healthcheck":         "elsewhere: readiness is proved at each wake, see rouse.ready",
	"access_log":          "elsewhere: access_log in rouse.yaml",
	"bind":                "elsewhere: listen in rouse.yaml",
	"disable_compression": "needless: Rouse does not compress",
	"no_tls_verify":       "not yet, because workloads are reached in cleartext",
}

// godoxy proposes for the services that GoDoxy was told of.
func (r *reader) godoxy(services []composed) {
	for _, s := range services {
		if len(s.with("proxy.")) == 0 {
			continue
		}
		r.found("GoDoxy")
		if l, _ := s.label("proxy.exclude"); l.value == "true" {
			r.plan.Remarks = append(r.plan.Remarks, "the service "+s.name+" has proxy.exclude: it is left out")
			continue
		}
		if l, other := s.otherScheme(); other {
			r.plan.Remarks = append(r.plan.Remarks, "the service "+s.name+" has "+l.name+"="+l.value+": it is left out, because workloads are reached by HTTP in cleartext, and other traffic would not keep it awake")
			continue
		}
		p := r.service(s.name, s.own(), "its labels of GoDoxy")
		r.doxyAliases(p, s)
		r.doxySleep(p, s)
		r.doxyNetwork(p, s)
		r.doxyRoutes(p, s)
		r.doxyDependencies(p, s, services)
		r.doxyOthers(p, s)
	}
}

// doxyAliases proposes those that are whole names.
func (r *reader) doxyAliases(p *Service, s composed) {
	l, given := s.label("proxy.aliases")
	var whole, short []string
	for alias := range strings.SplitSeq(l.value, ",") {
		if alias = strings.TrimSpace(alias); strings.Contains(alias, ".") {
			whole = append(whole, alias)
		} else if alias != "" {
			short = append(short, alias)
		}
	}
	if len(whole) > 0 {
		r.propose(p, "host", strings.Join(whole, ","), l)
	}
	switch {
	case len(short) > 0:
		p.remark("proxy.aliases: %s is below the domains that GoDoxy matches: write it in full into rouse.host", strings.Join(short, ", "))
	case !given:
		p.remark("add rouse.host: with GoDoxy it is the container's name below the domains that it matches")
	}
}

func (r *reader) doxySleep(p *Service, s composed) {
	if l, ok := s.label("proxy.idle_timeout"); ok {
		r.propose(p, "idle_timeout", l.value, l)
	} else {
		r.propose(p, "idle_timeout", "0", source{name: "without proxy.idle_timeout it never sleeps"})
	}
	for _, d := range doxyDirect {
		if l, ok := s.label(d.label); ok {
			r.propose(p, d.key, l.value, l)
		}
	}
	if l, ok := s.label("proxy.stop_method"); ok && l.value == "kill" {
		p.remark("proxy.stop_method=kill: rouse.stop=stop with rouse.stop-timeout=0s is the nearest")
	} else if ok {
		r.propose(p, "stop", l.value, l)
	}
	if l, ok := s.label("proxy.stop_signal"); ok && s.keys.find("stop_signal") == nil {
		p.Keys = append(p.Keys, Label{Name: "stop_signal", Value: l.value, From: l.name})
	}
	if l, ok := s.label("proxy.no_loading_page"); ok && l.value == "true" {
		r.propose(p, "wait", "hold", l)
	}
	if s.keys.find("healthcheck") != nil {
		r.propose(p, "ready", "docker", source{name: "healthcheck"})
	}
}

// doxyNetwork proposes the network by the engine's name for it, which compose
// puts together unless the file says it.
func (r *reader) doxyNetwork(p *Service, s composed) {
	l, ok := s.label("proxy.network")
	if !ok {
		return
	}
	network := mappingOf(r.networks.find(l.value))
	name, external := network.find("name"), network.find("external")
	switch {
	case name != nil && name.Kind == yaml.ScalarNode:
		r.propose(p, "network", name.Value, l)
	case external != nil && external.Value == "true":
		r.propose(p, "network", l.value, l)
	default:
		p.remark("proxy.network: add rouse.network with the engine's name of it, which is PROJECT_%s as compose makes it", l.value)
	}
}

// doxyRoutes reads the properties of the routes: proxy.ALIAS.PROPERTY, where
// #1 is the first alias and * all of them.
func (r *reader) doxyRoutes(p *Service, s composed) {
	ports := map[string]bool{}
	for _, l := range s.with("proxy.") {
		alias, property, ok := cutRoute(l.name)
		if !ok {
			continue
		}
		switch property {
		case "port":
			_, port, mapped := strings.Cut(l.value, ":")
			if !mapped {
				port = l.value
			}
			if ports[port] = true; len(ports) == 1 && !slices.ContainsFunc(p.Labels, func(l Label) bool { return l.Name == "rouse.port" }) {
				r.propose(p, "port", port, l)
			} else if len(ports) > 1 {
				p.remark("%s: not yet, because a service has one port: take the alias %s out of rouse.host", l.name, alias)
			}
		case "scheme":
		case "healthcheck.path":
			if s.keys.find("healthcheck") == nil {
				r.propose(p, "ready", "http:"+l.value, l)
			}
		case "response_header_timeout":
			r.propose(p, "response_timeout", l.value, l)
		default:
			p.remark("%s: %s", l.name, doxyWhy(property))
		}
	}
}

// otherScheme gives the label of a route that is not HTTP in cleartext.
func (s composed) otherScheme() (source, bool) {
	for _, l := range s.with("proxy.") {
		if _, property, ok := cutRoute(l.name); ok && property == "scheme" && l.value != "http" {
			return l, true
		}
	}
	return source{}, false
}

// cutRoute takes the label of a route apart. An alias may have dots, where it
// is a whole name: properties have none that a name ends with.
func cutRoute(label string) (alias, property string, ok bool) {
	rest := strings.TrimPrefix(label, "proxy.")
	if slices.Contains(doxyRead, label) || doxyNot[rest] != "" {
		return "", "", false
	}
	parts := strings.Split(rest, ".")
	for i := 1; i < len(parts); i++ {
		if slices.Contains(doxyProperties, parts[i]) {
			return strings.Join(parts[:i], "."), strings.Join(parts[i:], "."), true
		}
	}
	return "", "", false
}

// doxyProperties are those of a route.
var doxyProperties = []string{
	"port", "scheme", "host", "healthcheck", "middlewares", "rules", "homepage", "load_balance", "access_log", "bind", "agent",
	"no_tls_verify", "response_header_timeout", "disable_compression", "ssl_server_name", "ssl_trusted_certificate",
	"ssl_certificate", "ssl_certificate_key", "ssl_protocols", "relay_proxy_protocol_header", "root", "spa", "index",
}

func doxyWhy(property string) string {
	first, _, _ := strings.Cut(property, ".")
	if why := doxyNot[first]; why != "" {
		return why
	}
	return "not yet: Rouse has nothing in its place"
}

// doxyDependencies proposes what is woken first, and opts it in.
func (r *reader) doxyDependencies(p *Service, s composed, services []composed) {
	needed := find(services, s.dependsOn())
	if l, ok := s.label("proxy.depends_on"); ok {
		names := r.dependencies(l)
		needed = find(services, names)
		for _, d := range needed { // GoDoxy takes names of containers, Rouse those of workloads
			if i := slices.Index(names, d.text("container_name")); i >= 0 {
				names[i] = d.name
			}
		}
		r.propose(p, "depends_on", strings.Join(names, ","), l)
		p.remark("proxy.depends_on: a condition has no counterpart: each has to be ready, as its own rouse.ready says")
	}
	if _, sleeps := s.label("proxy.idle_timeout"); !sleeps {
		return
	}
	for _, d := range needed {
		if len(d.with("proxy.")) == 0 {
			r.dependency(d, s.name)
		}
	}
}

// dependency opts a service in that another depends on.
func (r *reader) dependency(s composed, of string) {
	if slices.ContainsFunc(r.plan.Services, func(p *Service) bool { return p.Name == s.name }) {
		return
	}
	p := r.service(s.name, s.own(), of+" depends on it")
	if s.keys.find("healthcheck") != nil {
		r.propose(p, "ready", "docker", source{name: "healthcheck"})
	}
	if s.keys.find("expose") == nil {
		p.remark("add rouse.port unless its image exposes one port alone")
	}
}

// find gives the services of these names, their own or their containers'.
func find(services []composed, names []string) []composed {
	var found []composed
	for _, s := range services {
		if slices.Contains(names, s.name) || slices.Contains(names, s.text("container_name")) && s.text("container_name") != "" {
			found = append(found, s)
		}
	}
	return found
}

// dependencies reads a list as GoDoxy does: YAML, or names with commas; each
// with a condition behind a colon, or none.
func (r *reader) dependencies(l source) []string {
	var node yaml.Node
	items := strings.Split(l.value, ",")
	if err := yaml.Unmarshal([]byte(l.value), &node); err == nil && len(node.Content) == 1 && node.Content[0].Kind == yaml.SequenceNode {
		read, ok := texts(node.Content[0])
		if !ok {
			r.problem(l.place, l.name+" is not a list of services", "write - redis:service_healthy")
			return nil
		}
		items = read
	}
	var names []string
	for _, item := range items {
		name, _, _ := strings.Cut(item, ":")
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// doxyOthers names every label that was not read.
func (r *reader) doxyOthers(p *Service, s composed) {
	for _, l := range s.with("proxy.") {
		if _, _, route := cutRoute(l.name); route || slices.Contains(doxyRead, l.name) && l.name != "proxy.start_endpoint" {
			continue
		}
		rest := strings.TrimPrefix(l.name, "proxy.")
		if why := doxyNot[rest]; why != "" {
			p.remark("%s: %s", l.name, why)
			continue
		}
		p.remark("%s is none of GoDoxy's labels that are known here%s", l.name, inBrackets(strict.DidYouMean(l.name, doxyRead)))
	}
}
