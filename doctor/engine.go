package doctor

import (
	"cmp"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// An Engine is what a Docker engine tells of itself and its containers.
type Engine struct {
	// Host is its URL.
	Host string
	// Err says why it did not answer, or not all; what is known stands beside.
	Err string
	// Version is the engine's. Newest and Oldest are the versions of the API
	// that it speaks, Spoken the one that Rouse does; empty is not known.
	Version                string
	Newest, Oldest, Spoken string
	// Socket are the rights of its socket; 0 is not known, or no socket.
	Socket fs.FileMode
	// Plain says that it is reached over the network without TLS.
	Plain bool
	// Offset is its clock's lead over ours; Told says that it is known.
	Offset time.Duration
	Told   bool
	// Published says that containers are dialled at their published ports.
	Published bool
	// Local says that the gateway is a process of this machine, and none of the
	// engine's containers; Inside is the host name of the container that this
	// runs in, empty outside of one.
	Local  bool
	Inside string
	// Prefix of the labels, without the dot.
	Prefix     string
	Containers []Container
}

// oldestTested is the API of Engine 20.10, the oldest that Rouse is tested with.
const oldestTested = "1.41"

func (e *Engine) findings(workloads []workload.Workload) []Finding {
	all := e.access()
	all = append(all, e.versions()...)
	if e.Told {
		all = append(all, clock("engine at "+e.Host, e.Offset)...)
	}
	gateways := e.gateways()
	for _, c := range e.Containers {
		if c.Enabled() || c.Named {
			all = append(all, e.container(c, workloads, gateways)...)
		} else {
			all = append(all, e.stray(c)...)
		}
	}
	return all
}

func (e *Engine) access() []Finding {
	var all []Finding
	if e.Err != "" {
		all = append(all, Finding{Error, "engine", e.Host, e.Err, "no container is started, stopped or seen",
			"start Docker, let this user open its socket, or correct docker.host"})
	}
	if e.Socket.Perm()&0o002 != 0 {
		all = append(all, Finding{Warning, "socket_open", e.Host, fmt.Sprintf("everybody may write to the socket (%s)", e.Socket),
			"whoever may write there is root on this machine", "chmod 660, and add those who need it to its group"})
	}
	if e.Plain {
		all = append(all, Finding{Warning, "socket_plain", e.Host, "the engine is reached over the network without TLS",
			"whoever reaches that port is root there", "use ssh or a TLS certificate (DOCKER_TLS_VERIFY, DOCKER_CERT_PATH)"})
	}
	return all
}

func (e *Engine) versions() []Finding {
	switch {
	case e.Spoken == "":
		return nil
	case older(e.Newest, e.Spoken) || older(e.Spoken, e.Oldest):
		return []Finding{{Error, "api_version", e.Host,
			fmt.Sprintf("API %s is spoken, and the engine knows %s to %s", e.Spoken, cmp.Or(e.Oldest, "?"), e.Newest),
			"the engine refuses every call", "unset DOCKER_API_VERSION, so that the two agree on one"}}
	case older(e.Newest, oldestTested):
		return []Finding{{Warning, "api_version", e.Host,
			fmt.Sprintf("the engine knows API %s at most", e.Newest),
			"Rouse is tested with API " + oldestTested + " (Engine 20.10) and later", "upgrade the engine"}}
	}
	return nil
}

// older compares two versions of the API; one that is not known is not older.
func older(a, b string) bool {
	majorA, minorA, okA := version(a)
	majorB, minorB, okB := version(b)
	return okA && okB && (majorA < majorB || majorA == majorB && minorA < minorB)
}

func version(s string) (major, minor int, ok bool) {
	before, after, found := strings.Cut(s, ".")
	major, err := strconv.Atoi(before)
	minor, err2 := strconv.Atoi(after)
	return major, minor, found && err == nil && err2 == nil
}

// maxSkew is how far two clocks may be apart before times that are compared
// mislead.
const maxSkew = time.Second

// clock finds a clock that differs from ours.
func clock(whose string, offset time.Duration) []Finding {
	if offset.Abs() <= maxSkew {
		return nil
	}
	direction := "ahead of"
	if offset < 0 {
		direction = "behind"
	}
	return []Finding{{Warning, "clock", whose, fmt.Sprintf("its clock is %s %s ours", offset.Abs().Round(100*time.Millisecond), direction),
		"no request is lost for it, but times in rouse explain, rouse events and logs do not fit together, and keep_warm begins at another time",
		"let NTP (chrony, systemd-timesyncd) set the clock of every machine"}}
}
