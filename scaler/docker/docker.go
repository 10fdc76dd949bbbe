// Package docker is the scaler.Runtime of one Docker engine: it starts,
// stops, pauses, throttles and watches containers that already exist.
//
// It owns an in-memory view of the engine's containers, fed by the event
// stream and checked against the engine's own list at each connect and now
// and then between. It knows nothing of gates, states or the catalog, and it
// creates and removes no container, and changes none but for the CPU of one
// that is throttled. It is the only package that
// knows the engine's API.
//
// It guarantees that only containers which carry the opt-in label, or which
// a workload of the config file names, are acted on or inspected; that an
// address belongs to one start of one container and is dropped with its end;
// that a start is believed only once the engine shows a run nobody had asked
// to end; and that the start and the stop of one container never overlap.
// A news item that was lost with the stream is found by comparing.
package docker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// DefaultLabelPrefix is the prefix of Rouse's labels unless Config says else.
const DefaultLabelPrefix = "rouse"

// Addressing says which address of a replica is dialled.
type Addressing string

const (
	// AddressAuto takes AddressContainer where this machine can reach the
	// engine's networks, and AddressPublished where it cannot: an engine on
	// another machine, in a virtual machine, or without root.
	AddressAuto Addressing = "auto"
	// AddressContainer dials the container's own address in its network.
	AddressContainer Addressing = "container"
	// AddressPublished dials the port that the engine publishes for it. The
	// engine accepts there before the container does, so the replica is
	// marked Forwarded.
	AddressPublished Addressing = "published"
)

// Config says which engine, and how its containers are read. The zero value
// is the engine of the environment (DOCKER_HOST and its kin, else the local
// socket), the prefix "rouse" and AddressAuto.
type Config struct {
	// Host is the engine's URL, as "unix:///var/run/docker.sock".
	Host string
	// LabelPrefix is what Rouse's labels begin with, without the dot.
	LabelPrefix string
	// ForeignPrefixes are what labels of other products begin with that are
	// read too, without the dot.
	ForeignPrefixes []string
	Address         Addressing
	Logger          *slog.Logger // nil is silence
}

// Runtime is a scaler.Runtime, and the catalog's source of containers. All
// methods are safe for concurrent use.
type Runtime struct {
	engine  *engine
	view    *view
	address addressing
	log     *slog.Logger

	watched   atomic.Bool
	connected atomic.Bool
	lastEvent time.Time // the engine's time of the last event; Watch's alone
	looks     chan struct{}
}

var _ scaler.Runtime = (*Runtime)(nil)

// looksAtOnce bounds the inspects in flight that no start waits for.
const looksAtOnce = 16

// New makes a runtime and connects to nothing yet: an engine that is away
// for now is no error here but Ping's. An error says that the config cannot
// work.
func New(cfg Config) (*Runtime, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.LabelPrefix == "" {
		cfg.LabelPrefix = DefaultLabelPrefix
	}
	e, err := newEngine(cfg.Host)
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	address, err := newAddressing(cfg.Address, e.host())
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	for _, prefix := range append([]string{cfg.LabelPrefix}, cfg.ForeignPrefixes...) {
		e.prefix = append(e.prefix, strings.ToLower(strings.TrimSuffix(prefix, "."))+".")
	}
	return &Runtime{
		engine:  e,
		view:    newView(),
		address: address,
		log:     cfg.Logger,
		looks:   make(chan struct{}, looksAtOnce),
	}, nil
}

// Ping asks whether the engine answers, for some seconds at most. The error
// wraps ErrUnreachable and says what to do about it.
func (r *Runtime) Ping(ctx context.Context) error { return r.engine.ping(ctx) }

// Connected reports that events arrive and that the view was checked after
// they began to. It is false before Watch and while Watch reconnects.
func (r *Runtime) Connected() bool { return r.connected.Load() }

// Confirm returns nil if the replica of that ID serves, as scaler.Confirmer
// says. While connected it answers from memory.
func (r *Runtime) Confirm(ctx context.Context, replica string) error {
	id, known := r.view.serving(replica)
	if known && !r.Connected() {
		if _, err := r.look(ctx, id); err != nil {
			return err
		}
		_, known = r.view.serving(replica)
	}
	if !known {
		return fmt.Errorf("replica %s has ended", replica)
	}
	return nil
}

// Containers lists every container of the engine, running or not, sorted by
// name: not those that compose made for one command, nor those of which more
// is to be told and that have not been looked at yet; of a container that
// compose has replaced only the new one. Ports and HealthCheck are filled in
// only where the container carries the opt-in or a workload of the last
// Update names it. Before Watch has connected once, the list is empty.
func (r *Runtime) Containers() []workload.Container { return r.view.containers() }

// Settled reports that every container of which more is to be told than its
// name has been looked at. After a change it is so again within milliseconds,
// unless the engine is away.
func (r *Runtime) Settled() bool { return r.view.settled() }

// Changed receives a value when Containers has changed since the last one
// was received.
func (r *Runtime) Changed() <-chan struct{} { return r.view.changed }

// Update replaces the workloads that List and Watch are about. For what runs
// already of a workload that is new, Watch tells Started.
func (r *Runtime) Update(ws []workload.Workload) { r.view.update(ws) }

// List answers from memory while connected, so that it costs the engine
// nothing; else it asks the engine. A replica without a usable address is
// listed with an empty one.
func (r *Runtime) List(ctx context.Context) ([]scaler.Instance, error) {
	if !r.Connected() {
		if err := r.sync(ctx, true); err != nil {
			return nil, fmt.Errorf("list containers: %w", err)
		}
	}
	var all []scaler.Instance
	for _, m := range r.view.up() {
		i, err := r.instance(m.record, m.workload)
		if err != nil {
			r.log.Debug("container runs without a usable address", "workload", m.workload.Name, "error", err)
		}
		all = append(all, i)
	}
	return all, nil
}

// instance makes of a record what the scaler sees. Beside an error the
// instance is complete but for its address.
func (r *Runtime) instance(rec record, w workload.Workload) (scaler.Instance, error) {
	i := scaler.Instance{
		Workload: w.Name,
		Replica:  workload.Replica{ID: rec.replicaID(), StartedAt: rec.startedAt},
		Health:   rec.health,
		Paused:   rec.frozen(),
	}
	var err error
	i.Address, i.Forwarded, err = r.address.of(rec, w)
	if err != nil && !w.Dialled() {
		i.Address, err = "", nil
	}
	return i, err
}
