package events

import "sync"

// A broadcast tells every listener that something happened. Several tellings
// that a listener has not taken yet are one. The zero value is ready.
type broadcast struct {
	mu        sync.Mutex
	listeners map[chan struct{}]struct{} // guarded by mu
}

// listen returns a channel that is told, and the function that ends it.
func (b *broadcast) listen() (told <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners == nil {
		b.listeners = map[chan struct{}]struct{}{}
	}
	b.listeners[c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listeners, c)
	}
}

func (b *broadcast) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.listeners {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
