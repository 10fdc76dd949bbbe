package docker

import (
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/scaler"
)

// The methods here are told what the engine showed, and find the news in it.

// listed takes in the engine's list and returns the IDs to look at: those of
// interest where it contradicts the view, and all that run where the view
// may have missed a whole run (thorough). What is in the view and not in the
// list may have been created since, so that it takes a look as well.
func (v *view) listed(seen []sighting, thorough bool) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var look []string
	there := map[string]bool{}
	for _, s := range seen {
		there[s.ID] = true
		e := v.meet(s)
		if e != nil && v.wanted(e) && (thorough && s.state == stateRunning || e.contradicts(s)) {
			look = append(look, e.ID)
		}
	}
	for id := range v.entries {
		if !there[id] {
			look = append(look, id)
		}
	}
	return look
}

// contradicts reports that the list and the view do not agree.
func (e *entry) contradicts(s sighting) bool {
	state := e.state
	if state == stateThrottled {
		state = stateRunning
	}
	if !e.looked || state != s.state {
		return true
	}
	return e.serving() && !e.hostNet && len(e.networks) > 0 && !maps.Equal(e.networks, s.networks)
}

// meet finds or makes the entry of a sighting. What compose made for one
// command has none.
func (v *view) meet(s sighting) *entry {
	if s.oneOff {
		return nil
	}
	e := v.entries[s.ID]
	if e == nil {
		e = &entry{record: record{sighting: s}, op: make(chan struct{}, 1)}
		e.state = "" // not known before a look
		v.entries[s.ID] = e
		signal(v.changed)
		return e
	}
	v.rename(e, s.Name)
	return e
}

func (v *view) rename(e *entry, name string) {
	if name == "" || e.Name == name {
		return
	}
	e.Name = name
	v.bump(e)
	signal(v.changed)
	if !e.looked && v.wanted(e) {
		v.soil(e)
	}
}

// version is what apply needs to know whether a look is out of date.
func (v *view) version(id string) uint64 {
	e, _ := v.get(id)
	return e.version
}

// apply takes in a look that began at the given version. It returns false,
// and does nothing, where the entry has changed since.
func (v *view) apply(rec record, version uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.entries[rec.ID]
	switch {
	case e == nil:
		return true // destroyed since
	case e.version != version:
		return false
	}
	v.replace(e, rec)
	return true
}

// replace puts the record of a look in the place of what was known, and
// tells the difference.
func (v *view) replace(e *entry, rec record) {
	before := e.record
	anotherRun := !rec.startedAt.Equal(before.startedAt)
	if !e.looked || !slices.Equal(before.Ports, rec.Ports) || before.HealthCheck != rec.HealthCheck || before.CPULimited != rec.CPULimited || before.Name != rec.Name {
		signal(v.changed)
	}
	e.record = rec
	e.writesFrom = outputBegins(e, before, anotherRun)
	v.tellPending(e, rec.oom && !anotherRun)
	if anotherRun || rec.ended() {
		e.outOfMemory = false
	}
	if rec.ended() || e.ending.Before(rec.startedAt) {
		e.ending = time.Time{}
	}
	v.tellDifference(e, before, anotherRun)
	e.looked, e.known = true, true
	v.bump(e)
}

// overlap is how long before the engine's time of a start its output may
// begin.
const overlap = time.Second

// outputBegins finds a moment between the output of the run that e now shows
// and that of the run before.
func outputBegins(e *entry, before record, anotherRun bool) time.Time {
	switch {
	case e.serving() || e.frozen():
		return between(e.finishedAt, e.startedAt)
	case e.looked && !anotherRun:
		return e.writesFrom
	case e.looked:
		return between(before.finishedAt, e.startedAt)
	}
	return e.startedAt.Add(-overlap)
}

// between lies in the middle of the end of a run and the start of the next, or
// nearer to the start: the engine dates a line when it reads it, which may be
// after the end, as its time of the start may be after the first line. Zero
// where there was no run before.
func between(end, start time.Time) time.Time {
	if end.IsZero() {
		return end
	}
	return start.Add(-min(max(start.Sub(end)/2, 0), overlap))
}

func (v *view) tellDifference(e *entry, before record, anotherRun bool) {
	did, does := before.serving(), e.serving()
	if did && (!does || anotherRun) {
		v.tellEnd(e, before.replicaID(), time.Now(), anotherRun)
	}
	if !did && !does && e.known && anotherRun && e.ended() {
		v.tellEnd(e, e.replicaID(), time.Now(), false) // a whole run, missed
	}
	begins := does && (!did || anotherRun)
	if begins {
		v.tellOf(e, scaler.Event{Kind: scaler.Started, ID: e.replicaID(), At: e.startedAt})
	}
	if does && (begins || e.health != before.health) {
		v.tellHealth(e, time.Now())
	}
}

// tellEnd tells that the run is over. What its exit code was is known only
// if no other run has begun since.
func (v *view) tellEnd(e *entry, id string, at time.Time, lost bool) {
	ev := scaler.Event{Kind: scaler.Died, ID: id, At: at}
	if !lost && e.ended() {
		ev.ExitCode, ev.OOM = e.exitCode, e.oom
	}
	v.tellOf(e, ev)
}

func (v *view) tellHealth(e *entry, at time.Time) {
	switch e.health {
	case scaler.HealthHealthy:
		v.tellOf(e, scaler.Event{Kind: scaler.Healthy, ID: e.replicaID(), At: at})
	case scaler.HealthUnhealthy:
		v.tellOf(e, scaler.Event{Kind: scaler.Unhealthy, ID: e.replicaID(), At: at})
	}
}

// tellPending tells an end that waited for a look at its cause.
func (v *view) tellPending(e *entry, oom bool) {
	if e.pending == nil {
		return
	}
	ev := *e.pending
	e.pending = nil
	ev.OOM = oom
	v.tellOf(e, ev)
}

// tellOf tells ev of every workload that selects the container.
func (v *view) tellOf(e *entry, ev scaler.Event) {
	for _, w := range v.selecting(e) {
		ev.Workload = w.Name
		v.tell(ev)
	}
}

func (v *view) tell(ev scaler.Event) {
	if !v.telling {
		return
	}
	v.news = append(v.news, ev)
	signal(v.toTell)
}

// takeNews returns the news since the last call, oldest first.
func (v *view) takeNews() []scaler.Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	news := v.news
	v.news = nil
	return news
}

// resynced tells that the view has been checked against the engine while
// events arrive.
func (v *view) resynced() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.telling = true
	v.tell(scaler.Event{Kind: scaler.Resynced, At: time.Now()})
}

// silence drops the news that nobody will take any more.
func (v *view) silence() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.telling = false
	v.news = nil
}

// remove forgets a container that is gone.
func (v *view) remove(id string, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e := v.entries[id]; e != nil {
		v.destroyed(e, at)
	}
}

func (v *view) destroyed(e *entry, at time.Time) {
	v.tellPending(e, false)
	if e.serving() {
		v.tellEnd(e, e.replicaID(), at, true)
	}
	v.tellOf(e, scaler.Event{Kind: scaler.Removed, ID: e.replicaID(), At: at})
	v.bump(e)
	delete(v.entries, e.ID)
	delete(v.dirty, e.ID)
	signal(v.changed)
}
