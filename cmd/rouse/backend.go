package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/workload"
)

// A backend answers the admin API, in every role that has one, from what the
// process knows and from NATS. It implements api.Backend.
type backend struct {
	*api.History
	dir   *directory
	bus   *events.Bus
	board *workload.Board      // what the other gateways say
	act   *activator.Activator // nil in a process without a gateway
	// ready lists what this role needs.
	ready func(ctx context.Context) []api.Check
	// config is the configuration in force, without secrets.
	config any
	// wake puts an ask on its way.
	wake func(ctx context.Context, w workload.Wake) error
	// actor names this process in the asks it makes.
	actor string
	// settings are those of this process, and scales says that it has a scaler.
	settings Config
	scales   bool
	findings findings
}

// newBackend answers for a process with these parts; g and n may be nil.
func newBackend(c *core, g *gateway, n *node) *backend {
	b := &backend{
		History: c.history, dir: c.dir, bus: c.bus, board: c.board, actor: c.name, config: c.cfg.view(),
		wake: c.wake, ready: c.ready, settings: c.cfg, scales: n != nil,
	}
	if n != nil {
		b.ready = n.ready
	}
	if g != nil {
		b.act, b.ready = g.act, g.alsoReady(b.ready)
	}
	return b
}

// Workloads lists every workload by name, and after them those that only a
// problem is known of.
func (b *backend) Workloads(context.Context) ([]api.Workload, error) {
	views := b.views()
	var list []api.Workload
	for _, name := range b.dir.list() {
		if w, ok := b.describe(name, views); ok {
			list = append(list, w)
		}
	}
	return list, nil
}

// Workload gives one.
func (b *backend) Workload(_ context.Context, name string) (api.Workload, error) {
	w, ok := b.describe(name, b.views())
	if !ok {
		return api.Workload{}, fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
	}
	return w, nil
}

// Problems tells what is wrong with descriptions, and what NATS says is wrong
// with its streams.
func (b *backend) Problems(context.Context) []workload.Problem {
	return append(b.dir.wrong(), b.bus.Trouble()...)
}

// views are the gates of this process by name.
func (b *backend) views() map[string]activator.View {
	views := map[string]activator.View{}
	if b.act != nil {
		for _, v := range b.act.Views() {
			views[v.Name] = v
		}
	}
	return views
}

// describe puts together what is known of one workload: its traffic is that
// of this gateway now and of the others when last heard.
func (b *backend) describe(name string, views map[string]activator.View) (api.Workload, bool) {
	spec, state, ok := b.dir.find(name)
	if !ok {
		return api.Workload{}, false
	}
	v, own := views[name]
	if own && v.State.Revision >= state.Revision {
		state = v.State
	}
	w := api.Describe(spec, state)
	use := b.board.Use(name, time.Now())
	w.Queued, w.InFlight = use.Queued+v.Queued, use.InFlight+v.InFlight
	w.LastRequestAt = use.LastUsed
	if v.LastRequest.After(w.LastRequestAt) {
		w.LastRequestAt = v.LastRequest
	}
	for i, r := range w.Replicas {
		for _, own := range v.Replicas {
			if own.ID == r.ID {
				w.Replicas[i].InFlight = own.InFlight
			}
		}
	}
	if w.KeptUntil.Before(time.Now()) {
		w.KeptUntil = time.Time{} // that is over
	}
	w.SleepsAt = sleepsAt(spec, state, w, later(use.KeptUntil, v.KeptUntil))
	w.ColdStarts = b.ColdStarts(name)
	return w, true
}

