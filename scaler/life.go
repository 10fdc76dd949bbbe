package scaler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// storeTimeout bounds one read or write of a state.
	storeTimeout = time.Second
	// retryFirst and retryMost bound the pause after one that failed.
	retryFirst = 25 * time.Millisecond
	retryMost  = time.Second
)

// A life is one workload under one scaler. Its goroutine alone decides, and
// everything below its inbox belongs to that goroutine. It knows facts (the
// last state it read, what runs, who asks) and takes, again and again, the
// next step that the facts allow; each step that changes the phase is one
// compare-and-set, and one that fails leads to reading the state and deciding
// anew. What takes long, a start or a stop above all, runs beside it, one at
// a time.
type life struct {
	s       *Scaler
	name    string
	watch   *watch // the runtime it runs on
	log     *slog.Logger
	started bool          // guarded by Scaler.mu
	before  chan struct{} // closed when the former life of this name has ended; may be nil
	done    chan struct{} // closed when this one has
	seen    atomic.Pointer[glimpse]
	seq     atomic.Uint64 // grows with everything that could make a list stale
	*inbox

	spec    workload.Workload
	removed bool

	st      workload.State
	read    bool          // st has been read
	seenAt  time.Time     // since when st has its revision, by this scaler's clock
	phaseAt time.Time     // since when it has its phase and generation
	stale   bool          // st has to be read before the next decision
	pause   time.Duration // after the last store error
	retryAt time.Time     // no store call before this
	moved   bool          // the last step changed something: take another
	next    time.Time     // when to look again without a cause; zero: never

	runs   map[string]*replica // ID -> what runs
	early  map[string]Event    // ID -> news of what is not in runs, yet
	end    Event               // the last end of one of them
	listed bool                // runs is the truth
	relist bool                // a list is wanted

	asks        []*ask
	sleeps      []*sleepAsk
	keeps       []*keepAsk
	floor       time.Time     // idle counts from here at the earliest
	readySince  time.Time     // since when this generation is ready; a sleep that was called off does not count
	task        protocol.Task // what runs beside the life
	waking      *waking       // the wake that this life carries out
	drain       *draining     // the sleep that this life carries out
	freed       int64         // bytes of memory that the last stop gave back; 0: not known
	unstoppable bool          // the last stop failed: what runs is served again
	barred      error         // why it may not sleep whatever its use, as of the last step
	proof       *proof        // the proof asked for by who was refused

	children sync.WaitGroup
}

// A glimpse is what others may see of a life at any time. It is never changed.
type glimpse struct {
	spec            workload.Workload
	state           workload.State
	floor           time.Time
	readySince      time.Time
	phaseAt         time.Time
	runs            bool          // something does, or it is not known
	asleep, running time.Duration // until changed
	changed         time.Time
}

// newLife makes a life that begins when before, if not nil, is closed.
func newLife(s *Scaler, w workload.Workload, before chan struct{}) *life {
	l := &life{
		s: s, name: w.Name, watch: s.watches[w.Runtime], spec: w,
		log:    s.log.With("workload", w.Name),
		before: before, done: make(chan struct{}),
		inbox: newInbox(),
		runs:  map[string]*replica{},
		early: map[string]Event{},
	}
	l.seen.Store(&glimpse{spec: w, state: workload.State{Workload: w.Name}, runs: true, changed: time.Now()})
	return l
}

// run lives until ctx ends or the workload is removed.
func (l *life) run(ctx context.Context) {
	defer close(l.done)
	if l.before != nil {
		<-l.before // its start or stop may still be ending
	}
	ctx, cancel := context.WithCancel(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.settle(ctx)
		if l.removed || ctx.Err() != nil {
			break
		}
		if !l.next.IsZero() {
			timer.Reset(time.Until(l.next))
		}
		select {
		case <-ctx.Done():
		case <-l.bell:
		case <-timer.C:
		}
	}
	cancel()
	l.children.Wait()
	l.leave(context.WithoutCancel(ctx))
	l.abandon()
}

// settle takes steps until there is none to take.
func (l *life) settle(ctx context.Context) {
	for l.moved = true; l.moved && ctx.Err() == nil; {
		l.moved, l.next = false, time.Time{}
		l.absorb()
		l.proveRuns(ctx)
		l.step(ctx)
		l.look()
	}
	if l.relist && l.task == protocol.TaskNone {
		l.relist = false
		l.watch.ask()
	}
}

func (l *life) step(ctx context.Context) {
	if now := time.Now(); now.Before(l.retryAt) {
		l.lookAt(l.retryAt)
		return
	}
	if (!l.read || l.stale) && !l.reread(ctx) {
		return
	}
	l.outdate()
	if l.keep(ctx, time.Now()) {
		return
	}
	l.take(ctx, l.facts(time.Now()))
}

// lookAt makes sure that the life looks again at t at the latest.
func (l *life) lookAt(t time.Time) {
	if l.next.IsZero() || t.Before(l.next) {
		l.next = t
	}
}

// do runs f beside the life. What f returns is run by the life, after which
// another task may begin.
func (l *life) do(ctx context.Context, t protocol.Task, f func(context.Context) func()) {
	l.task, l.moved = t, true
	l.seq.Add(1)
	l.children.Go(func() {
		finish := f(ctx)
		l.post(func() {
			l.task = protocol.TaskNone
			l.seq.Add(1)
			finish()
		})
	})
}

