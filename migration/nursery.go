package migration

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/internal/strict"
)

// nurseryKeys are those of a host, with what becomes of those that Rouse has
// no counterpart for.
var nurseryKeys = map[string]string{
	"domain": "", "containerName": "", "proxyPort": "", "timeoutSeconds": "",
	"proxyHost":                    "", // needless: the container's own address is dialled
	"displayName":                  "not there: the waiting page shows the name of the workload",
	"proxyUseHttps":                "not yet, because workloads are reached in cleartext",
	"proxyUseCustomMethod":         "needless: ready is what accepts on its port; rouse.ready=http:/path asks with GET",
	"stopOnTimeoutIfCpuUsageBelow": "not yet, because nobody measures a container's CPU here",
}

var nurseryOrder = []string{"domain", "containerName", "displayName", "proxyHost", "proxyPort", "proxyUseHttps", "proxyUseCustomMethod", "timeoutSeconds", "stopOnTimeoutIfCpuUsageBelow"}

// nursery reads ContainerNursery's config.yml.
func (r *reader) nursery(top mapping, hosts *yaml.Node) {
	r.found("ContainerNursery")
	for _, p := range top {
		switch p.key {
		case "proxyHosts":
		case "proxyListeningPort":
			r.plan.Remarks = append(r.plan.Remarks, "proxyListeningPort: listen: \":"+p.value.Value+"\" in rouse.yaml")
		default:
			r.problem(strict.Place(r.plan.File, p.at), "unknown key "+p.key, strict.DidYouMean(p.key, []string{"proxyHosts", "proxyListeningPort"}))
		}
	}
	if hosts.Kind != yaml.SequenceNode {
		r.problem(strict.Place(r.plan.File, hosts), "proxyHosts is not a list", "write - domain: …")
		return
	}
	r.plan.Remarks = append(r.plan.Remarks, "config.yml names containers: the services here have their names, so write those of your compose file where they differ")
	for _, item := range hosts.Content {
		r.nurseryHost(resolve(item))
	}
}

func (r *reader) nurseryHost(node *yaml.Node) {
	place := strict.Place(r.plan.File, node)
	if node.Kind != yaml.MappingNode {
		r.problem(place, "a host is not a mapping", "write - domain: …")
		return
	}
	values := map[string]source{}
	before := len(r.problems)
	for _, p := range mappingOf(node) {
		at := strict.Place(r.plan.File, p.at)
		if _, known := nurseryKeys[p.key]; !known {
			r.problem(at, "unknown key "+p.key, strict.DidYouMean(p.key, nurseryOrder))
			continue
		}
		list, ok := texts(p.value)
		if !ok || len(list) != 1 && p.key != "domain" && p.key != "containerName" && p.key != "displayName" {
			r.problem(at, p.key+" is not one value", "write "+p.key+": …")
			continue
		}
		values[p.key] = source{p.key, strings.Join(list, ","), at}
	}
	for _, key := range []string{"domain", "containerName", "proxyPort", "timeoutSeconds"} {
		if len(r.problems) == before && values[key].value == "" {
			r.problem(place, "a host has no "+key, "add "+key+": …")
		}
	}
	if len(r.problems) == before {
		r.nurseryService(values)
	}
}

// nurseryService proposes for the first container, and opts the others in,
// which it depends on.
func (r *reader) nurseryService(values map[string]source) {
	names := strings.Split(values["containerName"].value, ",")
	s := r.service(names[0], nil, "containerName")
	r.propose(s, "host", values["domain"].value, values["domain"])
	r.propose(s, "port", values["proxyPort"].value, values["proxyPort"])
	r.seconds(s, "idle_timeout", values["timeoutSeconds"])
	if len(names) > 1 {
		r.propose(s, "depends_on", strings.Join(names[1:], ","), values["containerName"])
	}
	for _, key := range nurseryOrder {
		if v, ok := values[key]; ok && nurseryKeys[key] != "" && v.value != "false" {
			s.remark("%s: %s", key, nurseryKeys[key])
		}
	}
	for _, name := range names[1:] {
		r.service(name, nil, names[0]+" depends on it").remark("add rouse.port unless its image exposes one port alone")
	}
}
