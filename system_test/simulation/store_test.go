package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// confirmLimit bounds a write with its reading back.
const confirmLimit = 3 * time.Second

var errPending = errors.New("not stored yet")

// A store is a node's way to the states: compare and set, over a link on
// which questions and answers get lost. It is what events/states.go is.
type store struct {
	conn *conn
	node string // with its incarnation
}

func decodeState(r record) workload.State {
	s := r.state
	s.Workload, s.Revision = r.key, r.seq
	return s
}

// State reads what a workload does.
func (s store) State(ctx context.Context, name string) (workload.State, error) {
	r, err := retry(ctx, s.conn, about{"get", s.conn.name, name}, func() (record, error) {
		r := s.conn.w.bus.states.latest[name]
		r.key = name
		return r, nil
	})
	if err != nil {
		return workload.State{}, fmt.Errorf("read state of %s: %w", name, err)
	}
	st := decodeState(r)
	if s.conn.w.mutant.leaseless && st.Owner != s.node {
		st.LeaseUntil = time.Time{} // handed over
	}
	return st, nil
}

// Current is State: what the simulation stores, everybody can read.
func (s store) Current(ctx context.Context, name string) (workload.State, error) {
	return s.State(ctx, name)
}

// PutState writes by compare and set. What became of a write whose answer is
// lost is read back; now and then that does not succeed either.
func (s store) PutState(ctx context.Context, st workload.State) (workload.State, error) {
	d, a := s.conn.w.dice, about{"put", s.conn.name, st.Workload}
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	p := &put{store: s, state: st, about: a, id: s.node + "/" + strconv.FormatUint(d.roll(about{"put id", s.conn.name, st.Workload}), 36)}
	r, err := p.run(ctx)
	if err == nil && d.chance(about{"unconfirmed", s.conn.name, st.Workload}, s.conn.w.plan.unconfirmed) {
		s.conn.w.did("write unconfirmed")
		err = errTimeout
	}
	if err != nil {
		return workload.State{}, fmt.Errorf("write state of %s: %w", st.Workload, err)
	}
	return decodeState(r), nil
}

// A put is one write, brought to a certain end where that is possible.
type put struct {
	store
	state  workload.State
	about  about
	id     string
	unsure bool
}

func (p *put) run(ctx context.Context) (record, error) {
	for {
		r, err := p.try(ctx)
		if err == nil || errors.Is(err, scaler.ErrConflict) {
			return r, err
		}
		if !p.conn.w.rest(ctx, about{"put pause", p.conn.name, p.state.Workload}, retryPause) {
			return r, err
		}
	}
}

func (p *put) try(ctx context.Context) (record, error) {
	r, err := call(ctx, p.conn, p.about, p.serve)
	switch {
	case err == nil, errors.Is(err, errDisconnected):
		return r, err
	case errors.Is(err, scaler.ErrConflict) && !p.unsure:
		return r, err
	}
	p.unsure = true
	return call(ctx, p.conn, about{"read back", p.conn.name, p.state.Workload}, p.readBack)
}

// serve is the write as the bus sees it.
func (p *put) serve() (record, error) {
	w := p.conn.w
	before := w.bus.states.latest[p.state.Workload]
	if before.seq != p.state.Revision && !w.mutant.anyRevision {
		return record{}, scaler.ErrConflict
	}
	before.key = p.state.Workload
	r := w.bus.states.write(p.state.Workload, p.id, p.state)
	w.rules.written(p.node, decodeState(before), decodeState(r))
	return r, nil
}

func (p *put) readBack() (record, error) {
	r := p.conn.w.bus.states.latest[p.state.Workload]
	switch {
	case r.id == p.id:
		return r, nil
	case r.seq != p.state.Revision:
		return record{}, scaler.ErrConflict
	}
	return record{}, errPending
}
