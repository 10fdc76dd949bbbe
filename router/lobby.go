package router

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/workload"
)

// A Journal tells of cold starts, for waiting pages. It is safe for concurrent
// use and does not block.
type Journal interface {
	// LastWake gives the record of the workload's cold start that began last,
	// and whether it is under way still; false too where none is known.
	LastWake(workload string) (wake workload.Wake, underWay bool)
	// UsualWake is how long cold starts of the workload take from ask to
	// ready: the median of those it remembers; 0: it remembers none.
	UsualWake(workload string) time.Duration
}

const (
	// maxVisitors bounds the open waiting pages of one gateway: each costs a
	// connection with its goroutine.
	maxVisitors = 16384
	// lookAround is how often the progress of a wake is looked at that pages
	// wait for, one look for all of them.
	lookAround = 100 * time.Millisecond
	// newPlaces is how often pages hear that their place has changed.
	newPlaces = 2 * time.Second
	// Pages reload in the order they came, so many at a time and so often, so
	// that a thousand of them do not trample what has just come up.
	reloadsAtOnce = 64
	reloadEvery   = 25 * time.Millisecond
)

// A lobby is where the open waiting pages of all workloads are. They share
// one place in the queue of each, which keeps the wake going for as long as a
// page is open, however many they are.
type lobby struct {
	activator *activator.Activator
	journal   Journal // may be nil
	leaving   func() bool

	mu       sync.Mutex
	rooms    map[string]*room // workload -> where its pages wait; guarded by mu
	visitors int              // in all rooms; guarded by mu
}

// A room is the open pages of one workload, until the end of one wake.
type room struct {
	lobby       *lobby
	gate        *activator.Gate
	traceparent string
	opened      time.Time
	cancel      context.CancelFunc

	// Guarded by the lobby's lock.
	tickets []uint64 // of the pages that are open, in the order they came
	issued  uint64
	board   bulletin
	more    chan struct{} // closed with the next bulletin
}

// A bulletin is what all pages of a room are told. It is not changed.
type bulletin struct {
	progress waitpage.Progress
	order    []uint64 // tickets of those who wait
	over     bool
	err      error // of a wait that is over; nil: the workload is ready
}

// A visit is one open page.
type visit struct {
	room   *room
	ticket uint64
}

// enter takes a page in; false: there are too many.
func (l *lobby) enter(gate *activator.Gate, traceparent string) (*visit, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.visitors >= maxVisitors {
		return nil, false
	}
	m := l.rooms[gate.Name()]
	if m == nil {
		m = l.open(gate, traceparent)
	}
	l.visitors++
	m.issued++
	m.tickets = append(m.tickets, m.issued)
	return &visit{m, m.issued}, true
}

// open makes a room, and has somebody ask for its pages. Under the lock.
func (l *lobby) open(gate *activator.Gate, traceparent string) *room {
	ctx, cancel := context.WithCancel(context.Background())
	m := &room{lobby: l, gate: gate, traceparent: traceparent, opened: time.Now(), cancel: cancel, more: make(chan struct{})}
	m.board.progress = l.progress(gate.Name(), m.opened)
	l.rooms[gate.Name()] = m
	go m.run(ctx)
	return m
}

// leave ends a visit; the last one to leave closes the room.
func (v *visit) leave() {
	l, m := v.room.lobby, v.room
	l.mu.Lock()
	defer l.mu.Unlock()
	l.visitors--
	if i, found := slices.BinarySearch(m.tickets, v.ticket); found {
		m.tickets = slices.Delete(m.tickets, i, i+1)
	}
	if len(m.tickets) == 0 {
		m.close()
	}
}

// close takes no more pages in. Under the lobby's lock.
func (m *room) close() {
	m.cancel()
	if m.lobby.rooms[m.gate.Name()] == m {
		delete(m.lobby.rooms, m.gate.Name())
	}
}

// news gives what there is to tell, and a channel that is closed once there
// is more.
func (v *visit) news() (bulletin, <-chan struct{}) {
	l := v.room.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	return v.room.board, v.room.more
}

