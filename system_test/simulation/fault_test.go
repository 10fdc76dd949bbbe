package simulation

import (
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A fault is something that goes wrong, or that a person does.
type fault struct {
	at, lasts time.Duration
	kind      faultKind
	target    int
}

type faultKind string

const (
	crashGateway faultKind = "gateway crashed"
	stopGateway  faultKind = "gateway restarted"
	cutGateway   faultKind = "gateway cut off"
	crashScaler  faultKind = "scaler crashed"
	stopScaler   faultKind = "scaler restarted"
	cutScaler    faultKind = "scaler cut off"
	busRestart   faultKind = "bus restarted"
	busLost      faultKind = "bus lost its store"
	engineGone   faultKind = "engine restarted"
	enginePurge  faultKind = "engine restarted, all ended"
	eventsCut    faultKind = "events of the engine cut"
	dies         faultKind = "replica died"
	startByHand  faultKind = "started by hand"
	stopByHand   faultKind = "stopped by hand"
	removed      faultKind = "workload removed"
	sleepAsked   faultKind = "asked to sleep"
	wakeAsked    faultKind = "asked to wake"
)

var faultKinds = []faultKind{
	crashGateway, stopGateway, cutGateway, crashScaler, crashScaler, stopScaler, cutScaler, busRestart, busLost,
	engineGone, enginePurge, eventsCut, dies, dies, startByHand, stopByHand, removed, sleepAsked, wakeAsked,
}

// strike makes a fault happen, and plans its end.
func (w *world) strike(f fault) {
	end := w.apply(f)
	if end == nil {
		return
	}
	w.did(string(f.kind))
	w.note("FAULT", "%s (%d) for %v", f.kind, f.target, f.lasts)
	w.tasks.Go(func() {
		time.Sleep(f.lasts)
		end()
		w.note("FAULT", "%s is over", f.kind)
	})
}

func over() {}

// apply gives what ends the fault; nil if it cannot happen now.
func (w *world) apply(f fault) (end func()) {
	switch f.kind {
	case crashGateway:
		return w.of(w.gateways, f).crash()
	case stopGateway:
		return w.of(w.gateways, f).stop()
	case cutGateway:
		return w.of(w.gateways, f).cutOff()
	case crashScaler:
		return w.of(w.scalers, f).crash()
	case stopScaler:
		return w.of(w.scalers, f).stop()
	case cutScaler:
		return w.of(w.scalers, f).cutOff()
	case busRestart, busLost:
		return w.restartBus(f.kind == busLost)
	case engineGone, enginePurge:
		return w.restartEngine(f.kind == enginePurge)
	case removed:
		return w.remove(f)
	case sleepAsked, wakeAsked:
		return w.person(f)
	}
	return w.hand(f)
}

func (w *world) of(places []*place, f fault) *place { return places[f.target%len(places)] }

func (w *world) restartBus(lost bool) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.bus.up {
		return nil
	}
	w.bus.stop()
	return func() { w.do(func() { w.bus.start(lost) }) }
}

// restartEngine lets no call through for a while, and tells of nothing that
// happens meanwhile.
func (w *world) restartEngine(purge bool) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.engine
	if e.away {
		return nil
	}
	e.away = true
	if purge {
		for _, s := range w.plan.specs {
			for _, b := range e.boxes[s.Name] {
				if b.replica != nil {
					e.die(b.replica, 137)
				}
			}
		}
	}
	return func() {
		w.do(func() {
			e.away = false
			e.cutEvents(0)
		})
	}
}

// remove takes a workload out of the catalog for a while.
func (w *world) remove(f fault) func() {
	name := w.plan.specs[f.target%len(w.plan.specs)].Name
	if !w.describe(name, false) {
		return nil
	}
	return func() { w.describe(name, true) }
}

// describe adds a workload to the catalog or takes it out, and tells.
func (w *world) describe(name string, there bool) (changed bool) {
	w.mu.Lock()
	var ws []workload.Workload
	known := names(w.bus.catalog)
	for _, s := range w.plan.specs {
		if s.Name == name && there || s.Name != name && known[s.Name] {
			ws = append(ws, s)
		}
	}
	if changed = len(ws) != len(w.bus.catalog); changed {
		w.bus.catalog, w.bus.changed = ws, time.Now()
		w.bus.version++
	}
	w.mu.Unlock()
	for _, p := range w.gateways {
		if g, ok := w.at(p).(*gateway); ok {
			w.do(func() { g.conn.deliver("catalog news", "", func() { poke(g.bell) }) })
		}
	}
	for _, p := range w.scalers {
		if n, ok := w.at(p).(*scalerNode); ok {
			a := about{"catalog", p.name, ""}
			w.later(w.delay(a), func() bool { return !n.conn.dead }, n.update)
		}
	}
	return changed
}

// person asks a node, any that runs, for a workload to wake or to sleep.
func (w *world) person(f fault) func() {
	name := w.plan.specs[f.target%len(w.plan.specs)].Name
	if f.kind == wakeAsked {
		g, ok := w.at(w.of(w.gateways, f)).(*gateway)
		if !ok {
			return nil
		}
		now := time.Now()
		ask := workload.Wake{ID: "by hand", Workload: name, Trigger: workload.TriggerAPI, RequestedAt: now}
		_ = g.conn.send("wake by hand", name, func() { w.bus.wakes.publish(ask) })
		return over
	}
	n, ok := w.at(w.of(w.scalers, f)).(*scalerNode)
	if !ok {
		return nil
	}
	n.sleep(name)
	return over
}

// hand does something to one container, or to the events of all.
func (w *world) hand(f fault) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.engine
	boxes := e.boxes[w.plan.specs[f.target%len(w.plan.specs)].Name]
	b := boxes[f.target/7%len(boxes)]
	switch {
	case f.kind == eventsCut:
		e.cutEvents(f.lasts)
	case f.kind == startByHand && b.phase == down:
		_ = e.begin(b, "hand")
	case f.kind == dies && b.phase == up:
		e.die(b.replica, 137)
	case f.kind == stopByHand && b.phase == up:
		e.end(b, "hand", nil)
	default:
		return nil
	}
	return over
}
