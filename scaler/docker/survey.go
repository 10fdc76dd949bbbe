package docker

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/rouse-dev/rouse/workload"
)

// A Survey is what the engine shows to somebody who looks for faults: of
// itself, and of its containers.
type Survey struct {
	// Host is the engine's URL.
	Host string
	// Version is the engine's. Newest and Oldest are the versions of the API
	// that it knows, Spoken the one that is used; empty is not known.
	Version                string
	Newest, Oldest, Spoken string
	// Socket are the rights of its socket; 0 is not known, or no socket.
	Socket fs.FileMode
	// Plain says that it is reached over a network without TLS.
	Plain bool
	// Offset is how far its clock is ahead of ours, give or take the time of one
	// call; Told says that it told its time.
	Offset time.Duration
	Told   bool
	// Published says that containers are dialled at their published ports.
	Published  bool
	Containers []Surveyed
}

// Surveyed is one container.
type Surveyed struct {
	workload.Container
	Named       bool
	Restart     string // restart policy
	AutoRemove  bool
	HealthEvery time.Duration
	Networks    []string // names, sorted
	HostNetwork bool
	Bound       []int // ports that it publishes, ascending
	Running     bool
	Command     string
	Keys        []string // all labels, sorted
}

// Survey asks the engine, whether Watch is under way or not. It looks into the
// containers that opted in and those for which named returns true; of all
// others it tells what the list does. Beside an error the survey has what was
// told before.
func (r *Runtime) Survey(ctx context.Context, named func(workload.Container) bool) (Survey, error) {
	s := Survey{Host: r.engine.host(), Plain: unsealed(r.engine.host())}
	if path, ok := strings.CutPrefix(s.Host, "unix://"); ok {
		if info, err := os.Stat(path); err == nil {
			s.Socket = info.Mode()
		}
	}
	if err := r.engine.ping(ctx); err != nil {
		return s, err
	}
	r.engine.introduce(ctx, &s)
	asked := time.Now()
	about := r.engine.describe(ctx)
	if s.Told = !about.now.IsZero(); s.Told {
		s.Offset = about.now.Sub(asked.Add(time.Since(asked) / 2))
	}
	r.address.learn(about)
	s.Published = r.address.published.Load()
	var err error
	s.Containers, err = r.engine.survey(ctx, named)
	return s, err
}

// unsealed reports a URL that anybody on the way may use.
func unsealed(host string) bool {
	u, err := url.Parse(host)
	return err == nil && u.Scheme == "tcp" && os.Getenv(client.EnvTLSVerify) == "" && os.Getenv(client.EnvOverrideCertPath) == "" &&
		engineHost(host) != loopback
}

// introduce fills in the versions. A guard before the socket may not let the
// question through.
func (e *engine) introduce(ctx context.Context, s *Survey) {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	if ping, err := e.api().Ping(ctx); err == nil {
		s.Newest = ping.APIVersion
	}
	if v, err := e.api().ServerVersion(ctx); err == nil {
		s.Version, s.Oldest = v.Version, v.MinAPIVersion
	}
	s.Spoken = e.api().ClientVersion() // agreed on with the first call but a ping
}

func (e *engine) survey(ctx context.Context, named func(workload.Container) bool) ([]Surveyed, error) {
	within, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	list, err := e.api().ContainerList(within, container.ListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", e.tell(ctx, err))
	}
	var all []Surveyed
	for _, summary := range list {
		seen := fromSummary(e.prefix, summary)
		if seen.oneOff {
			continue
		}
		one := Surveyed{
			Container: seen.Container, Named: named(seen.Container), Running: seen.state == stateRunning,
			Networks: slices.Sorted(maps.Keys(seen.networks)), HostNetwork: summary.HostConfig.NetworkMode == "host",
			Command: summary.Command, Keys: slices.Sorted(maps.Keys(summary.Labels)),
		}
		if one.Named || one.Enabled() {
			if err := e.lookInto(ctx, &one); err != nil {
				return all, err
			}
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Surveyed) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// lookInto adds what only an inspect tells. One that is gone meanwhile stays
// as it is.
func (e *engine) lookInto(ctx context.Context, s *Surveyed) error {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	c, err := e.api().ContainerInspect(within, s.ID)
	if err = e.tell(ctx, err); err != nil {
		if err == errGone {
			return nil
		}
		return fmt.Errorf("inspect container %s: %w", s.Name, err)
	}
	rec := fromInspect(e.prefix, c)
	s.Container, s.HostNetwork = rec.Container, rec.hostNet
	s.Networks = slices.Sorted(maps.Keys(rec.networks))
	if c.HostConfig != nil {
		s.Restart, s.AutoRemove = string(c.HostConfig.RestartPolicy.Name), c.HostConfig.AutoRemove
		s.Bound = ports(nil, c.HostConfig.PortBindings)
	}
	if rec.HealthCheck {
		s.HealthEvery = c.Config.Healthcheck.Interval
		if s.HealthEvery == 0 {
			s.HealthEvery = defaultHealthEvery
		}
		if first := c.Config.Healthcheck.StartInterval; first > 0 {
			s.HealthEvery = min(s.HealthEvery, first)
		}
	}
	return nil
}

// defaultHealthEvery is the engine's, where nobody says another.
const defaultHealthEvery = 30 * time.Second
