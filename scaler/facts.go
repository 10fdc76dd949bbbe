package scaler

import (
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// facts gathers what the next step depends on, and sees to it that the life
// looks again when one of them changes with time.
func (l *life) facts(now time.Time) protocol.Facts {
	f := protocol.Facts{
		Phase: l.st.Phase, Lease: l.lease(now), Task: l.task,
		BackOff: now.Before(l.st.RetryAt), Unwritten: l.st.Revision == 0, Cleared: len(l.st.Replicas) == 0,
		Listed: l.listed, Runs: len(l.runs) > 0,
		Asked: len(l.asks) > 0, Sleep: len(l.sleeps) > 0, Broken: l.unstoppable,
	}
	switch l.st.Phase {
	case workload.Asleep, workload.Failed:
		f.Renewal, f.Warm = l.renewal(now), l.warm(now)
	case workload.Waking:
		f.Renewal = l.renewal(now)
		f.Wake = l.wakeFacts(now)
	case workload.Ready:
		l.readyFacts(&f, now)
	case workload.Draining:
		f.Renewal = l.renewal(now)
		f.Drain = l.drain.facts(now)
		l.barred = l.s.awakeReason(l.spec, now)
		f.Barred, f.Warm = l.barred != nil, (warm(l.spec, now) || l.keptAwake(now)) && !l.s.outdone(l.name)
		if l.drain != nil && l.drain.wayFor != "" {
			_, pressed := l.makesWay(now)
			f.Sleep, f.Drain.Over = f.Sleep || pressed, f.Drain.Over && !pressed
		}
	}
	proved, _ := l.proved()
	f.Proved, f.Match = len(proved) > 0, l.match(len(proved))
	return f
}

func (l *life) wakeFacts(now time.Time) protocol.Wake {
	w := l.waking
	if w == nil {
		return protocol.Wake{}
	}
	return protocol.Wake{
		Own: true, Done: l.jobDone(w), Begun: w.begun, Called: w.called, Started: w.started, Found: w.found,
		Late: !now.Before(w.deadline), Hopeless: !l.hopeless().IsZero(),
		Failed: w.failed(), GivenUp: w.giveUp, Logged: w.logged,
		Turn: protocol.TurnOf(l.st), Rivals: w.seen(now),
	}
}

func (l *life) readyFacts(f *protocol.Facts, now time.Time) {
	if l.listed {
		l.trust()
	}
	f.Refused, f.Shut, f.Trial = l.refused() != nil, l.shut() != nil, l.trial()
	if !f.Refused && l.task == protocol.TaskNone {
		l.proof = nil // nobody is left to whom it was of use
	}
	l.barred = l.s.awakeReason(l.spec, now)
	f.Barred = l.barred != nil
	if l.task == protocol.TaskNone {
		unused, pressed := l.makesWay(now)
		f.Sleep = f.Sleep || pressed
		f.Idle = l.listed && (l.idle(now) || unused && !f.Barred)
	}
}

// facts of no drain are none.
func (d *draining) facts(now time.Time) protocol.Drain {
	if d == nil {
		return protocol.Drain{}
	}
	return protocol.Drain{
		Own: true, Explicit: d.explicit, Resting: now.Before(d.askAgain), Over: now.Sub(d.since) >= drainGrace,
		Answered: d.answered, Said: d.said, Recorded: d.recorded, Stopped: d.stopped,
	}
}

// match tells how far the proved, so many, are those of the state.
func (l *life) match(proved int) protocol.Match {
	switch kept := len(l.kept()); {
	case kept == 0: // also where the state says none: nobody could be served by that
		return protocol.MatchNone
	case kept == len(l.st.Replicas) && kept == proved:
		return protocol.MatchAll
	}
	return protocol.MatchSome
}

// kept are those that the state says and that still run.
func (l *life) kept() []*replica {
	var kept []*replica
	for _, known := range l.st.Replicas {
		if r := l.runs[known.ID]; r != nil && r.Address == known.Address {
			kept = append(kept, r)
		}
	}
	return kept
}

// trust takes for proved what the state says and still runs: somebody proved
// it before.
func (l *life) trust() {
	for _, r := range l.kept() {
		if !r.proved {
			r.unproving()
			r.proved, r.provedAt = true, time.Now()
		}
	}
}

// outdate forgets what this life had begun and the state has got past.
func (l *life) outdate() {
	phase := l.st.Phase
	if w := l.waking; w != nil && (phase != workload.Waking || !l.mine() || w.generation != l.st.Generation) {
		l.waking = nil
	}
	if d := l.drain; d != nil && (phase != workload.Draining || !l.mine() || d.from.Generation != l.st.Generation) {
		l.drain = nil
	}
	if phase != workload.Ready {
		l.proof = nil
	}
	if !l.mine() {
		l.unstoppable = false
	}
}
