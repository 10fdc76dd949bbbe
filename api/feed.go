package api

import (
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// An Event is one entry in the history of a workload, in the form of the API.
type Event struct {
	// ID resumes a stream behind this event, as long as the process that gave
	// it lives and remembers it. What a webhook sends has its webhook-id.
	ID         string             `json:"id"`
	Workload   string             `json:"workload"`
	Kind       workload.EventKind `json:"kind"`
	At         time.Time          `json:"at"`
	Generation uint64             `json:"generation"`
	// Actor is the scaler or gateway that tells.
	Actor  string          `json:"actor,omitempty"`
	Reason workload.Reason `json:"reason,omitzero"`
	// FreedBytes is the memory in bytes that a workload took before it slept;
	// 0: not known.
	FreedBytes int64 `json:"freed_bytes,omitempty"`
	// Wake is the cold start as far as this event knows it.
	Wake *Wake `json:"wake,omitempty"`
}

// EventOf is an event in the form of the API, without an ID yet.
func EventOf(e workload.Event) Event {
	v := Event{Workload: e.Workload, Kind: e.Kind, At: e.At, Generation: e.Generation, Actor: e.Actor, Reason: e.Reason, FreedBytes: e.FreedBytes}
	if e.Wake != nil {
		w := newRecord(e).view()
		v.Wake = &w
	}
	return v
}

// An eventKey tells a repeated event, whatever its ID.
type eventKey struct {
	at              int64 // in nanoseconds since 1970
	kind            workload.EventKind
	workload, actor string
	generation      uint64
}

func (e *Event) key() eventKey {
	return eventKey{e.At.UnixNano(), e.Kind, e.Workload, e.Actor, e.Generation}
}

// A feed is the last events in the order they came, and a way to wait for
// more. Readers keep their own place, so that a slow one costs the others
// nothing.
type feed struct {
	limit int
	life  string // tells this feed's IDs from those of another process

	mu   sync.Mutex
	ring []Event               // the last ones, oldest first, at most twice limit; guarded by mu
	keys map[eventKey]struct{} // of those in ring; guarded by mu
	next int                   // number of the next event; that of ring[0] is next - len(ring); guarded by mu
	more chan struct{}         // closed and replaced when one is added; guarded by mu
}

func newFeed(limit int) *feed {
	return &feed{limit: limit, life: rand.Text()[:8], keys: map[eventKey]struct{}{}, more: make(chan struct{})}
}

// add appends e unless it is there already.
func (f *feed) add(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := e.key()
	if _, known := f.keys[key]; known {
		return
	}
	f.keys[key] = struct{}{}
	e.ID = f.life + "-" + strconv.Itoa(f.next)
	if len(f.ring) == 2*f.limit {
		// The readers may hold parts of the old array: leave it to them.
		for i := range f.ring[:f.limit] {
			delete(f.keys, f.ring[i].key())
		}
		f.ring = slices.Clone(f.ring[f.limit:])
	}
	f.ring = append(f.ring, e)
	f.next++
	close(f.more)
	f.more = make(chan struct{})
}

// start gives the number of the first event that q asks for.
func (f *feed) start(q EventQuery) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.number(q.After); ok {
		return n + 1
	}
	i, wanted := len(f.ring), q.Last
	for i > 0 && wanted > 0 {
		i--
		if q.Workload == "" || q.Workload == f.ring[i].Workload {
			wanted--
		}
	}
	return f.next - len(f.ring) + i
}

// number reads an ID of this feed that is not from its future.
func (f *feed) number(id string) (int, bool) {
	digits, ok := strings.CutPrefix(id, f.life+"-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && n < f.next
}

// from gives the events from number n on that are still kept, the number to
// go on with, and a channel that is closed once there are more.
func (f *feed) from(n int) (events []Event, next int, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = max(n, f.next-len(f.ring))
	return f.ring[n-(f.next-len(f.ring)):], f.next, f.more
}
