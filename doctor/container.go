package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A Container is one container as the engine shows it. Of one that did not opt
// in and that no entry names only what the list tells is known: nobody looks
// into it.
type Container struct {
	workload.Container
	// Named says that an entry of the config file names it.
	Named bool
	// Restart is its restart policy: no, on-failure, unless-stopped, always.
	Restart string
	// AutoRemove says that it is removed when it ends.
	AutoRemove bool
	// HealthEvery is how often its health check runs; 0 where there is none.
	HealthEvery time.Duration
	// Networks are the names of those that it is in.
	Networks []string
	// HostNetwork says that it has the host's network.
	HostNetwork bool
	// Bound are the ports that it publishes, ascending.
	Bound []int
	// Running tells whether it does now.
	Running bool
	// Command is what it runs, as the list tells.
	Command string
	// Keys are all of its labels.
	Keys []string
}

// slowCheck is a health check so seldom that it makes a cold start late.
const slowCheck = 2 * time.Second

// container finds what is wrong with one that takes part.
func (e *Engine) container(c Container, workloads []workload.Workload, gateways []Container) []Finding {
	all := c.lifetime()
	i := slices.IndexFunc(workloads, func(w workload.Workload) bool { return w.Selects(c.Container) })
	if i < 0 {
		return all // what is wrong with its description is told already
	}
	w := workloads[i]
	all = append(all, e.health(c, w)...)
	return append(all, e.network(c, w, gateways)...)
}

// lifetime finds what fights with being stopped and started.
func (c Container) lifetime() []Finding {
	var all []Finding
	if c.Restart == "always" {
		all = append(all, Finding{Warning, "restart_always", c.Name, "its restart policy is always",
			"the engine starts it again when it is itself restarted, while Rouse wants it asleep",
			"restart: unless-stopped, or no (docker update --restart unless-stopped " + c.Name + ")"})
	}
	if c.AutoRemove {
		all = append(all, Finding{Error, "auto_remove", c.Name, "it is removed when it ends (--rm)",
			"the first sleep removes it, and nothing can wake it again", "create it without --rm"})
	}
	return all
}

// health finds a proof of readiness that comes too early or too late.
func (e *Engine) health(c Container, w workload.Workload) []Finding {
	switch {
	case w.Ready.Kind == workload.ReadyDocker && c.HealthEvery > slowCheck:
		return []Finding{{Warning, "slow_health_check", c.Name, fmt.Sprintf("its health check runs each %s, and proves it ready", c.HealthEvery),
			"a cold start waits for the check, however soon the workload answers",
			fmt.Sprintf("%s.ready=http:/path, or a health check each second (--health-start-interval with Engine 25)", e.Prefix)}}
	case !c.HealthCheck && (w.Ready.Kind == workload.ReadyAuto || w.Ready.Kind == workload.ReadyTCP) && len(w.Hosts) > 0:
		return []Finding{{Note, "no_health_check", c.Name, "it has no health check, and is ready as soon as its port accepts",
			"one that accepts before it can answer gets its first requests too early",
			fmt.Sprintf("%s.ready=http:/path, with a path that answers 2xx or 3xx once it can work", e.Prefix)}}
	}
	return nil
}

// stray finds a container whose labels show that it was to take part, and that
// does not. One that says enable=false means it.
func (e *Engine) stray(c Container) []Finding {
	if _, said := c.Labels["enable"]; said {
		return nil
	}
	why := "nothing routes to it, wakes it or puts it to sleep, and nobody says so"
	if len(c.Labels) > 0 {
		return []Finding{{Warning, "not_enabled", c.Name,
			fmt.Sprintf("it has labels of %s and not %s.enable", e.Prefix, e.Prefix), why, fmt.Sprintf("%s.enable=true", e.Prefix)}}
	}
	for _, key := range c.Keys {
		if e.misspelt(key) {
			return []Finding{{Warning, "label", c.Name, fmt.Sprintf("its label %q is none of Rouse's", key), why,
				fmt.Sprintf("did you mean %s.enable?", e.Prefix)}}
		}
	}
	return nil
}

// misspelt reports a slip of the label that everything begins with.
func (e *Engine) misspelt(key string) bool {
	plain := strings.NewReplacer("_", ".", "-", ".", "/", ".", ":", ".").Replace(strings.ToLower(key))
	word := strings.ToLower(e.Prefix) + ".enable"
	return plain == word || len(word) >= 8 && slip(plain, word)
}

// slip reports that two words differ by one letter that is wrong, missing, too
// many, or in the other's place.
func slip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && (a[i+1:] == b[i+1:] || i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:])
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

// gateways are the containers that serve traffic, by what they run: where this
// runs in one itself, those of its own compose project. Another installation on
// the same engine is none of ours.
func (e *Engine) gateways() []Container {
	if e.Local {
		return nil
	}
	i := slices.IndexFunc(e.Containers, func(c Container) bool { return len(e.Inside) >= 12 && strings.HasPrefix(c.ID, e.Inside) })
	var all []Container
	for _, c := range e.Containers {
		words := strings.Fields(c.Command)
		serves := len(words) > 1 && path.Base(words[0]) == "rouse" && (words[1] == "gateway" || words[1] == "up")
		if serves && c.Running && (i < 0 || c.Project == e.Containers[i].Project) {
			all = append(all, c)
		}
	}
	return all
}
