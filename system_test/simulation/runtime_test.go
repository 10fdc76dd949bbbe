package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A platform is one scaler's way to the engine: its Runtime and its Prober.
// Once the scaler is dead nothing gets through, but what got through goes on.
type platform struct {
	*engine
	node string // with its incarnation
	name string // of the place
	dead bool   // guarded by world.mu

	calls map[string]string // workload -> the call under way; guarded by world.mu
}

func (p *platform) about(what, whom string) about { return about{what, p.name, whom} }

// arrive takes a call to the engine. world.mu is held when it returns nil.
func (p *platform) arrive(ctx context.Context, what, whom string) error {
	if detail {
		p.w.note(p.name, "%s %s", what, whom)
	}
	if !pause(ctx, p.w.dice.between(p.about(what, whom), 100*time.Microsecond, 3*time.Millisecond)) {
		return context.Cause(ctx)
	}
	p.w.mu.Lock()
	switch {
	case p.dead || ctx.Err() != nil:
		p.w.mu.Unlock()
		<-ctx.Done()
		return context.Cause(ctx)
	case p.away:
		p.w.mu.Unlock()
		return errEngineAway
	}
	return nil
}

// leave takes the answer back. The call is over then.
func (p *platform) leave(ctx context.Context, what, whom string) error {
	if !pause(ctx, p.w.dice.between(p.about(what+" back", whom), 100*time.Microsecond, p.w.plan.callBack)) {
		return context.Cause(ctx)
	}
	return nil
}

// open notes that a call of this scaler is under way. Under world.mu.
func (p *platform) open(name, what string) {
	if other := p.calls[name]; other != "" {
		p.w.rules.broke("%s: %s of %s while its %s is under way", p.node, what, name, other)
	}
	p.calls[name] = what
}

func (p *platform) close(name string) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	delete(p.calls, name)
}

// Start brings up every container of w.
func (p *platform) Start(ctx context.Context, w workload.Workload) ([]scaler.Instance, error) {
	if err := p.arrive(ctx, "call start", w.Name); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	p.open(w.Name, "start")
	defer p.close(w.Name)
	var insts []scaler.Instance
	var failed error
	for _, b := range p.boxes[w.Name] {
		r, err := p.bringUp(ctx, b)
		if err != nil {
			failed = err
			continue
		}
		insts = append(insts, scaler.Instance{Workload: w.Name, Replica: r.Replica})
	}
	p.w.mu.Unlock()
	if err := p.leave(ctx, "call start", w.Name); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return insts, failed
}

// bringUp returns once b runs, by a start that nobody had asked to end when
// it was called. world.mu is held before and after.
func (p *platform) bringUp(ctx context.Context, b *box) (*replica, error) {
	for ctx.Err() == nil {
		switch b.phase {
		case up:
			return b.replica, nil
		case down:
			p.w.rules.starts(p.node, b)
			if err := p.begin(b, p.node); err != nil {
				return nil, err
			}
		}
		begins := b.phase == starting
		if err := p.wait(ctx, b); err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		if begins && b.phase == down {
			return nil, &scaler.StartError{Reason: workload.Reason{Code: workload.ReasonExited, ExitCode: 1}}
		}
	}
	return nil, fmt.Errorf("start: %w", context.Cause(ctx))
}

// Stop ends every container of w.
func (p *platform) Stop(ctx context.Context, w workload.Workload) error {
	if err := p.arrive(ctx, "call stop", w.Name); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	p.open(w.Name, "stop")
	defer p.close(w.Name)
	if p.w.storm && !p.ends(w.Name) && p.w.dice.chance(p.engine.about("stop fails", p.boxes[w.Name][0]), p.w.plan.stopFails) {
		p.w.mu.Unlock()
		p.w.did("stop failed")
		return errors.New("the engine could not stop it")
	}
	ask := &stopAsk{node: p.node}
	p.w.rules.stops(p, w.Name)
	for _, b := range p.boxes[w.Name] {
		if err := p.bringDown(ctx, b, ask); err != nil {
			p.w.mu.Unlock()
			return fmt.Errorf("stop: %w", err)
		}
	}
	p.w.mu.Unlock()
	return p.leave(ctx, "call stop", w.Name)
}

// bringDown ends what runs of b, or is about to, and nothing that is started
// after that. world.mu is held before and after.
func (p *platform) bringDown(ctx context.Context, b *box, ask *stopAsk) error {
	for serial := b.serial; b.phase != down && b.serial == serial; {
		if b.phase == up {
			p.end(b, p.node, ask)
		}
		if err := p.wait(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// List tells what ran at one moment of the call.
func (p *platform) List(ctx context.Context) ([]scaler.Instance, error) {
	if err := p.arrive(ctx, "call list", ""); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var insts []scaler.Instance
	for name, boxes := range p.boxes {
		for _, b := range boxes {
			if b.phase == up || b.phase == ending {
				insts = append(insts, scaler.Instance{Workload: name, Replica: b.replica.Replica})
			}
		}
	}
	p.w.mu.Unlock()
	slices.SortFunc(insts, func(a, b scaler.Instance) int { return cmp.Compare(a.ID, b.ID) })
	if err := p.leave(ctx, "call list", ""); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return insts, nil
}

// Watch hears what happens, late but in order.
func (p *platform) Watch(ctx context.Context, sink func(scaler.Event)) error {
	for {
		err := p.arrive(ctx, "call watch", "")
		if err == nil {
			break
		}
		if !p.w.rest(ctx, p.about("watch again", ""), 100*time.Millisecond) {
			return nil
		}
	}
	l := &listener{queue: make(chan told, 1024), name: p.name}
	p.listeners = append(p.listeners, l)
	l.put(p.w, scaler.Event{Kind: scaler.Resynced})
	p.w.mu.Unlock()
	defer p.forget(l)
	for {
		select {
		case t := <-l.queue:
			if !pause(ctx, time.Until(t.due)) {
				return nil
			}
			p.w.note(p.name, "hears that %s %s", t.event.ID, t.event.Kind)
			sink(t.event)
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *platform) forget(l *listener) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.listeners = slices.DeleteFunc(p.listeners, func(other *listener) bool { return other == l })
}

// Logs has nothing to say.
func (p *platform) Logs(context.Context, workload.Workload, int) ([]string, error) { return nil, nil }

// Update is of no concern: the engine tells of everything.
func (p *platform) Update([]workload.Workload) {}

// Probe connects to the replica's address, whoever has it now.
func (p *platform) Probe(ctx context.Context, w workload.Workload, r workload.Replica) error {
	if !pause(ctx, p.w.dice.between(p.about("probe", r.ID), time.Millisecond, 8*time.Millisecond)) {
		return context.Cause(ctx)
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.dead {
		return errEngineAway
	}
	if p.at(r.Address) == nil {
		return errRefused
	}
	return nil
}
