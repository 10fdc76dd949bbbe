package router

import (
	"net/http"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// defaultHold bounds a hold whose workload names no bound.
const defaultHold = 50 * time.Second

// acquire gets the lease, and blocks for it as long as the request may be
// held, all tries together. refused is the replica that has just refused the request, if any.
func (x *exchange) acquire(refused string) error {
	gate := x.router.activator.Gate(x.route.workload.Name)
	if gate == nil {
		return activator.ErrRemoved
	}
	hold := x.holdFor() - time.Since(x.trace.Arrived)
	ask := activator.Ask{
		Hold:        hold,
		NoHold:      hold <= 0,
		Bytes:       heldBytes(x.req),
		NoWake:      x.quiet || x.barred,
		Traceparent: x.traceparent,
		Refused:     refused,
		Prefer:      x.prefers(),
	}
	if lease, ok := gate.Pass(ask); ok {
		x.take(lease)
		return nil
	}
	return x.wait(gate, ask)
}

// wait is for a request that did not pass at once.
func (x *exchange) wait(gate *activator.Gate, ask activator.Ask) error {
	x.keep()
	ask.Traceparent = x.traceparent
	ctx, stop := x.router.leavers.watch(x.req, x.plain != nil)
	defer stop()
	began := time.Now()
	lease, err := gate.Acquire(ctx, ask)
	if err != nil {
		x.recordHold(began, nil, err)
		return err
	}
	x.take(lease)
	if !lease.Cold() {
		return nil
	}
	x.turn, err = x.router.turns.take(ctx, x.holdFor()-time.Since(x.trace.Arrived))
	x.recordHold(began, lease.Wake(), err)
	return err
}

// take notes what the lease tells of the hold.
func (x *exchange) take(lease activator.Lease) {
	x.lease = lease
	x.replica = lease.Replica().ID
	if !lease.Cold() {
		return
	}
	x.cold = true
	x.trace.Held += lease.Held()
	if wake := lease.Wake(); wake != nil {
		x.wake = wake
	}
	x.trace.Waiting = waitingOf(x.wake, x.trace.Arrived, x.trace.Held)
}

// holdFor is how long the request may be held, counted from its arrival.
func (x *exchange) holdFor() time.Duration {
	w := x.route.workload
	hold := w.HoldTimeout
	if hold <= 0 {
		hold = defaultHold
	}
	switch {
	case x.kind == kindNavigation && w.Wait == workload.WaitPage:
		return 0
	case x.kind == kindNavigation && w.Wait != workload.WaitHold:
		return min(hold, w.PageAfter)
	}
	return hold
}

// Memory of a held request, in bytes, as the queue's bound counts it.
const (
	heldHead   = 16 << 10 // goroutine, connection buffers, head
	heldStream = 64 << 10 // what an HTTP/2 client may send ahead of being read
)

// heldBytes is what holding a request costs. A body over HTTP/1.1 stays in
// the socket; over HTTP/2 it is taken in up to the stream's window.
func heldBytes(r *http.Request) int64 {
	if r.ProtoMajor == 2 && r.ContentLength != 0 {
		return heldHead + heldStream
	}
	return heldHead
}
