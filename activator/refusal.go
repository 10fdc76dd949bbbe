package activator

import "time"

const (
	// firstPause is how long replicas that all refused are left alone before
	// the next try; it doubles with each refusal in a row.
	firstPause = 50 * time.Millisecond
	// maxPause is where it ends, and how long a replica that refused is
	// passed over while there are others.
	maxPause = time.Second
)

// A refusal keeps a gate closed because every replica refused a connection.
// What was there may have ended, and its address may belong to another by
// now: so nothing is tried again before the scaler has been told and the
// store asked. If then nothing newer is known, it is there and will answer
// again, or the store cannot be asked and must not take a workload down.
type refusal struct {
	until time.Time // before that nothing is tried
	asked bool      // an ask that began after the refusal has returned
}

func (r *refusal) over(now time.Time) bool { return r.asked && !now.Before(r.until) }

// refuse takes in that a replica refused a connection. With the last one to
// do so the gate closes. Under the lock.
func (g *Gate) refuse(id string, now time.Time) {
	t := g.find(id)
	if t == nil || !g.passing {
		return // it is gone already, or known
	}
	c := g.activator.clock
	pause := firstPause << min(t.refusals.Load(), 5)
	if !t.suspected(c) { // many requests refused at once are one refusal
		t.refusals.Add(1)
		t.suspect.Store(c.at(now.Add(maxPause)))
	}
	for i := range g.targets {
		if !g.targets[i].suspected(c) {
			return
		}
	}
	g.rules.Refuse()
	g.refusal = &refusal{until: now.Add(min(pause, maxPause))}
}

// unsuspect gives every replica another chance; how often it refused in a row
// is not forgotten. Under the lock.
func (g *Gate) unsuspect() {
	for i := range g.targets {
		g.targets[i].suspect.Store(0)
	}
}
