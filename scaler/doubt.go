package scaler

import (
	"context"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// doubtLimit bounds the try of what was ready before: those who were refused
// wait for it.
const doubtLimit = time.Second

// A proof is the answer to somebody who was refused by every replica.
type proof struct {
	generation uint64
	answered   []workload.Replica
}

// trial is what the try of every replica of this generation has shown. It
// counts once: what it says is outdated by the next step.
func (l *life) trial() protocol.Trial {
	switch p := l.proof; {
	case p == nil || l.task != protocol.TaskNone || p.generation != l.st.Generation:
		return protocol.TrialNone
	case len(p.answered) == 0:
		return protocol.TrialBad
	}
	return protocol.TrialGood
}

// announceTried tells the gateways to try those again that answered. What
// else runs has to be proved anew.
func (l *life) announceTried(ctx context.Context) {
	l.doubtAll()
	if l.write(ctx, protocol.AnnounceTried, nil) {
		l.trust()
	}
	l.proof = nil
}

func (l *life) doubtAll() {
	for _, r := range l.runs {
		r.proved, r.since = false, time.Now()
	}
}

// tryAll tries every replica once, because somebody was refused by all of
// this generation.
func (l *life) tryAll(ctx context.Context) {
	p := &proof{generation: l.st.Generation}
	l.proof = p
	spec, targets := l.spec, l.st.Replicas
	l.do(ctx, protocol.TaskProof, func(ctx context.Context) func() {
		ok := make([]bool, len(targets))
		var tries sync.WaitGroup
		for i, r := range targets {
			tries.Go(func() { ok[i] = l.s.try(ctx, attempt{spec: spec, target: r}, doubtLimit) == nil })
		}
		tries.Wait()
		return func() {
			for i, r := range targets {
				if ok[i] {
					p.answered = append(p.answered, r)
				}
			}
		}
	})
}

// refused is somebody who was refused by every replica of this generation.
func (l *life) refused() *ask {
	return l.firstAsk(func(w workload.Wake) bool { return w.Unreachable && w.Generation == l.st.Generation })
}

// shut is a gateway that knows this generation and asks all the same: news of
// its end that was called off must have reached it late.
func (l *life) shut() *ask {
	return l.firstAsk(func(w workload.Wake) bool {
		return w.Trigger == workload.TriggerRequest && w.Generation == l.st.Generation && l.phaseAt.Before(w.ReceivedAt)
	})
}

// cause is the ask that a wake is begun for.
func (l *life) cause() workload.Wake {
	if l.st.Phase != workload.Ready {
		return l.asks[0].wake
	}
	l.log.Warn("no replica answers", "generation", l.st.Generation)
	l.doubtAll()
	l.proof = nil
	return l.refused().wake
}

func (l *life) firstAsk(match func(workload.Wake) bool) *ask {
	for _, a := range l.asks {
		if match(a.wake) {
			return a
		}
	}
	return nil
}
