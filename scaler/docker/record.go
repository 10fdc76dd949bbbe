package docker

import (
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// The engine's words for the states of a container.
const (
	stateCreated = "created"
	stateRunning = "running"
	statePaused  = "paused"
	// stateThrottled is no word of the engine's, to which it runs.
	stateThrottled  = "throttled"
	stateRestarting = "restarting"
	stateRemoving   = "removing"
	stateExited     = "exited"
	stateDead       = "dead"
)

// A sighting is what the list and the events tell of a container: who it is,
// and little of how it is.
type sighting struct {
	workload.Container // without Ports and HealthCheck
	// number tells the containers of one compose service apart; empty for
	// those that compose did not make.
	number  string
	created time.Time
	oneOff  bool // compose made it for one command
	state   string
	// networks are its own addresses: network -> address.
	networks map[string]string
}

// A record is what one inspect told of a container. Its maps are not changed
// after it was made.
type record struct {
	sighting
	tty        bool
	stopSignal string        // number of the signal that asks it to end
	grace      time.Duration // what the engine gives it to end, if not told
	hostNet    bool
	published  map[int]string // own port -> host:port; the host may be empty
	startedAt  time.Time      // zero: never
	finishedAt time.Time      // of the run before, while it runs; zero: never
	exitCode   int
	oom        bool
	complaint  string // the engine's words on why it did not start
	restarts   int
	health     scaler.Health
}

// serving reports that it runs, is not frozen and not between two runs.
func (r *record) serving() bool { return r.state == stateRunning }

// frozen reports that it lives and counts as asleep.
func (r *record) frozen() bool { return r.state == statePaused || r.state == stateThrottled }

// ended reports that a run of it is over.
func (r *record) ended() bool {
	return r.state == stateExited || r.state == stateRestarting || r.state == stateDead
}

// doomed reports that it will never run again.
func (r *record) doomed() bool { return r.state == stateRemoving || r.state == stateDead }

// replicaID names this start of the container: two starts differ by the
// engine's time. Empty if it never ran.
func (r *record) replicaID() string {
	if r.startedAt.IsZero() {
		return ""
	}
	return short(r.ID) + "@" + r.startedAt.UTC().Format("20060102T150405.000000000")
}

// replaces reports that compose made r in the place of other.
func (r *sighting) replaces(other *sighting) bool {
	return r.number != "" && r.number == other.number &&
		r.Service == other.Service && r.Project == other.Project &&
		r.created.After(other.created)
}

func short(id string) string { return id[:min(12, len(id))] }

// Labels that compose puts on its containers.
const (
	composeProject   = "com.docker.compose.project"
	composeService   = "com.docker.compose.service"
	composeNumber    = "com.docker.compose.container-number"
	composeOneOff    = "com.docker.compose.oneoff"
	composeDependsOn = "com.docker.compose.depends_on"
)

// sight makes a sighting of an identity and its labels.
func sight(prefix prefixes, id, name string, labels map[string]string) sighting {
	return sighting{
		Container: workload.Container{
			ID:        id,
			Name:      strings.TrimPrefix(name, "/"),
			Project:   labels[composeProject],
			Service:   labels[composeService],
			Labels:    prefix.own(labels),
			Foreign:   prefix.foreign(labels),
			DependsOn: dependencies(labels[composeDependsOn]), Conditions: conditions(labels[composeDependsOn]),
		},
		number: labels[composeNumber],
		oneOff: strings.EqualFold(labels[composeOneOff], "true"),
	}
}

// prefixes are those of the labels that are read, with the dot: Rouse's own
// first, then those of other products.
type prefixes []string

// own picks Rouse's labels, without the prefix, whatever their case. Of two
// that differ in case alone, the one written in lower case counts.
func (p prefixes) own(all map[string]string) map[string]string {
	return pick(all, func(lower string) (string, bool) { return strings.CutPrefix(lower, p[0]) })
}

// foreign picks those of other products, whole; nil where none are read.
func (p prefixes) foreign(all map[string]string) map[string]string {
	if len(p) == 1 {
		return nil
	}
	return pick(all, func(lower string) (string, bool) {
		return lower, slices.ContainsFunc(p[1:], func(prefix string) bool { return strings.HasPrefix(lower, prefix) })
	})
}

// pick gives the labels that name knows by their key in lower case.
func pick(all map[string]string, name func(lower string) (string, bool)) map[string]string {
	picked := map[string]string{}
	for key, value := range all {
		lower := strings.ToLower(key)
		name, ok := name(lower)
		if !ok {
			continue
		}
		if _, twice := picked[name]; twice && key != lower {
			continue
		}
		picked[name] = value
	}
	return picked
}

// dependencies are the services of compose's "db:service_healthy:false,cache:…".
func dependencies(label string) []string {
	var services []string
	for part := range strings.SplitSeq(label, ",") {
		if service, _ := condition(part); service != "" {
			services = append(services, service)
		}
	}
	return services
}

// conditions are how far those services have to be; nil where compose, an old
// one, has not said.
func conditions(label string) map[string]string {
	var of map[string]string // service -> condition
	for part := range strings.SplitSeq(label, ",") {
		service, condition := condition(part)
		if service == "" || condition == "" {
			continue
		}
		if of == nil {
			of = map[string]string{}
		}
		of[service] = condition
	}
	return of
}

func condition(part string) (service, condition string) {
	service, rest, _ := strings.Cut(part, ":")
	condition, _, _ = strings.Cut(rest, ":")
	return strings.TrimSpace(service), strings.TrimSpace(condition)
}
