package activator

import (
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// observe takes in news of the workload, in whatever order it comes.
func (g *Gate) observe(s workload.State, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	heard := g.rules.Hear(news(s))
	if heard == protocol.HeardOld || heard == protocol.HeardAgain {
		return
	}
	g.learn(s, heard, now)
	g.settle(now)
	g.publish()
	g.prune()
}

// news is what the rules make of a state.
func news(s workload.State) protocol.News {
	return protocol.News{Phase: s.Phase, Generation: s.Generation, Revision: s.Revision, Serving: len(s.Replicas) > 0}
}

// learn makes s what is known. Under the lock.
func (g *Gate) learn(s workload.State, heard protocol.Hearing, now time.Time) {
	if g.opening != nil && (s.Phase != workload.Ready || s.Generation != g.state.Generation) {
		g.hold(now) // what answers still come say nothing of what runs next
	}
	s = s.SeenAt(now)
	g.state = s
	if s.Phase == workload.Asleep || s.Phase == workload.Failed {
		g.keptUntil.Store(0) // it was for what ran
	}
	g.version++
	g.refusal, g.trial = nil, false
	g.retarget(s)
	if heard.Fails(g.rules.Known, now.Before(s.RetryAt)) {
		g.asking = nil
		g.endAll(&FailedError{s}, now, anyone)
	}
}

// settle brings what the gate does in line with what is known. It is cheap
// and may be called at any time. Under the lock.
func (g *Gate) settle(now time.Time) {
	if g.refusal != nil && g.refusal.over(now) {
		g.rules.Retry()
		g.refusal, g.trial = nil, true
		g.unsuspect()
	}
	if g.rules.Shut() || g.over == ErrRemoved {
		g.close(now)
	} else {
		g.open(now)
	}
}

// open lets requests pass, first those that are held. Under the lock.
func (g *Gate) open(now time.Time) {
	if g.passing {
		return
	}
	g.passing = true
	wake := g.coldStart(now)
	if g.asking = nil; g.tending {
		poke(g.nudge)
	}
	if g.queue.first == nil {
		g.record(wake, now)
	} else {
		g.startRelease(now, wake)
	}
	g.trial = false
	g.letGo(now)
	g.publish()
}

// close holds requests from now on, and has those that are held asked for.
// Under the lock.
func (g *Gate) close(now time.Time) {
	if g.passing {
		g.hold(now)
		g.publish()
	}
	if g.queue.counted > 0 {
		g.askAgain(now)
	}
}

// hold lets nobody pass any more, and sends away those who may not wait for a
// wake. Under the lock.
func (g *Gate) hold(now time.Time) {
	g.passing = false
	if g.opening != nil {
		g.opening.stop()
		g.opening = nil
	}
	g.endAll(ErrAsleep, now, func(w *waiter) bool { return w.noWake })
}

// stop ends every wait with err, and each that comes later.
func (g *Gate) stop(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.over, g.asking = err, nil
	g.endAll(err, now, anyone)
	g.letGo(now)
	g.settle(now)
}

// update takes a new description; a gate that was removed is back with it.
func (g *Gate) update(w workload.Workload) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spec = w
	g.strategy.Store(&w.Strategy)
	if g.over == ErrRemoved {
		g.over = nil
		g.settle(time.Now())
	}
}

// forget makes the gate take the next state, whatever its revision.
func (g *Gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rules.Forget()
}
