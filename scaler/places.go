package scaler

import (
	"context"
	"slices"
	"sync"
)

// places are the starts that may be under way at one time. Too many at once
// make every one of them slow, so those who come first are served first.
type places struct {
	mu      sync.Mutex
	free    int             // guarded by mu
	waiting []chan struct{} // first come first served; closed: the place is theirs; guarded by mu
}

func newPlaces(n int) *places { return &places{free: n} }

// take waits for a place, or for the end of ctx.
func (p *places) take(ctx context.Context) error {
	p.mu.Lock()
	if p.free > 0 {
		p.free--
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	p.waiting = append(p.waiting, turn)
	p.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		p.leave(turn)
		return context.Cause(ctx)
	}
}

// leave gives up waiting, and gives on the place if it came meanwhile.
func (p *places) leave(turn chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.waiting, turn); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.pass()
}

// give returns a place.
func (p *places) give() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass()
}

func (p *places) pass() {
	if len(p.waiting) == 0 {
		p.free++
		return
	}
	close(p.waiting[0])
	p.waiting = slices.Delete(p.waiting, 0, 1)
}
