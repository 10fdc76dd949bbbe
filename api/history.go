package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// A History keeps the recent past of every workload in memory: the last cold
// starts, each put together from the events that tell of it, and the last
// events. It is fed by Add and implements Records. It is safe for concurrent
// use.
//
// Events may be added in any order and more than once; the records are the
// same. Memory is bounded by the two limits of NewHistory.
type History struct {
	feed *feed

	limit int

	mu      sync.Mutex
	records map[string]record // wake ID -> what is known; guarded by mu
	ready   map[string]int    // workload -> cold starts that made it ready, the forgotten ones too; guarded by mu
	days    map[string]*day   // workload -> its last day; guarded by mu
	// floor is when the youngest forgotten wake began: one that began no
	// later is not taken in again, or it would be counted again. Guarded by mu.
	floor time.Time
}

// NewHistory makes a History of the last wakes cold starts and the last events
// events; 0 means 500 and 2000.
func NewHistory(wakes, events int) *History {
	if wakes <= 0 {
		wakes = 500
	}
	if events <= 0 {
		events = 2000
	}
	return &History{
		feed:    newFeed(events),
		limit:   wakes,
		records: map[string]record{},
		ready:   map[string]int{},
		days:    map[string]*day{},
	}
}

// Add takes one event in. It does not block on anybody who follows.
func (h *History) Add(e workload.Event) {
	if e.Wake != nil && e.Wake.ID != "" {
		h.record(newRecord(e))
	}
	h.note(e)
	h.feed.add(EventOf(e))
}

func (h *History) record(r record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id := r.wake.ID
	if known, ok := h.records[id]; ok {
		next := known.add(r)
		h.count(known, -1)
		h.count(next, 1)
		h.records[id] = next
		return
	}
	if !r.began.After(h.floor) {
		return
	}
	h.count(r, 1)
	h.records[id] = r
	if len(h.records) > h.limit {
		h.forgetOldest()
	}
}

// count adds n to the cold starts of a record's workload if it made that
// ready. Under the lock.
func (h *History) count(r record, n int) {
	if r.result() == ResultReady {
		h.ready[r.wake.Workload] += n
	}
}

// forgetOldest goes through all records: cold starts are few.
func (h *History) forgetOldest() {
	var oldest record
	for _, r := range h.records {
		if oldest.wake.ID == "" || newer(oldest, r) < 0 {
			oldest = r
		}
	}
	delete(h.records, oldest.wake.ID)
	h.floor = oldest.began
}

// newer orders records for slices.SortFunc, the youngest first.
func newer(a, b record) int {
	if c := b.began.Compare(a.began); c != 0 {
		return c
	}
	return strings.Compare(b.wake.ID, a.wake.ID)
}

// Wakes lists the recent cold starts, newest first. The error is always nil.
func (h *History) Wakes(context.Context) ([]Wake, error) {
	h.mu.Lock()
	records := make([]record, 0, len(h.records))
	for _, r := range h.records {
		records = append(records, r)
	}
	h.mu.Unlock()
	slices.SortFunc(records, newer)
	wakes := make([]Wake, len(records))
	for i, r := range records {
		wakes[i] = r.view()
	}
	return wakes, nil
}

// WakeByID gives one cold start; ErrNoWake if it is not or no longer known.
func (h *History) WakeByID(_ context.Context, id string) (Wake, error) {
	h.mu.Lock()
	r, ok := h.records[id]
	h.mu.Unlock()
	if !ok {
		return Wake{}, fmt.Errorf("%w: %q", ErrNoWake, id)
	}
	return r.view(), nil
}

// ColdStarts counts the wakes that made the workload ready, of all that were
// ever added.
func (h *History) ColdStarts(workload string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ready[workload]
}

// LastWake gives the record of the workload's cold start that began last, and
// whether it is under way still; false too if none is known.
func (h *History) LastWake(name string) (wake workload.Wake, underWay bool) {
	var last record
	h.mu.Lock()
	for _, r := range h.records {
		if r.wake.Workload == name && (last.wake.ID == "" || newer(r, last) < 0) {
			last = r
		}
	}
	h.mu.Unlock()
	return last.wake, last.wake.ID != "" && last.result() == ResultWaking
}

// UsualWake is the median of how long the workload's known cold starts took
// from ask to ready; 0 if none is known.
func (h *History) UsualWake(name string) time.Duration {
	var took []time.Duration
	h.mu.Lock()
	for _, r := range h.records {
		w := &r.wake
		if w.Workload == name && r.result() == ResultReady && !w.RequestedAt.IsZero() && !w.ReadyAt.IsZero() {
			took = append(took, max(0, w.ReadyAt.Sub(w.RequestedAt)))
		}
	}
	h.mu.Unlock()
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// Events hands over the events that q asks for; see Records. A handle so slow
// that more events come meanwhile than the History keeps misses the oldest of
// them; nobody else waits for it.
func (h *History) Events(ctx context.Context, q EventQuery, handle func(Event) error) error {
	next := h.feed.start(q)
	for {
		events, after, more := h.feed.from(next)
		for _, e := range events {
			if q.Workload != "" && q.Workload != e.Workload {
				continue
			}
			if err := handle(e); err != nil {
				return err
			}
		}
		if next = after; !q.Follow {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
