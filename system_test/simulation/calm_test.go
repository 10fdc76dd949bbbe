package simulation

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// settling is how long after the last fault it may have effects: leases
	// run out, connections are made again, what was lost is missed.
	settling = 8 * time.Second
	// lastTries bounds how often a start may have failed in the storm and be
	// due only later.
	lastTries = 3
)

// calm checks, now that nothing goes wrong any more but for single messages,
// that whoever asks is answered, and that all comes to rest.
func (w *world) calm(clients *sync.WaitGroup) {
	clients.Wait()
	time.Sleep(settling)
	var last sync.WaitGroup
	for i := range w.gateways {
		for _, s := range w.plan.specs {
			time.Sleep(w.dice.between(about{"last", s.Name, ""}, 0, 100*time.Millisecond))
			last.Go(func() {
				w.mustAnswer(arrival{gateway: i, workload: s.Name, service: time.Millisecond, hold: 20 * time.Second}, fmt.Sprintf("last-%s-%d", s.Name, i))
			})
		}
	}
	last.Wait()
	w.mustSleep()
}

// mustAnswer sends a request that has to be answered. Where the last start
// has failed, it waits until the next is due.
func (w *world) mustAnswer(a arrival, id string) {
	for try := range lastTries {
		err := w.send(a, fmt.Sprintf("%s-%d", id, try))
		var failed *activator.FailedError
		switch {
		case err == nil:
			return
		case errors.Is(err, errNoRoute) && try < lastTries-1: // the news of it was lost
			time.Sleep(checkEvery + time.Second)
			continue
		case !errors.As(err, &failed) || try == lastTries-1:
			w.rules.broke("%s to %s is not answered in calm: %v", id, a.workload, err)
			return
		}
		time.Sleep(max(0, time.Until(failed.State.RetryAt)) + time.Millisecond)
	}
}

// mustSleep checks that everything falls asleep in time, and stays so.
func (w *world) mustSleep() {
	var idle time.Duration
	for _, s := range w.plan.specs {
		idle = max(idle, s.IdleTimeout+2*w.plan.stop)
	}
	limit := time.Now().Add(2*idle + w.plan.lostGateway + 15*time.Second)
	for w.awake() != nil && time.Now().Before(limit) {
		time.Sleep(time.Second)
	}
	if err := w.awake(); err != nil {
		w.rules.broke("nothing is asked for, and yet: %v", err)
		return
	}
	time.Sleep(3 * time.Second)
	if err := w.awake(); err != nil {
		w.rules.broke("it slept, and does not any more: %v", err)
	}
}

// awake says, as an error, what is not at rest.
func (w *world) awake() error {
	for name, phase := range w.phases() {
		if phase != workload.Asleep && phase != workload.Failed {
			return fmt.Errorf("%s is %s", name, phase)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.engine.running()) > 0:
		return fmt.Errorf("%v run", w.engine.running())
	case len(w.bus.wakes.queued) > 0:
		return fmt.Errorf("%d wakes are left", len(w.bus.wakes.queued))
	case len(w.leased) > 0:
		return fmt.Errorf("%d requests are in flight", len(w.leased))
	}
	return nil
}

// end stops every node; the bubble sees what does not end.
func (w *world) end() {
	w.compare()
	for _, p := range append(append([]*place(nil), w.gateways...), w.scalers...) {
		if n := p.take(); n != nil {
			w.tasks.Go(n.stop)
		} else {
			w.rules.broke("nobody is at %s", p.name)
		}
	}
	w.tasks.Wait()
}
