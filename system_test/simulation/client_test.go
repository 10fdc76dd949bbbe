package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

var (
	errRefused = errors.New("connection refused")
	errBroken  = errors.New("the replica ended in the middle of the answer")
	errLeft    = errors.New("the client left")
	errNobody  = errors.New("no gateway is there")
	errNoRoute = errors.New("no such workload here")
	holdLeeway = 5 * time.Millisecond
)

// reasons are the ends that a request may have which was not answered.
var reasons = []error{
	errBroken, errLeft, errNobody, errNoRoute, errDied, errCutOff,
	activator.ErrQueueFull, activator.ErrHoldTimeout, activator.ErrCanceled, activator.ErrShutdown,
	activator.ErrAsleep, activator.ErrRemoved, activator.ErrWakeLimited,
}

// A request is one that a client sends, and what became of it.
type request struct {
	arrival
	id       string
	gateway  *gateway
	target   workload.Replica // of the lease, while there is one
	executed int              // guarded by world.mu
	held     time.Duration
}

// send sends a request to the first gateway that is there, and waits for its
// end, of which there is one.
func (w *world) send(a arrival, id string) error {
	q := &request{arrival: a, id: id}
	w.did("request")
	err := errNobody
	if q.gateway = w.door(a.gateway); q.gateway != nil {
		defer q.gateway.running.Done()
		err = q.run()
	}
	w.ended(q, err)
	return err
}

// door finds a gateway that listens, as a client does that tries one address
// after the other.
func (w *world) door(first int) *gateway {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.gateways {
		g, _ := w.gateways[(first+i)%len(w.gateways)].node.(*gateway)
		if g != nil && g.serving {
			g.running.Add(1)
			return g
		}
	}
	return nil
}

func (q *request) run() error {
	ctx, cancel := context.WithCancelCause(q.gateway.requests)
	defer cancel(nil)
	if q.patience > 0 {
		defer time.AfterFunc(q.patience, func() { cancel(errLeft) }).Stop()
	}
	gate := q.gateway.act.Gate(q.workload)
	if gate == nil {
		return errNoRoute
	}
	err := q.exchange(ctx, gate)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

// exchange gets a lease and sends the request to its replica; one that
// refuses the connection has seen nothing of it, so that it goes back to the
// gate until its time is over. It is what router/forward.go does.
func (q *request) exchange(ctx context.Context, gate *activator.Gate) error {
	w, refused, begun := q.gateway.w, "", time.Now()
	for {
		hold := q.hold - time.Since(begun)
		lease, err := q.acquire(ctx, gate, activator.Ask{
			Hold: hold, NoHold: hold <= 0, NoWake: q.noWake, Refused: refused, Bytes: 16 << 10,
		})
		if err != nil {
			return err
		}
		replica := lease.Replica()
		err = w.engine.answer(ctx, q, replica, lease.Answered)
		w.do(func() {
			q.target = workload.Replica{}
			delete(w.leased, q)
			q.gateway.traffic(q.workload).leased--
		})
		lease.Release()
		switch {
		case errors.Is(err, errBroken) && w.mutant.secondTry:
		case !errors.Is(err, errRefused):
			return err
		}
		w.did("refused connection")
		refused = replica.ID
	}
}

// acquire notes what is true of the request while it waits and after.
func (q *request) acquire(ctx context.Context, gate *activator.Gate, ask activator.Ask) (activator.Lease, error) {
	w, begun := q.gateway.w, time.Now()
	w.do(func() { q.gateway.traffic(q.workload).waiting++ })
	lease, err := gate.Acquire(ctx, ask)
	q.held += time.Since(begun)
	w.do(func() {
		q.gateway.traffic(q.workload).waiting--
		if err == nil {
			q.target = lease.Replica()
			w.leased[q] = struct{}{}
			q.gateway.traffic(q.workload).leased++
		}
	})
	return lease, err
}

// traffic is what is true of a workload here. Under world.mu.
func (g *gateway) traffic(name string) *traffic {
	if g.truth[name] == nil {
		g.truth[name] = &traffic{}
	}
	return g.truth[name]
}

// ended checks how a request ended.
func (w *world) ended(q *request, err error) {
	var failed *activator.FailedError
	known := err == nil || errors.As(err, &failed)
	for _, reason := range reasons {
		known = known || errors.Is(err, reason)
	}
	if !known {
		w.rules.broke("%s ended with %v, which is no reason", q.id, err)
	}
	if q.held > q.hold+holdLeeway {
		w.rules.broke("%s was held %v, and may be held %v", q.id, q.held, q.hold)
	}
	w.mu.Lock()
	executed := q.executed
	w.mu.Unlock()
	if err == nil && executed != 1 {
		w.rules.broke("%s was answered and executed %d times", q.id, executed)
	}
	switch {
	case err == nil:
		w.did("answered")
	case errors.Is(err, errLeft):
		w.did("client left")
	case errors.Is(err, errBroken):
		w.did("broken")
	default:
		w.did("refused with a reason")
	}
	w.note("client", "%s to %s ends after %v held: %v", q.id, q.workload, q.held, err)
}

// answer is a request at a replica: connect, then its service.
func (e *engine) answer(ctx context.Context, q *request, target workload.Replica, answered func()) error {
	w := e.w
	if !pause(ctx, w.dice.between(about{"dial", q.id, ""}, 50*time.Microsecond, time.Millisecond)) {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	r := e.at(target.Address)
	if r == nil {
		w.mu.Unlock()
		w.note(q.gateway.name, "%s refused by %s", q.id, target.ID)
		return errRefused
	}
	w.rules.accepted(q, target, r)
	r.serving[q] = struct{}{}
	w.mu.Unlock()
	w.note(q.gateway.name, "%s runs on %s", q.id, r.ID)
	defer w.do(func() { delete(r.serving, q) })
	if err := r.serve(ctx, q.head); err != nil {
		return err
	}
	answered()
	return r.serve(ctx, q.service-q.head)
}

func (r *replica) serve(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.ended:
		return errBroken
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
