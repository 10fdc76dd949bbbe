package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"
)

// How long the engine may take for one answer. A start or a stop takes as
// long as the container does; those are bounded by their callers.
const (
	quick    = 5 * time.Second  // ping, inspect, pause
	patient  = 15 * time.Second // list, events' first answer, logs
	stopping = 30 * time.Second // added to the grace of a stop
)

// engine makes the calls, each with a deadline of its own, and gives back
// this package's own types and errors.
type engine struct {
	prefix prefixes // of the labels that are read
	opts   []client.Opt
	// current is replaced at each connect: a client agrees on the version of
	// the API once, and the engine may have been upgraded meanwhile.
	current atomic.Pointer[client.Client]
}

func newEngine(host string) (*engine, error) {
	e := &engine{opts: []client.Opt{client.FromEnv, client.WithAPIVersionNegotiation()}}
	if host != "" {
		e.opts = append(e.opts, client.WithHost(host))
	}
	return e, e.renew()
}

// renew drops the client for a new one.
func (e *engine) renew() error {
	c, err := client.NewClientWithOpts(e.opts...)
	if err != nil {
		return err
	}
	if old := e.current.Swap(c); old != nil {
		return old.Close()
	}
	return nil
}

func (e *engine) api() *client.Client { return e.current.Load() }

func (e *engine) host() string { return e.api().DaemonHost() }

func (e *engine) ping(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	_, err := e.api().Ping(within)
	return e.tell(ctx, err)
}

// about is what the engine tells of itself.
type about struct {
	now      time.Time // on its clock; zero if it does not say
	secluded bool      // its networks cannot be reached from this machine
}

// describe asks, and takes no answer for an answer: a guard before the
// socket may not let the question through.
func (e *engine) describe(ctx context.Context) about {
	ctx, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	info, err := e.api().Info(ctx)
	if err != nil {
		return about{}
	}
	rootless := slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "name=rootless") })
	return about{
		now:      parseTime(info.SystemTime),
		secluded: rootless || strings.Contains(info.OperatingSystem, "Docker Desktop"),
	}
}

// list sees every container, running or not.
func (e *engine) list(ctx context.Context) ([]sighting, error) {
	within, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	all, err := e.api().ContainerList(within, container.ListOptions{All: true})
	if err != nil {
		return nil, e.tell(ctx, err)
	}
	seen := make([]sighting, len(all))
	for i, s := range all {
		seen[i] = fromSummary(e.prefix, s)
	}
	return seen, nil
}

// inspect blocks while the engine starts the container.
func (e *engine) inspect(ctx context.Context, id string) (record, error) {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	c, err := e.api().ContainerInspect(within, id)
	if err != nil {
		return record{}, e.tell(ctx, err)
	}
	r := fromInspect(e.prefix, c)
	if c.HostConfig == nil || !c.HostConfig.NetworkMode.IsContainer() {
		return r, nil
	}
	// It has no network but that of another container.
	host, err := e.api().ContainerInspect(within, c.HostConfig.NetworkMode.ConnectedContainer())
	if err == nil {
		r.readNetwork(host.NetworkSettings)
		r.hostNet = host.HostConfig != nil && host.HostConfig.NetworkMode.IsHost()
	}
	return r, nil
}

// start returns nil too when the container ran already, is about to be
// restarted, or is just ending.
func (e *engine) start(ctx context.Context, id string) error {
	return e.tell(ctx, e.api().ContainerStart(ctx, id, container.StartOptions{}))
}

// stop returns when the container has ended, killed after the grace if need
// be. The engine counts the grace in whole seconds; part of one is one.
func (e *engine) stop(ctx context.Context, id string, grace time.Duration) error {
	seconds := int((grace + time.Second - 1) / time.Second)
	within, cancel := context.WithTimeout(ctx, grace+stopping)
	defer cancel()
	return e.tell(ctx, e.api().ContainerStop(within, id, container.StopOptions{Timeout: &seconds}))
}

func (e *engine) pause(ctx context.Context, id string) error {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	return e.tell(ctx, e.api().ContainerPause(within, id))
}

func (e *engine) unpause(ctx context.Context, id string) error {
	within, cancel := context.WithTimeout(ctx, quick)
	defer cancel()
	return e.tell(ctx, e.api().ContainerUnpause(within, id))
}

// newsworthy are the events that are asked for. What a health check executes
// is not among them: it would push all else out of the engine's short memory.
var newsworthy = []events.Action{
	events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionOOM, events.ActionKill,
	events.ActionDestroy, events.ActionRename, events.ActionPause, events.ActionUnPause, events.ActionUpdate,
	events.ActionHealthStatus, events.ActionConnect, events.ActionDisconnect,
}

// events follows the engine's news from the given moment on, which it may
// not remember, until ctx ends or the connection does: then the second
// channel gets the reason.
func (e *engine) events(ctx context.Context, since time.Time) (<-chan events.Message, <-chan error) {
	filter := filters.NewArgs(
		filters.Arg("type", string(events.ContainerEventType)),
		filters.Arg("type", string(events.NetworkEventType)),
	)
	for _, action := range newsworthy {
		filter.Add("event", string(action))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	// The call returns with the engine's first answer, and has no deadline.
	late := time.AfterFunc(patient, func() { cancel(context.DeadlineExceeded) })
	defer late.Stop()
	return e.api().Events(ctx, events.ListOptions{Since: engineTime(since), Filters: filter})
}

// engineTime writes a moment as the engine reads it; the zero time is the
// beginning of all.
func engineTime(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond())
}
