package simulation

import (
	"encoding/json"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A bus is what NATS is to the nodes: streams with news of what is written
// into them, a queue of wakes, and drains. It is guarded by world.mu.
type bus struct {
	w     *world
	up    bool
	boots int
	conns []*conn

	states   *stream // on disk
	activity *stream // in memory
	wakes    *wakes
	drained  []*gateway // who answers drains
	catalog  []workload.Workload
	version  int       // of the catalog
	changed  time.Time // when the catalog last was
}

func newBus(w *world) *bus {
	b := &bus{w: w, up: true, boots: 1}
	b.states, b.activity = newStream(w, "state"), newStream(w, "activity")
	b.wakes = newWakes(w)
	return b
}

// stop ends the server: every connection that is not cut is lost at once.
func (b *bus) stop() {
	b.up = false
	for _, c := range b.conns {
		if !c.cut {
			c.drop()
		}
	}
}

// start brings it back, with what was on its disk unless that is lost.
func (b *bus) start(lost bool) {
	b.up = true
	b.boots++
	b.activity.renew()
	if lost {
		b.states.renew()
		b.wakes.renew()
	}
	b.w.note("bus", "started, lost %v", lost)
	b.wakes.resume()
}

// A stream keeps the last record of each key and tells whoever follows it of
// each write. Its sequence has no gaps.
type stream struct {
	w       *world
	name    string
	created int // which stream of this name it is
	renewed time.Time
	last    uint64
	latest  map[string]record // key -> its last record
	feeds   []*feed
}

// A record is one write.
type record struct {
	seq  uint64
	key  string
	id   string // of the write, to tell it from another's
	body []byte
	at   time.Time

	state    workload.State    // what body says, in the stream of states
	activity workload.Activity // what body says, in that of the gateways
}

func newStream(w *world, name string) *stream {
	return &stream{w: w, name: name, created: 1, latest: map[string]record{}}
}

// renew makes the stream anew, empty.
func (s *stream) renew() {
	s.created++
	s.renewed = time.Now()
	s.last = 0
	clear(s.latest)
}

// write adds a record, which is read back from its text but once. Under
// world.mu.
func (s *stream) write(key, id string, value any) record {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	s.last++
	r := record{seq: s.last, key: key, id: id, body: body, at: time.Now()}
	r.decode()
	s.latest[key] = r
	for _, f := range s.feeds {
		copies := 1
		if s.w.dice.chance(about{s.name + " twice", f.conn.name, key}, s.w.plan.twice) {
			copies = 2
		}
		for range copies {
			f.conn.deliver(s.name+" news", key, func() { f.put(r) })
		}
	}
	return r
}

// decode reads the text of a record. What it gives is never changed.
func (r *record) decode() {
	into := any(&r.state)
	if r.id == "" {
		into = &r.activity
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		panic(err)
	}
}
