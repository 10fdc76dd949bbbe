package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// A mutant is the rules with one of them left out.
type mutant struct {
	name  string
	seed  func(*rules)
	scope scope
	wrong string // what it must be caught by
}

// knowing changes what a scaler takes for true before it decides.
func knowing(change func(*protocol.Facts)) func(*rules) {
	return func(r *rules) {
		next, prove := r.next, r.prove
		r.next = func(f protocol.Facts) protocol.Step { change(&f); return next(f) }
		r.prove = func(f protocol.Facts) bool { change(&f); return prove(f) }
	}
}

// hearing changes what the answers to a drain come to.
func hearing(change func(*protocol.Sum)) func(*rules) {
	return func(r *rules) {
		sumUp := r.sumUp
		r.sumUp = func(answers []workload.Drained, asked []string) protocol.Sum {
			s := sumUp(answers, asked)
			change(&s)
			return s
		}
	}
}

// writing changes what a move writes and answers.
func writing(change func(protocol.Move, *protocol.Draft)) func(*rules) {
	return func(r *rules) {
		draft := r.draft
		r.draft = func(m protocol.Move, p workload.Phase, g uint64, before workload.Phase) (protocol.Draft, bool) {
			d, writes := draft(m, p, g, before)
			change(m, &d)
			return d, writes
		}
	}
}

const (
	inUse      = "stopped in use"
	endangered = "a request was let to a replica that is being stopped"
	trap       = "nothing good can be reached any more"
)

var mutants = []mutant{
	{"the gate believes old news", func(r *rules) {
		hear := r.hear
		r.late = true
		r.hear = func(g *protocol.Gate, n protocol.News) protocol.Hearing { g.Forgotten = true; return hear(g, n) }
	}, narrow, inUse},
	{"news from before the drain opens the gate", func(r *rules) {
		hear := r.hear
		r.hear = func(g *protocol.Gate, n protocol.News) protocol.Hearing { g.Closed = 0; return hear(g, n) }
	}, wide, inUse},
	{"a drain does not close the gate", func(r *rules) {
		r.drain = func(*protocol.Gate, uint64) bool { return true }
	}, wide, inUse},
	{"it is stopped before the gates are closed", knowing(func(f *protocol.Facts) {
		f.Drain.Answered = f.Drain.Own
	}), wide, inUse},
	{"what is in flight is not counted", hearing(func(s *protocol.Sum) { s.InFlight = false }), wide, inUse},
	{"a drain does not wait for a gateway that says nothing", hearing(func(s *protocol.Sum) { s.Silent = false }), narrow, inUse},
	{"a gateway that was silent for long is forgotten", knowing(func(f *protocol.Facts) { f.Barred = false }), gates, inUse},
	{"a wake is taken for done before it is ready", writing(func(m protocol.Move, d *protocol.Draft) {
		if m == protocol.BeginWake {
			d.Asks = protocol.AnswerDone
		}
	}), wide, "a wake was taken for done that is not"},
	{"a wake that comes during a sleep is forgotten", func(r *rules) {
		next := r.next
		r.next = func(f protocol.Facts) protocol.Step {
			asked := f.Asked
			f.Asked = asked && f.Phase != workload.Draining
			s := next(f)
			if asked && f.Phase == workload.Draining {
				s.Asks = protocol.AnswerDone
			}
			return s
		}
	}, wide, "a wake was taken for done that is not"},
	{"one ask is enough", func(r *rules) {
		r.edge = true
		r.asks = func(_, taken bool) bool { return !taken }
	}, narrow, trap},
	{"writes do not compare", func(r *rules) { r.compare = false }, takeover, "a wake without a generation of its own"},
	{"a lease that is held is ignored", knowing(func(f *protocol.Facts) {
		if f.Lease == protocol.LeaseHeld {
			f.Lease = protocol.LeaseLapsed
		}
	}), wide, "a phase was taken from a scaler at work on it"},
	{"a lease is not looked at before the platform is called", knowing(func(f *protocol.Facts) { f.Renewal = false }), takeover.with(theLeaseIsLost), "a stop while another scaler starts it"},
	{"a wake has no generation of its own", writing(func(m protocol.Move, d *protocol.Draft) {
		if m == protocol.BeginWake {
			d.Generation--
		}
	}), wide, "a wake without a generation of its own"},
	{"what runs is taken for ready", knowing(func(f *protocol.Facts) { f.Proved = f.Runs }), wide, "ready without proof"},
	{"a restart takes nothing for running", knowing(func(f *protocol.Facts) { f.Listed = true }), narrow, "what serves was taken for gone"},
	{"a stop whose scaler died is not carried out", knowing(func(f *protocol.Facts) { f.Cleared = false }), narrow, endangered},
	{"what is given up has no owner", writing(func(m protocol.Move, d *protocol.Draft) {
		if m == protocol.GiveUp {
			d.Lease = protocol.LeaseNone
		}
	}), takeover.with(itsTimeIsOver), endangered},
	{"a dead scaler's lease is never taken over", knowing(func(f *protocol.Facts) {
		if f.Lease == protocol.LeaseLapsed {
			f.Lease = protocol.LeaseHeld
		}
	}), takeover.with(itCrashesForGood), trap},
}

// with is the scope with faults of that kind alone.
func (s scope) with(h happening) scope {
	s.kinds = some(h)
	return s
}

func TestEachMutantIsCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			rs := theRules()
			m.seed(&rs)
			e, r := model{rs, m.scope}.explore()
			t.Logf("%s, after %d steps, %d states", r.Wrong, len(r.Trace), r.States)
			if !assert.Equal(t, m.wrong, r.Wrong) && r.Wrong != "" {
				t.Log(e.Tell(r))
			}
		})
	}
}
