package scaler

import "sync"

// An inbox is how others reach a life: each message is a function that the
// life's goroutine runs, in the order of the posts.
type inbox struct {
	bell chan struct{} // rings when there is something; buffered 1

	mu     sync.Mutex
	queue  []func() // guarded by mu
	closed bool     // guarded by mu
}

func newInbox() *inbox { return &inbox{bell: make(chan struct{}, 1)} }

// post never blocks. False: the life has ended and will not run f.
func (b *inbox) post(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.queue = append(b.queue, f)
	signal(b.bell)
	return true
}

// absorb runs what has come, until nothing more has.
func (b *inbox) absorb() {
	for {
		b.mu.Lock()
		queue := b.queue
		b.queue = nil
		b.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		for _, f := range queue {
			f()
		}
	}
}

// close refuses further posts; what came before is still to be absorbed.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
}
