package docker

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"

	"github.com/rouse-dev/rouse/scaler"
)

// fromSummary reads one entry of the engine's list.
func fromSummary(prefix prefixes, s container.Summary) sighting {
	name := ""
	if i := slices.IndexFunc(s.Names, isOwnName); i >= 0 {
		name = s.Names[i]
	}
	got := sight(prefix, s.ID, name, s.Labels)
	got.created = time.Unix(s.Created, 0)
	got.state = s.State
	if s.NetworkSettings != nil {
		got.networks = addresses(s.NetworkSettings.Networks)
	}
	return got
}

// isOwnName tells a name from the aliases that links give: "/other/alias".
func isOwnName(name string) bool { return strings.LastIndexByte(name, '/') <= 0 }

// fromInspect reads an inspect. Of an answer that lacks a part, that part of
// the record is zero.
func fromInspect(prefix prefixes, c container.InspectResponse) record {
	var r record
	if c.ContainerJSONBase == nil {
		return r
	}
	if c.Config == nil {
		c.Config = &container.Config{}
	}
	if c.HostConfig == nil {
		c.HostConfig = &container.HostConfig{}
	}
	r.sighting = sight(prefix, c.ID, c.Name, c.Config.Labels)
	r.created = parseTime(c.Created)
	r.Ports = ports(c.Config.ExposedPorts, c.HostConfig.PortBindings)
	r.HealthCheck = checksHealth(c.Config.Healthcheck)
	r.tty = c.Config.Tty
	r.stopSignal = signalNumber(c.Config.StopSignal)
	r.grace = grace(c.Config.StopTimeout)
	r.hostNet = c.HostConfig.NetworkMode.IsHost()
	r.restarts = c.RestartCount
	r.readState(c.State)
	r.readLimits(c.HostConfig.Resources)
	r.readNetwork(c.NetworkSettings)
	return r
}

func (r *record) readState(s *container.State) {
	if s == nil {
		return
	}
	r.state = s.Status
	r.startedAt = parseTime(s.StartedAt)
	r.finishedAt = parseTime(s.FinishedAt)
	r.exitCode = s.ExitCode
	r.oom = s.OOMKilled
	r.complaint = s.Error
	if s.Health != nil {
		r.health = parseHealth(s.Health.Status)
	}
}

func (r *record) readNetwork(s *container.NetworkSettings) {
	if s == nil {
		return
	}
	r.networks = addresses(s.Networks)
	r.published = published(s.Ports)
}

func addresses(networks map[string]*network.EndpointSettings) map[string]string {
	own := map[string]string{}
	for name, endpoint := range networks {
		switch {
		case endpoint == nil:
			own[name] = ""
		case endpoint.IPAddress != "":
			own[name] = endpoint.IPAddress
		default:
			own[name] = endpoint.GlobalIPv6Address
		}
	}
	return own
}

// published keeps one binding of each TCP port, IPv4 before IPv6. An address
// that means every interface is left out: the host is then the engine's.
func published(bindings nat.PortMap) map[int]string {
	all := map[int]string{}
	for port, on := range bindings {
		if port.Proto() != "tcp" {
			continue
		}
		for _, b := range on {
			ip, err := netip.ParseAddr(b.HostIP)
			if _, taken := all[port.Int()]; taken && ip.Is6() {
				continue
			}
			host := b.HostIP
			if err == nil && ip.IsUnspecified() {
				host = ""
			}
			all[port.Int()] = net.JoinHostPort(host, b.HostPort)
		}
	}
	return all
}

// ports are the TCP ports that a container exposes or publishes.
func ports(exposed nat.PortSet, bound nat.PortMap) []int {
	var all []int
	add := func(p nat.Port) {
		if p.Proto() == "tcp" && p.Int() > 0 && !slices.Contains(all, p.Int()) {
			all = append(all, p.Int())
		}
	}
	for p := range exposed {
		add(p)
	}
	for p := range bound {
		add(p)
	}
	slices.Sort(all)
	return all
}

func checksHealth(h *container.HealthConfig) bool {
	return h != nil && len(h.Test) > 0 && h.Test[0] != "NONE"
}

func parseHealth(status string) scaler.Health {
	switch status {
	case container.Starting:
		return scaler.HealthStarting
	case container.Healthy:
		return scaler.HealthHealthy
	case container.Unhealthy:
		return scaler.HealthUnhealthy
	}
	return scaler.HealthNone
}

// parseTime reads the engine's time; its zero, and anything unreadable, is
// the zero time.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t
}

const defaultGrace = 10 * time.Second

func grace(seconds *int) time.Duration {
	if seconds == nil || *seconds < 0 {
		return defaultGrace
	}
	return time.Duration(*seconds) * time.Second
}

// signals are the ones that images use to ask for an end, as Linux counts
// them: the engine runs there, wherever this does.
var signals = map[string]string{
	"": "15", "HUP": "1", "INT": "2", "QUIT": "3", "KILL": "9",
	"USR1": "10", "USR2": "12", "TERM": "15", "WINCH": "28", "PWR": "30",
}

// firstRealTime is the number of SIGRTMIN.
const firstRealTime = 34

// signalNumber turns SIGQUIT, QUIT, 3 and SIGRTMIN+3 into the number that
// the events carry.
func signalNumber(name string) string {
	name = strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if number, ok := signals[name]; ok {
		return number
	}
	if above, ok := strings.CutPrefix(name, "RTMIN+"); ok {
		if n, err := strconv.Atoi(above); err == nil {
			return strconv.Itoa(firstRealTime + n)
		}
	}
	return name
}
