package scaler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// drainTimeout bounds the wait for the gateways: each answers at once.
	drainTimeout = time.Second
	// drainAgain is the pause before they are asked again, where a Sleep
	// waits for the last requests.
	drainAgain = 100 * time.Millisecond
	// drainGrace bounds that wait: the gates are closed meanwhile, and one
	// stream would keep every other request out.
	drainGrace = 5 * time.Second
	// stopGrace is what a stop may take beyond StopTimeout.
	stopGrace = 20 * time.Second
)

// A draining is one sleep that this life carries out.
type draining struct {
	from     workload.State // where it goes back to if it is called off
	since    time.Time
	explicit bool      // somebody asked for it, or a rival has waited for long
	wayFor   string    // the rival that waits; empty: none does
	askAgain time.Time // not before this
	answered bool      // the gateways were asked
	said     protocol.Sum
	busy     string // what is in flight, and where
	recorded bool   // the state says that the stop begins
	stopped  bool
}

// beginSleep moves to Draining, which closes the gates.
func (l *life) beginSleep(ctx context.Context, explicit bool) {
	d := &draining{from: l.st, since: time.Now(), explicit: explicit}
	d.wayFor, _ = l.s.rival(l.name)
	if l.write(ctx, protocol.BeginSleep, nil) {
		l.drain = d
	}
}

// reopen goes back to where the drain began; the gates open again.
func (l *life) reopen(ctx context.Context) {
	if l.write(ctx, protocol.Reopen, nil) {
		l.drain = nil
		l.floor = time.Now()
	}
}

// askGateways closes the gates and learns what is still under way.
func (l *life) askGateways(ctx context.Context, d *draining) {
	alive := l.s.deps.Board.Alive(time.Now())
	revision := l.st.Revision
	l.do(ctx, protocol.TaskDrain, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeout(ctx, drainTimeout)
		defer cancel()
		got, err := l.s.deps.Drainer.Drain(ctx, l.name, revision, alive)
		return func() {
			if err != nil {
				l.log.Warn("gates not closed everywhere", "error", err)
			}
			d.answered, d.said, d.busy = true, protocol.SumUp(got, alive), busyAt(got)
		}
	})
}

// whyBusy is why it cannot be stopped yet; nil if the gateways did not say so.
func (d *draining) whyBusy() error {
	switch {
	case d.said.InFlight:
		return fmt.Errorf("%w: %s", ErrInUse, d.busy)
	case d.said.Silent:
		return ErrUnsure
	}
	return nil
}

// busyAt lists the gateways that are not done.
func busyAt(answers []workload.Drained) string {
	var at []string
	for _, a := range answers {
		switch {
		case a.InFlight > 0:
			at = append(at, fmt.Sprintf("%d in flight at %s", a.InFlight, a.Gateway))
		case a.Queued > 0 || a.Open:
			at = append(at, "new requests at "+a.Gateway)
		}
	}
	return strings.Join(at, ", ")
}

// recordStop writes down that the stop begins: from here on no replica is to
// be served. It is also the proof that the lease is still held. A wake that
// has come by the time it is written still prevails.
func (l *life) recordStop(ctx context.Context, d *draining) {
	d.recorded = l.write(ctx, protocol.RecordStop, nil)
	d.answered = d.recorded // else the answers are old by the time it can be written
}

// resumeStop carries out a stop that was written down: it may be under way on
// the platform, and what still answers be gone in a moment. No gate has opened
// since, so that to stop it is safe and to serve it is not.
func (l *life) resumeStop(ctx context.Context) {
	if l.st.Phase == workload.Failed {
		l.stopGivenUp(ctx)
		return
	}
	l.drain = &draining{from: l.st, since: time.Now(), recorded: true}
	l.beginStop(ctx, l.drain)
}

func (l *life) beginStop(ctx context.Context, d *draining) {
	l.stop(ctx, l.spec, func(err error) {
		if d.stopped = err == nil; err != nil && l.drain == d {
			l.drain = nil // what runs will tell what has to follow
		}
	})
}

// stop ends what runs, in the way that spec says, beside the life.
func (l *life) stop(ctx context.Context, spec workload.Workload, then func(error)) {
	l.do(ctx, protocol.TaskStop, func(ctx context.Context) func() {
		ctx, cancel := context.WithTimeout(ctx, spec.StopTimeout+stopGrace)
		defer cancel()
		freed := l.watch.weigh(ctx, spec)
		err := l.watch.stop(ctx, spec)
		return func() {
			l.freed = freed
			l.unstoppable = err != nil
			if err != nil {
				l.log.Error("stop failed", "error", err)
				l.listed = false
				l.wantList()
			} else {
				l.dropAll()
			}
			then(err)
		}
	})
}