// sleepsAt is when an idle timeout will have passed if nothing comes; zero
// while something is in use, and for what does not sleep. kept is until when
// it is kept awake for requests that take another way; it is the scaler's
// idleAt.
func sleepsAt(spec workload.Workload, s workload.State, w api.Workload, kept time.Time) time.Time {
	if s.Phase != workload.Ready || spec.IdleTimeout == 0 || spec.Min > 0 || w.InFlight+w.Queued > 0 {
		return time.Time{}
	}
	ready := s.Since // of a sleep that was called off, if there was one
	if s.Wake != nil && !s.Wake.ReadyAt.IsZero() {
		ready = s.Wake.ReadyAt
	}
	if kept.After(ready) {
		return later(later(w.LastRequestAt.Add(spec.IdleTimeout), kept), w.KeptUntil)
	}
	return later(later(w.LastRequestAt, s.Since).Add(spec.IdleTimeout), w.KeptUntil)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Wake asks for the workload and, if there is a wait, sees the wake through.
func (b *backend) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	spec, before, ok := b.dir.find(name)
	if !ok {
		return api.Workload{}, fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
	}
	ask := workload.Wake{
		ID: newID(), Workload: name, Trigger: workload.TriggerAPI, Gateway: b.actor,
		Generation: before.Generation, RequestedAt: time.Now(),
	}
	if err := b.wake(context.WithoutCancel(ctx), ask); err != nil {
		return api.Workload{}, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	var err error
	if wait > 0 {
		err = b.await(ctx, before, min(wait, spec.WakeTimeout))
	}
	w, _ := b.describe(name, b.views())
	return w, err
}

// await blocks until the workload is ready, or has failed since before, or
// the wait is over.
func (b *backend) await(ctx context.Context, before workload.State, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s, err := b.dir.await(ctx, before.Workload, func(s workload.State) bool {
		return s.Phase == workload.Ready || s.Phase == workload.Failed && (s.Revision > before.Revision || time.Now().Before(s.RetryAt))
	})
	switch {
	case err != nil:
		return fmt.Errorf("%w: it is %s", api.ErrNotReady, s.Phase)
	case s.Phase == workload.Failed:
		return fmt.Errorf("%w: %s", api.ErrFailed, s.Reason)
	}
	return nil
}

// Sleep asks the workload's scaler and waits for its answer.
func (b *backend) Sleep(ctx context.Context, name string) error {
	spec, _, ok := b.dir.find(name)
	if !ok {
		return fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
	}
	return backendError(b.bus.AskSleep(ctx, spec.Node, name))
}

// Keep asks the workload's scaler, and for the workload: what it conflicts with
// makes way for somebody who asks, not for what is only kept awake.
func (b *backend) Keep(ctx context.Context, name string, span time.Duration) (time.Time, error) {
	spec, _, ok := b.dir.find(name)
	if !ok {
		return time.Time{}, fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
	}
	if span > 0 { // first, so that it is the wake of somebody who asked
		if _, err := b.Wake(ctx, name, 0); err != nil {
			return time.Time{}, err
		}
	}
	until, err := b.bus.AskKeep(ctx, spec.Node, name, span)
	return until, backendError(err)
}

// Logs asks the workload's scaler.
func (b *backend) Logs(ctx context.Context, name string, lines int) ([]string, error) {
	spec, _, ok := b.dir.find(name)
	if !ok {
		return nil, fmt.Errorf("%w: %q", api.ErrNoWorkload, name)
	}
	text, err := b.bus.AskLogs(ctx, spec.Node, name, lines)
	return text, backendError(err)
}

// Codes of a scaler's refusal, from node.sleep to backendError.
const (
	codeInUse  = "in_use"
	codeUnsure = "unsure"
)

func backendError(err error) error {
	var said *events.AskError
	switch {
	case errors.As(err, &said) && said.Code == codeInUse:
		return fmt.Errorf("%w: %s", api.ErrInUse, said.Message)
	case errors.As(err, &said) && said.Code == codeUnsure, errors.Is(err, events.ErrNoScaler):
		return fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	return err
}

// Ready tells what this role needs.
func (b *backend) Ready(ctx context.Context) []api.Check { return b.ready(ctx) }

// Config is the configuration in force.
func (b *backend) Config(context.Context) (any, error) { return b.config, nil }
