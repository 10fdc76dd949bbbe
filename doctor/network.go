package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// network finds a container that no gateway can dial.
func (e *Engine) network(c Container, w workload.Workload, gateways []Container) []Finding {
	switch {
	case c.HostNetwork:
		return nil
	case e.Published:
		return e.publishes(c, w)
	case len(c.Networks) == 0 || len(c.Networks) == 1 && c.Networks[0] == "none":
		return []Finding{{Error, "no_network", c.Name, "it is in no network", "it has no address that could be dialled",
			"put it into a network that the gateway is in too"}}
	}
	dialled, found := c.dialled(w)
	if !found {
		return []Finding{{Error, "no_network", c.Name,
			fmt.Sprintf("it is not in the network %q (it is in: %s)", dialled, strings.Join(c.Networks, ", ")),
			"its starts fail, since there is no address to dial",
			fmt.Sprintf("put it into that network, or correct %s.network", e.Prefix)}}
	}
	all := e.guess(c, w, dialled)
	if len(gateways) == 0 || slices.ContainsFunc(gateways, func(g Container) bool { return g.HostNetwork || slices.Contains(g.Networks, dialled) }) {
		return all
	}
	g := gateways[0]
	return append(all, Finding{Error, "network_unreachable", c.Name,
		fmt.Sprintf("the gateway %s is not in its network %s (it is in: %s)", g.Name, dialled, strings.Join(g.Networks, ", ")),
		"the workload wakes, and every request for it fails: the gateway cannot reach its address",
		fmt.Sprintf("put both into one network, and name it with %s.network if the container is in several", e.Prefix)})
}

// publishes finds a port that is dialled where the engine publishes it, and is
// not published.
func (e *Engine) publishes(c Container, w workload.Workload) []Finding {
	if w.Port == 0 || slices.Contains(c.Bound, w.Port) {
		return nil
	}
	return []Finding{{Error, "network_unreachable", c.Name, fmt.Sprintf("it does not publish port %d", w.Port),
		"the engine's networks are out of reach from here (a virtual machine, another machine, or no root), so that published ports are dialled",
		fmt.Sprintf("publish it (ports: [\"127.0.0.1::%d\"]), or run Rouse in a container on its network", w.Port)}}
}

// dialled is the network whose address is dialled, and whether it is there.
func (c Container) dialled(w workload.Workload) (name string, found bool) {
	wanted := w.Network
	if wanted == "" {
		return slices.Min(c.Networks), true
	}
	for _, name := range []string{wanted, c.Project + "_" + wanted} {
		if slices.Contains(c.Networks, name) {
			return name, true
		}
	}
	return wanted, false
}

func (e *Engine) guess(c Container, w workload.Workload, dialled string) []Finding {
	if len(c.Networks) < 2 || w.Network != "" {
		return nil
	}
	return []Finding{{Warning, "network_guess", c.Name,
		fmt.Sprintf("it is in several networks (%s), and %s is dialled", strings.Join(c.Networks, ", "), dialled),
		"the first by name need not be the one that the gateway is in, and another may come before it one day",
		fmt.Sprintf("%s.network=%s, or the one that is meant", e.Prefix, dialled)}}
}