// place is where the page stands among those of the bulletin, from 0.
func (v *visit) place(b bulletin) int {
	i, _ := slices.BinarySearch(b.order, v.ticket)
	return i
}

// progress is the bulletin's as this page has it.
func (v *visit) progress(b bulletin) waitpage.Progress {
	p := b.progress
	if len(b.order) > 0 {
		p.Position, p.Waiting = v.place(b)+1, len(b.order)
	}
	p.Elapsed = time.Since(v.room.opened) + p.Elapsed
	return p
}

// turn is how long the page may take until it reloads.
func (v *visit) turn(b bulletin) time.Duration {
	return time.Duration(v.place(b)/reloadsAtOnce) * reloadEvery
}

// run waits at the gate for all pages of the room, and tells them.
func (m *room) run(ctx context.Context) {
	ended := make(chan error, 1)
	ask := func() {
		lease, err := m.gate.Acquire(ctx, activator.Ask{Bytes: heldHead, Traceparent: m.traceparent})
		lease.Release()
		ended <- err
	}
	go ask()
	tick := time.NewTicker(lookAround)
	defer tick.Stop()
	note := ""
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-ended:
			wait, still := stillWaits(err)
			if !still {
				m.end(err)
				return
			}
			note = noteOf(err)
			time.AfterFunc(wait, ask)
		case <-tick.C:
			if m.lobby.leaving() {
				m.end(activator.ErrShutdown)
				return
			}
			m.look(note)
		}
	}
}

// stillWaits reports that a page goes on waiting after this end of a hold,
// and after how long it is held again.
func stillWaits(err error) (time.Duration, bool) {
	var limited *activator.LimitedError
	switch {
	case errors.Is(err, activator.ErrHoldTimeout):
		return 0, true
	case errors.Is(err, activator.ErrQueueFull):
		return retrySoon, true
	case errors.As(err, &limited):
		return limited.RetryAfter, true
	}
	return 0, false
}

// noteOf says what holds a wait up.
func noteOf(err error) string {
	var limited *activator.LimitedError
	switch {
	case errors.As(err, &limited):
		return "It has been woken too often, and is asked for again in a while."
	case errors.Is(err, activator.ErrQueueFull):
		return "Too many requests wait for it."
	}
	return ""
}

// look tells the pages what has changed since they were told last.
func (m *room) look(note string) {
	progress := m.lobby.progress(m.gate.Name(), m.opened)
	progress.Note = note
	if state := m.gate.State(); note == "" && state.Phase == workload.Waking {
		progress.Note = state.Reason.Detail
	}
	m.lobby.mu.Lock()
	defer m.lobby.mu.Unlock()
	before := m.board.progress
	if before.Note != progress.Note || before.Expected != progress.Expected || !slices.Equal(before.Steps, progress.Steps) ||
		len(m.board.order) != len(m.tickets) && time.Since(m.opened)%newPlaces < lookAround {
		m.post(bulletin{progress: progress})
	}
}

// end tells the pages that the wait is over, and takes no more in.
func (m *room) end(err error) {
	m.lobby.mu.Lock()
	defer m.lobby.mu.Unlock()
	m.post(bulletin{progress: m.board.progress, over: true, err: err})
	m.close()
}

// post tells. Under the lobby's lock.
func (m *room) post(b bulletin) {
	b.order = slices.Clone(m.tickets)
	m.board = b
	close(m.more)
	m.more = make(chan struct{})
}

// progress is how far the wake of a workload has come for somebody who has
// waited since then; Elapsed is what had passed before.
func (l *lobby) progress(name string, since time.Time) waitpage.Progress {
	if l.journal == nil {
		return waitpage.Progress{Steps: waitpage.Steps(workload.Wake{})}
	}
	wake, underWay := l.journal.LastWake(name)
	if !underWay {
		wake = workload.Wake{}
	}
	p := waitpage.Progress{Steps: waitpage.Steps(wake), Expected: l.journal.UsualWake(name)}
	if !wake.RequestedAt.IsZero() {
		p.Elapsed = max(0, since.Sub(wake.RequestedAt))
	}
	return p
}
