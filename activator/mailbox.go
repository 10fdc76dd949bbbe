package activator

import "sync"

// maxMail bounds a mailbox that nobody empties. Gates never come near it
// where it matters: each is in the box once at most.
const maxMail = 1 << 16

// A mailbox passes values to one reader without ever blocking a writer.
type mailbox[T any] struct {
	ready chan struct{} // has one value while there may be mail

	mu   sync.Mutex
	mail []T // guarded by mu
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{ready: make(chan struct{}, 1)}
}

// put reports whether there was room.
func (m *mailbox[T]) put(v T) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.mail) >= maxMail {
		return false
	}
	m.mail = append(m.mail, v)
	poke(m.ready)
	return true
}

// take empties the box.
func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	mail := m.mail
	m.mail = nil
	return mail
}

// poke leaves a sign in a channel of one place, unless there is one already.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
