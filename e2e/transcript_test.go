package e2e

import (
	"bytes"
	"sync"
)

// A transcript is what a command has printed, on both streams. It is safe for
// concurrent use; the zero value is empty.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (x *transcript) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.Write(b)
}

func (x *transcript) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}
