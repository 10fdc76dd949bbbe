package lean

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// watchEvery is how often it is looked whether clients have left.
	watchEvery = 4 * time.Millisecond
	// watchShare bounds what the looking may take: one part in so many of the
	// time. With very many that wait it is looked less often.
	watchShare = 50
	// watchRests is after how many looks without a request nobody looks any
	// more.
	watchRests = 64
)

// A watch looks whether the clients leave whose answers are waited for, all of
// them with one system call. To be on it costs a request two locks, and no
// timer; most are off it again before the first look. Safe for concurrent use.
type watch struct {
	some chan struct{} // 1: there are requests again
	rest atomic.Bool   // nobody looks

	mu      sync.Mutex
	waiting []*Writer // guarded by mu, as are the next three
	fds     []int     // of their clients
	seen    bool      // there was one since the last look
	look    lookout
}

func (s *watch) add(w *Writer) {
	s.mu.Lock()
	w.place = len(s.waiting)
	s.waiting = append(s.waiting, w)
	s.fds = append(s.fds, w.c.fd)
	s.seen = true
	s.mu.Unlock()
	if s.rest.Load() && s.rest.CompareAndSwap(true, false) {
		s.some <- struct{}{}
	}
}

func (s *watch) remove(w *Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := len(s.waiting) - 1
	s.waiting[w.place], s.fds[w.place] = s.waiting[last], s.fds[last]
	s.waiting[w.place].place = w.place
	s.waiting[last] = nil
	s.waiting, s.fds = s.waiting[:last], s.fds[:last]
}

// run looks until ctx ends.
func (s *watch) run(ctx context.Context) {
	s.some = make(chan struct{}, 1) // before rest is set, which add looks at first
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	for idle := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		took, seen := s.once()
		if idle++; seen {
			idle = 0
		}
		if idle >= watchRests && !s.wait(ctx) {
			return
		}
		timer.Reset(max(watchEvery, took*watchShare))
	}
}

// wait blocks until there is a request again; false: ctx has ended.
func (s *watch) wait(ctx context.Context) bool {
	s.rest.Store(true)
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	if seen && s.rest.CompareAndSwap(true, false) {
		return true
	}
	select {
	case <-s.some:
		return true
	case <-ctx.Done():
		return false
	}
}

// once looks at all. seen: there were requests.
func (s *watch) once() (took time.Duration, seen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen = s.seen || len(s.waiting) > 0
	s.seen = false
	if len(s.waiting) == 0 {
		return 0, seen
	}
	began := time.Now()
	s.look.hungUp(s.fds, func(i int) {
		w := s.waiting[i]
		w.gone.Store(true)
		w.c.abort()
	})
	return time.Since(began), true
}
