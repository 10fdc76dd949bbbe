package activator

import "time"

// minCharge is what the smallest held request is charged against the bound on
// bytes: its goroutine and its connection's buffers cost more than its head,
// so a flood of tiny requests is bounded in bytes as well.
const minCharge = 4 << 10

// A waiter is one held request. Everything but done is guarded by the gate's
// lock until done is closed, and never changes after that.
type waiter struct {
	prev, next *waiter
	done       chan struct{} // closed at its end

	charge int64
	queued time.Time
	epoch  uint64 // openings of the gate before it came
	noWake bool
	keep   time.Duration // of Await; 0 for what gets a lease
	prefer string
	ended  bool

	// Its end: a target, or an error.
	target   *target
	opening  *opening
	released time.Time
	err      error
}

// quiet is Ask.quiet.
func (w *waiter) quiet() bool { return w.noWake || w.keep > 0 }

// A queue is the held requests of one gate, first come first served. It has
// no lock of its own: it is the gate's.
type queue struct {
	first, last *waiter
	requests    int
	counted     int // those that may wake
	bytes       int64
}

// push puts w behind all others, or before them when it has had its turn and
// was sent away by a replica that did not answer.
func (q *queue) push(w *waiter, again bool) {
	switch {
	case q.first == nil:
		q.first, q.last = w, w
	case again:
		w.next, q.first.prev, q.first = q.first, w, w
	default:
		w.prev, q.last.next, q.last = q.last, w, w
	}
	q.add(w, 1)
}

// remove takes w, which must be in the queue, out of it.
func (q *queue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next = nil, nil
	q.add(w, -1)
}

func (q *queue) add(w *waiter, n int) {
	q.requests += n
	q.bytes += int64(n) * w.charge
	if !w.noWake {
		q.counted += n
	}
}