// reread reads the state. False: it could not.
func (l *life) reread(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	st, err := l.s.deps.Store.State(ctx, l.name)
	if err != nil {
		l.trouble("state not read", err)
		return false
	}
	l.pause, l.stale = 0, false
	if l.contradicts(st) {
		l.listed = false
		l.seq.Add(1) // what is being listed now may be older than st
		l.wantList()
	}
	l.see(st)
	return true
}

// reconnected has the state read again at once: the store answers again, and
// may be another by now.
func (l *life) reconnected() { l.stale, l.retryAt = true, time.Time{} }

// contradicts reports that st is news, of another scaler, and not what runs as
// far as this one knows: it may know less, so that only a list which is asked
// for now can tell.
func (l *life) contradicts(st workload.State) bool {
	if !l.isNews(st) {
		return false
	}
	unknown := func(r workload.Replica) bool { return l.runs[r.ID] == nil }
	return down(st.Phase) && len(l.runs) > 0 || st.Phase == workload.Ready && slices.ContainsFunc(st.Replicas, unknown)
}

// put writes next in place of the state that was last read. It reports
// whether that is certain to have happened; if not, the state is read again
// before anything is decided.
func (l *life) put(ctx context.Context, next workload.State) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	next.Workload, next.Revision = l.name, l.st.Revision
	st, err := l.s.deps.Store.PutState(ctx, next)
	switch {
	case err == nil:
		l.pause, l.moved = 0, true
		l.see(st)
		return true
	case errors.Is(err, ErrConflict):
		l.stale, l.moved = true, true
	default:
		l.stale = true
		l.trouble("state not written", err)
	}
	return false
}

// trouble makes the life wait a little before it tries the store again.
func (l *life) trouble(msg string, err error) {
	if l.pause == 0 && !errors.Is(err, context.Canceled) {
		l.log.Warn(msg, "error", err)
	}
	l.pause = min(max(retryFirst, 2*l.pause), retryMost)
	l.retryAt = time.Now().Add(l.pause/2 + l.s.chance(l.name, l.pause/2))
	l.lookAt(l.retryAt)
}

// see takes in a state that was read or written.
func (l *life) see(st workload.State) {
	now := time.Now()
	st.Workload = l.name
	fresh := !l.read || st.Phase != l.st.Phase || st.Generation != l.st.Generation
	if fresh {
		l.phaseAt = now
	}
	if fresh && st.Phase == workload.Ready {
		l.floor = now
		if calledOff := l.read && l.st.Phase == workload.Draining && l.st.Generation == st.Generation; !calledOff {
			l.readySince = now
		}
	}
	if l.isNews(st) {
		l.seenAt = now
	}
	if fresh && l.read {
		l.log.Info("workload "+st.Phase.String(), "generation", st.Generation, "reason", st.Reason.Code)
	}
	l.st, l.read = st.SeenAt(l.seenAt), true
}

// isNews reports that st is not what was known. Not the revision alone tells:
// a store that was made anew counts again from the beginning.
func (l *life) isNews(st workload.State) bool {
	return !l.read || st.Revision != l.st.Revision || st.Phase != l.st.Phase || st.Generation != l.st.Generation
}

// look shows others what the life knows, and has its rivals look too.
func (l *life) look() {
	before := l.glimpse()
	l.show()
	now := l.glimpse()
	if before.runs != now.runs || before.state.Phase != now.state.Phase || protocol.TurnOf(before.state) != protocol.TurnOf(now.state) {
		l.s.nudge(l.name)
	}
}

func (l *life) show() {
	g, now := *l.glimpse(), time.Now()
	g.asleep, g.running = g.spent(now)
	g.changed, g.spec, g.state, g.floor, g.readySince = now, l.spec, l.st, l.floor, l.readySince
	g.phaseAt, g.runs = l.phaseAt, len(l.runs) > 0 || !l.listed
	l.seen.Store(&g)
}

func (l *life) glimpse() *glimpse { return l.seen.Load() }

// remove ends the life; it leaves what runs as it is.
// Scaler.mu is held.
func (l *life) remove() {
	l.post(func() { l.removed = true })
	if !l.started {
		l.abandon()
	}
}

// abandon ends the inbox and answers everybody who still waits.
func (l *life) abandon() {
	l.close()
	l.absorb()
	l.show() // Scaler.mu may be held
	if l.removed {
		l.answer(Verdict{Kind: Permanent, Reason: "the workload was removed"})
	} else {
		l.answer(Verdict{Kind: Later})
	}
	l.answerSleeps(ErrClosed)
}

// record adds to the history.
func (l *life) record(kind workload.EventKind, reason workload.Reason, wake *workload.Wake) {
	e := workload.Event{
		Workload: l.name, Kind: kind, At: time.Now(), Generation: l.st.Generation,
		Actor: l.s.cfg.Owner, Reason: reason, Wake: wake,
	}
	if kind == workload.EventSlept {
		e.FreedBytes, l.freed = l.freed, 0
	}
	l.s.history.add(e)
}

// down reports whether nothing is meant to run.
func down(p workload.Phase) bool { return p == workload.Asleep || p == workload.Failed }
