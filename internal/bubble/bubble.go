// Package bubble runs tests in a bubble of their own time.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test is synctest.Test, and holds the whole process to one processor
// meanwhile where the race detector is on.
//
// A bubble's timers share one context of the race detector, which the
// runtime (as of Go 1.26) lends without a lock to each goroutine that comes
// to a timer already due: on two processors at once that is a segmentation
// violation in the detector. What it finds it finds by the order of events,
// on one processor as on many.
func Test(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if raceEnabled {
		processors.take()
		defer processors.giveBack()
	}
	synctest.Test(t, test)
}

// processors are taken by the tests that run now.
var processors taken

type taken struct {
	mu    sync.Mutex
	tests int
	had   int
}

func (p *taken) take() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tests == 0 {
		p.had = runtime.GOMAXPROCS(1)
	}
	p.tests++
}

func (p *taken) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tests--; p.tests == 0 {
		runtime.GOMAXPROCS(p.had)
	}
}
