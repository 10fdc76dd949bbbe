package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/webhook"
	"github.com/rouse-dev/rouse/workload"
)

// webhookRetry is after how long a queue that could not be served is tried
// again.
const webhookRetry = time.Minute

// webhookServed is after how long of it the queue counts as served.
const webhookServed = 10 * time.Second

// webhooks send the events to those that the configuration names.
type webhooks struct {
	*core
	begun time.Time // what is older is not for a webhook that is new
	hooks []*outlet
	// changed is told that there are other problems.
	changed func()
}

// An outlet is one webhook and the queue of its events.
type outlet struct {
	*webhook.Webhook
	place string
	queue events.EventQueue

	mu       sync.Mutex
	unserved error           // why its queue is not served; nil: it is; guarded by mu
	inHand   map[string]bool // IDs of what is being delivered; guarded by mu
}

func newWebhooks(c *core, changed func()) (*webhooks, error) {
	h := &webhooks{core: c, begun: time.Now(), changed: changed}
	for _, cfg := range c.cfg.Webhooks {
		secrets, err := cfg.secrets()
		if err != nil {
			return nil, fail(exitConfig, err)
		}
		w, err := webhook.New(webhook.Config{
			Name: cfg.Name, URL: cfg.URL, Secrets: secrets, Agent: "rouse/" + programBuild().Version,
			Logger: c.log, Registerer: c.reg,
		})
		if err != nil {
			return nil, fail(exitConfig, err)
		}
		h.hooks = append(h.hooks, &outlet{Webhook: w, place: cfg.place, inHand: map[string]bool{}, queue: events.EventQueue{
			Name: cfg.Name, Workloads: cfg.Workloads, Kinds: cfg.Kinds, From: h.begun,
		}})
	}
	return h, nil
}

// run sends until ctx ends. No trouble with a webhook ends the process, nor
// holds up another webhook.
func (h *webhooks) run(ctx context.Context) error {
	var parts []part
	for _, o := range h.hooks {
		parts = append(parts, func(ctx context.Context) error { h.serve(ctx, o); return nil })
	}
	return together(ctx, parts...)
}

// serve works on the queue of one webhook, until ctx ends or the receiver
// wants no more: what it did not take stays in the queue for the next start.
func (h *webhooks) serve(ctx context.Context, o *outlet) {
	defer o.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for ctx.Err() == nil {
		served := time.AfterFunc(webhookServed, func() { o.note(nil) })
		err := h.bus.ServeEvents(ctx, o.queue, func(ctx context.Context, e events.Recorded) events.Verdict {
			verdict, goesOn := h.send(ctx, o, e)
			if !goesOn {
				cancel()
				h.changed()
			}
			return verdict
		})
		served.Stop()
		if ctx.Err() != nil || errors.Is(err, events.ErrClosed) {
			return
		}
		o.note(err)
		h.log.Warn("events are not sent", "webhook", o.Name(), "error", err)
		select {
		case <-time.After(webhookRetry):
		case <-ctx.Done():
		}
	}
}

// send delivers one event; goesOn is false where the receiver wants no more.
func (h *webhooks) send(ctx context.Context, o *outlet, e events.Recorded) (v events.Verdict, goesOn bool) {
	if !o.take(e.ID) {
		return events.Later(webhookRetry), true
	}
	defer o.leave(e.ID)
	event := api.EventOf(e.Event)
	event.ID = e.ID
	body, err := json.Marshal(event)
	if err != nil {
		return events.Permanent(err.Error()), true
	}
	switch o.Deliver(ctx, webhook.Message{ID: e.ID, At: e.At, Body: body}) {
	case webhook.Gone:
		return events.Later(0), false
	case webhook.Interrupted:
		return events.Later(0), true
	}
	return events.Done(), true
}

// take reports that nobody else here delivers the event. It is handed out a
// second time where NATS was away for longer than it waits for a sign of work.
func (o *outlet) take(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.inHand[id]
	o.inHand[id] = true
	return !taken
}

func (o *outlet) leave(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.inHand, id)
}

func (o *outlet) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unserved = err
}

// problems are those that have lasted.
func (h *webhooks) problems() []workload.Problem {
	var ps []workload.Problem
	for _, o := range h.hooks {
		if err := o.trouble(); err != nil {
			ps = append(ps, workload.Problem{Place: o.place, Message: "webhook " + o.Name() + ": " + err.Error(), Fix: fixOf(err)})
		}
	}
	return ps
}

func (o *outlet) trouble() error {
	o.mu.Lock()
	err := o.unserved
	o.mu.Unlock()
	if err != nil {
		return err
	}
	return o.Trouble()
}

func fixOf(err error) string {
	switch {
	case errors.Is(err, webhook.ErrGone):
		return "remove it; or mend the receiver and start rouse again, which sends what waits"
	case errors.Is(err, events.ErrDenied):
		return "give scalers the rights on ROUSE_EVENTS that deploy/nats/accounts.conf has"
	}
	return "mend the receiver or its url; what waits is sent then"
}
