package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// settle fills in the draft's workload: defaults, then labels, then entry.
func (b *builder) settle(d *draft) {
	d.w = b.in.Defaults
	d.w.Name, d.w.Node, d.w.Origin = d.name, b.in.Node, d.origin()
	d.settings = map[string]string{}
	table := Fields(&d.w)
	given := b.agreed(d, table)
	if d.entry != nil {
		given = append(given, d.entry.Settings...)
	}
	for _, s := range given {
		b.apply(d, table, s)
	}
	d.w.Hosts, d.w.Groups = unique(d.w.Hosts), unique(d.w.Groups)
	for _, c := range d.containers {
		d.w.Containers = append(d.w.Containers, c.Name)
	}
	d.kind()
	for _, check := range []func(*draft){b.checkFound, b.checkProcess, b.checkJob, b.checkThrottle, b.checkReady, b.checkPort, b.checkRoute, b.checkBounds} {
		if !d.bad {
			check(d)
		}
	}
}

func (b *builder) apply(d *draft, table strict.Table, s strict.Setting) {
	if err := table.Apply(s); err != nil {
		p := strict.ProblemOf(s.Place, s.Key, err)
		b.reject(d, p.Place, p.Message, p.Fix)
		return
	}
	d.settings[s.Key] = s.Place
}

// origin tells where the workload was described.
func (d *draft) origin() string {
	if d.entry != nil {
		return d.entry.Place
	}
	return d.containers[0].Name + " (container)"
}

// kind copies what the entry is about; the strings of a process are its own.
func (d *draft) kind() {
	d.w.Runtime = "docker"
	if d.entry == nil {
		return
	}
	d.w.Container, d.w.Service = d.entry.Container, d.entry.Service
	if p := d.entry.Process; p != nil {
		d.w.Runtime = "process"
		d.w.Process = &workload.Process{Command: slices.Clone(p.Command), Dir: p.Dir, Env: slices.Clone(p.Env)}
	}
}

// checkFound refuses an entry that is about nothing, and a service of which
// nobody can say whose it is.
func (b *builder) checkFound(d *draft) {
	if d.entry == nil {
		return
	}
	if d.entry.kind() == "" && len(d.containers) == 0 && !b.blind {
		b.reject(d, d.entry.Place, fmt.Sprintf("%s names no container, service or process, and no container carries the name", d.name),
			"add container: …, or the label "+b.label("name")+"="+d.name)
	}
	for _, c := range d.containers {
		if d.w.Service != "" && c.Project != d.containers[0].Project {
			b.reject(d, d.placeOf("service"), fmt.Sprintf("service %s is in two projects: %s and %s", d.w.Service, d.containers[0].Project, c.Project), "name the container instead")
			return
		}
	}
}

// checkProcess refuses what only containers have. A default is meant for those.
func (b *builder) checkProcess(d *draft) {
	if d.w.Process == nil {
		return
	}
	if place := d.settings["stop"]; d.w.Stop.Lives() && place != "" {
		b.reject(d, place, "a process can be neither paused nor throttled", "leave stop out, or write stop: stop")
	}
	if place := d.settings["network"]; d.w.Network != "" && place != "" {
		b.reject(d, place, "a process has no container network", "leave network out")
	}
	d.w.Stop, d.w.Network = workload.StopStop, ""
}

// checkPort takes the only exposed port where none is given.
func (b *builder) checkPort(d *draft) {
	if d.w.Port != 0 || !d.w.Dialled() {
		return
	}
	fix := "set port in the file, or " + b.label("port")
	for _, c := range d.containers {
		switch {
		case len(c.Ports) == 0:
			b.reject(d, c.Name, fmt.Sprintf("container %s exposes no port", c.Name), fix)
		case len(c.Ports) > 1:
			b.reject(d, c.Name, fmt.Sprintf("container %s exposes several ports: %s", c.Name, joinInts(c.Ports)), fix)
		case d.w.Port != 0 && d.w.Port != c.Ports[0]:
			b.reject(d, c.Name, fmt.Sprintf("replicas of %s disagree about the port: %s exposes %d, %s exposes %d", d.name, d.containers[0].Name, d.w.Port, c.Name, c.Ports[0]), fix)
		default:
			d.w.Port = c.Ports[0]
		}
	}
}

func joinInts(ns []int) string {
	words := make([]string, len(ns))
	for i, n := range ns {
		words[i] = fmt.Sprint(n)
	}
	return strings.Join(words, ", ")
}

func (b *builder) checkRoute(d *draft) {
	if len(d.w.Hosts) == 0 && d.settings["path"] != "" {
		b.reject(d, d.placeOf("path"), fmt.Sprintf("%s has a path and no host", d.name), "add a host, or remove the path")
	}
}

// checkThrottle has paused what has a CPU limit of its own: that would be lost.
func (b *builder) checkThrottle(d *draft) {
	if d.w.Stop != workload.StopThrottle {
		return
	}
	for _, c := range d.containers {
		if !c.CPULimited {
			continue
		}
		d.w.Stop = workload.StopPause
		b.report(workload.Problem{
			Workload: d.name, Place: d.placeOf("stop"),
			Message: fmt.Sprintf("container %s has a CPU limit of its own, which could not be restored after stop: throttle; it is paused", c.Name),
			Fix:     "remove the limit, or write stop: pause",
		})
		return
	}
}

// checkReady refuses to wait for a health check that does not exist. Where it
// comes from the defaults, such a workload takes auto instead.
func (b *builder) checkReady(d *draft) {
	without := d.w.Process != nil
	for _, c := range d.containers {
		without = without || !c.HealthCheck
	}
	by := b.needed(d, healthy)
	switch {
	case by != "" && without && !d.w.Job:
		b.report(workload.Problem{
			Workload: d.name, Place: d.place(),
			Message: fmt.Sprintf("%s waits for %s to be healthy, which has no health check; it is waited for until it is ready", by, d.name),
			Fix:     "add a healthcheck, or write condition: service_started",
		})
	case by != "" && d.settings["ready"] == "":
		d.w.Ready = workload.Readiness{Kind: workload.ReadyDocker}
	}
	switch {
	case d.w.Ready.Kind != workload.ReadyDocker:
	case !without:
	case d.settings["ready"] == "":
		d.w.Ready = workload.Readiness{Kind: workload.ReadyAuto}
	default:
		b.reject(d, d.placeOf("ready"), fmt.Sprintf("%s is to be ready by a health check and has none", d.name), "add a HEALTHCHECK to the image, or use auto, tcp or http:/path")
	}
}

func (b *builder) checkBounds(d *draft) {
	if d.w.Max != 0 && d.w.Min > d.w.Max {
		b.reject(d, d.placeOf("min"), fmt.Sprintf("min %d is more than max %d", d.w.Min, d.w.Max), "lower min or raise max")
	}
}

// unique drops every second mention, and keeps the order.
func unique(hosts []string) []string {
	var kept []string
	for _, h := range hosts {
		if !slices.Contains(kept, h) {
			kept = append(kept, h)
		}
	}
	return kept
}
