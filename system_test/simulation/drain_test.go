package simulation

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	drainGrace = 100 * time.Millisecond
	drainAgain = 250 * time.Millisecond
)

var errNoAnswer = errors.New("a gateway did not answer")

// A drainer asks the gateways, as events/drain.go does.
type drainer struct{ conn *conn }

// Drain asks every gateway until all of those named have answered.
func (d drainer) Drain(ctx context.Context, name string, revision uint64, gateways []string) ([]workload.Drained, error) {
	w := d.conn.w
	r := &drainRound{
		drainer: d, name: name, revision: revision,
		heard: make(chan workload.Drained, 256), answers: map[string]workload.Drained{}, missing: map[string]bool{},
	}
	for _, g := range gateways {
		r.missing[g] = true
	}
	if w.mutant.forgetfulDrain && len(gateways) > 0 {
		g := gateways[w.dice.pick(about{"forgotten", d.conn.name, name}, len(gateways))]
		delete(r.missing, g)
		r.forgotten, r.answers[g] = g, workload.Drained{Gateway: g}
	}
	err := r.run(ctx)
	got := slices.SortedFunc(maps.Values(r.answers), func(a, b workload.Drained) int { return strings.Compare(a.Gateway, b.Gateway) })
	w.note(d.conn.name, "drain %s revision %d of %v: %v %v", name, revision, gateways, got, err)
	return got, err
}

type drainRound struct {
	drainer
	name      string
	revision  uint64
	heard     chan workload.Drained
	answers   map[string]workload.Drained
	missing   map[string]bool
	forgotten string // of a mutant
}

func (r *drainRound) run(ctx context.Context) error {
	again := time.NewTicker(r.conn.w.dice.between(about{"drain again", r.conn.name, r.name}, drainAgain, drainAgain+time.Millisecond))
	defer again.Stop()
	err := r.ask()
	var grace <-chan time.Time
	for err == nil {
		if len(r.missing) == 0 && grace == nil {
			grace = time.After(drainGrace)
		}
		select {
		case a := <-r.heard:
			r.answers[a.Gateway] = a
			delete(r.missing, a.Gateway)
		case <-grace:
			return nil
		case <-again.C:
			if len(r.missing) > 0 {
				err = r.ask()
			}
		case <-ctx.Done():
			err = errNoAnswer
		}
	}
	return err
}

// ask sends the question once; each of its ways may lose it.
func (r *drainRound) ask() error {
	w, asker := r.conn.w, r.conn
	return asker.send("drain", r.name, func() {
		for _, g := range w.bus.drained {
			if g.name == r.forgotten {
				continue
			}
			g.conn.deliver("drain "+asker.name, r.name, func() {
				a := g.drain(r.name, r.revision)
				_ = g.conn.send("drained "+asker.name, r.name, func() {
					asker.deliver("drained by "+g.conn.name, r.name, func() {
						select {
						case r.heard <- a:
						default:
						}
					})
				})
			})
		}
	})
}
