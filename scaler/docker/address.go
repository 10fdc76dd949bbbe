package docker

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rouse-dev/rouse/workload"
)

// addressing finds the address at which a replica is dialled.
type addressing struct {
	auto bool
	// published says that ports are dialled where the engine publishes them.
	published *atomic.Bool
	// engine is the host that published ports and the host network are on.
	engine string
}

func newAddressing(mode Addressing, engineURL string) (addressing, error) {
	a := addressing{published: new(atomic.Bool), engine: engineHost(engineURL)}
	switch mode {
	case "", AddressAuto:
		a.auto = true
		a.published.Store(a.engine != loopback || runtime.GOOS != "linux")
	case AddressContainer:
	case AddressPublished:
		a.published.Store(true)
	default:
		return a, fmt.Errorf("%q is no way to address a container: use auto, container or published", mode)
	}
	return a, nil
}

const loopback = "127.0.0.1"

// engineHost is the host of the engine's URL; a socket is on this machine.
func engineHost(engineURL string) string {
	u, err := url.Parse(engineURL)
	if err != nil || u.Hostname() == "" || u.Scheme == "unix" || u.Scheme == "npipe" || u.Hostname() == "localhost" {
		return loopback
	}
	return u.Hostname()
}

// learn makes use of what the engine told about itself. Without root, or in
// a virtual machine, its networks are out of reach.
func (a addressing) learn(about about) {
	if a.auto && about.secluded {
		a.published.Store(true)
	}
}

// of gives the address of w on the container, and whether the engine
// forwards it.
func (a addressing) of(r record, w workload.Workload) (address string, forwarded bool, err error) {
	port, err := portOf(r, w)
	if err != nil {
		return "", false, err
	}
	switch {
	case r.hostNet:
		return net.JoinHostPort(a.engine, strconv.Itoa(port)), false, nil
	case a.published.Load():
		address, err = a.forwardedAt(r, port)
		return address, true, err
	}
	ip, err := ownAddress(r, w)
	if err != nil {
		return "", false, err
	}
	return net.JoinHostPort(ip, strconv.Itoa(port)), false, nil
}

func (a addressing) forwardedAt(r record, port int) (string, error) {
	at, ok := r.published[port]
	if !ok {
		return "", fmt.Errorf("container %s does not publish port %d, and its own address is out of reach from here: publish it", r.Name, port)
	}
	host, hostPort, err := net.SplitHostPort(at)
	if err != nil {
		return "", fmt.Errorf("published port of container %s: %w", r.Name, err)
	}
	if host == "" {
		host = a.engine
	}
	return net.JoinHostPort(host, hostPort), nil
}

// portOf is the port of w, or the only one that the container exposes.
func portOf(r record, w workload.Workload) (int, error) {
	switch {
	case w.Port != 0:
		return w.Port, nil
	case len(r.Ports) == 1:
		return r.Ports[0], nil
	case len(r.Ports) == 0:
		return 0, fmt.Errorf("container %s exposes no port: say which one it listens on (label port)", r.Name)
	}
	return 0, fmt.Errorf("container %s exposes the ports %s: say which one it is (label port)", r.Name, join(r.Ports))
}

func join(ports []int) string {
	var words []string
	for _, p := range ports {
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, ", ")
}

// ownAddress is the container's address in the network that w or its label
// names, else in the first one by name that gives it an address.
func ownAddress(r record, w workload.Workload) (string, error) {
	names := slices.Sorted(maps.Keys(r.networks))
	if wanted := networkOf(r, w); wanted != "" {
		return addressIn(r, wanted, names)
	}
	for _, name := range names {
		if r.networks[name] != "" {
			return r.networks[name], nil
		}
	}
	return "", fmt.Errorf("container %s has no address of its own in any network (it is in: %s)", r.Name, list(names))
}

func networkOf(r record, w workload.Workload) string {
	if w.Network != "" {
		return w.Network
	}
	return r.Labels["network"]
}

// addressIn also takes compose's short name of a network for the whole one.
func addressIn(r record, wanted string, names []string) (string, error) {
	for _, name := range []string{wanted, r.Project + "_" + wanted} {
		if ip := r.networks[name]; ip != "" {
			return ip, nil
		}
	}
	return "", fmt.Errorf("container %s has no address in the network %q (it is in: %s)", r.Name, wanted, list(names))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
