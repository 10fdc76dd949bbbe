package scaler

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// notMine is how long an ask waits before it is put again, where another
// scaler is at work.
const notMine = 500 * time.Millisecond

// An ask is one wake that waits for its verdict.
type ask struct {
	wake  workload.Wake
	reply chan answer // buffered 1: the life never waits for the asker
}

// An answer is a verdict and the state that it was given in.
type answer struct {
	Verdict
	state workload.State
}

// A sleepAsk is one Sleep that waits for its end.
type sleepAsk struct {
	reply chan error // buffered 1
}

// ask puts a wake to the life of its workload and waits for the answer.
func (s *Scaler) ask(ctx context.Context, w workload.Wake) answer {
	if w.ReceivedAt.IsZero() {
		w.ReceivedAt = time.Now()
	}
	l, known := s.lookUp(w.Workload)
	if !known {
		return answer{Verdict: Verdict{Kind: Later, After: notMine}}
	}
	if l == nil {
		return answer{Verdict: Verdict{Kind: Permanent, Reason: ErrUnknown.Error()}}
	}
	a := &ask{wake: w, reply: make(chan answer, 1)}
	if !l.post(func() { l.asked(a) }) {
		return answer{Verdict: Verdict{Kind: Later, After: notMine}}
	}
	select {
	case r := <-a.reply:
		return r
	case <-ctx.Done():
		return answer{Verdict: Verdict{Kind: Later}}
	}
}

// lookUp finds a life. known is false before the first Update, when a name
// that is not there means nothing.
func (s *Scaler) lookUp(name string) (l *life, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lives[name], s.updated
}

// asked takes in a wake. What this life remembers may be outdated where
// another scaler could have acted, so the state is read again; not where it
// is asleep, since there the write that follows would tell.
func (l *life) asked(a *ask) {
	l.asks = append(l.asks, a)
	if l.st.Phase != workload.Asleep && !l.mine() {
		l.stale = true
	}
}

// verdict is the answer in full; reason is why it came to nothing.
func verdict(a protocol.Answer, reason workload.Reason) (v Verdict, given bool) {
	switch a {
	case protocol.AnswerDone:
		return Verdict{Kind: Done}, true
	case protocol.AnswerLater:
		return Verdict{Kind: Later, After: notMine}, true
	case protocol.AnswerPermanent:
		return Verdict{Kind: Permanent, Reason: reason.String()}, true
	}
	return Verdict{}, false
}

// answerAs is answer, unless the rules have none.
func (l *life) answerAs(a protocol.Answer, reason workload.Reason) {
	if v, given := verdict(a, reason); given {
		l.answer(v)
	}
}

// answer gives every wake that waits the same verdict.
func (l *life) answer(v Verdict) {
	l.answerIf(v, func(*ask) bool { return true })
}

// answerIf gives a verdict to the wakes that match.
func (l *life) answerIf(v Verdict, match func(*ask) bool) {
	var left []*ask
	for _, a := range l.asks {
		if !match(a) {
			left = append(left, a)
			continue
		}
		a.reply <- answer{Verdict: v, state: l.st}
	}
	l.asks = left
}

func (l *life) askedToSleep(a *sleepAsk) {
	l.sleeps = append(l.sleeps, a)
	l.stale = true
}

// answerSleeps ends every Sleep that waits.
func (l *life) answerSleeps(err error) {
	for _, a := range l.sleeps {
		a.reply <- err
	}
	l.sleeps = nil
}

// answerSleep is the same with the error in full, unless the rules have none.
func (l *life) answerSleep(a protocol.SleepAnswer) {
	switch a {
	case protocol.SleepDone:
		l.answerSleeps(nil)
	case protocol.SleepBarred:
		l.answerSleeps(l.barred)
	case protocol.SleepBusy:
		l.answerSleeps(l.drain.whyBusy())
	}
}

// withdrawSleep ends one Sleep whose time is over, unless it was answered.
func (l *life) withdrawSleep(a *sleepAsk, cause error) {
	if l.drain != nil {
		if err := l.drain.whyBusy(); err != nil {
			cause = err
		}
	}
	var left []*sleepAsk
	for _, other := range l.sleeps {
		if other == a {
			a.reply <- cause
		} else {
			left = append(left, other)
		}
	}
	l.sleeps = left
}
