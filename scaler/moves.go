package scaler

import (
	"context"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// take takes the step that follows from the facts.
func (l *life) take(ctx context.Context, f protocol.Facts) {
	s := protocol.Next(f)
	l.answerAs(s.Asks, workload.Reason{})
	l.answerSleep(s.Sleeps)
	switch s.Move {
	case protocol.Wait:
		l.lookAgain(f)
	case protocol.LeaveAlone:
		l.leaveAlone()
	case protocol.BeginSleep:
		l.beginSleep(ctx, s.Explicit)
	case protocol.FallAsleep:
		l.fallAsleep(ctx)
	case protocol.Renew:
		l.renew(ctx)
	case protocol.Release, protocol.TrueUp, protocol.Restore, protocol.AnnounceAgain:
		l.write(ctx, s.Move, nil)
	case protocol.Adopt:
		l.adopt(ctx)
	case protocol.TakeOver:
		l.takeOver(ctx)
	case protocol.TryAll:
		l.tryAll(ctx)
	case protocol.AnnounceTried:
		l.announceTried(ctx)
	case protocol.AskGateways, protocol.AskLater, protocol.RecordStop, protocol.Stop, protocol.ResumeStop, protocol.Reopen:
		l.takeDrain(ctx, s.Move)
	default:
		l.takeWake(ctx, s.Move)
	}
}

// takeWake takes a step of a wake.
func (l *life) takeWake(ctx context.Context, m protocol.Move) {
	switch m {
	case protocol.BeginWake:
		l.beginWake(ctx, l.cause())
	case protocol.KeepWarm:
		l.beginWake(ctx, newWake(l.name, workload.TriggerKeepWarm))
	case protocol.Resume:
		l.waking, l.moved = l.resume(), true
	case protocol.LookRound:
		l.lookRound(ctx, l.waking)
	case protocol.Claim, protocol.Withdraw, protocol.TakeTurn:
		l.takeTurn(ctx, m)
	case protocol.Start:
		l.beginStart(ctx, l.waking)
	case protocol.Complete:
		l.complete(ctx)
	case protocol.Doom:
		l.doom(l.waking, time.Now())
	case protocol.FetchLogs:
		l.fetchLogs(ctx, l.waking)
	case protocol.Fail:
		l.fail(ctx, l.waking, protocol.Fail)
	case protocol.GiveUp:
		l.giveUp(ctx, l.waking)
	case protocol.Announce:
		l.announce(ctx, l.waking)
	}
}

// takeDrain takes a step of a sleep.
func (l *life) takeDrain(ctx context.Context, m protocol.Move) {
	switch m {
	case protocol.AskGateways:
		l.askGateways(ctx, l.drain)
	case protocol.AskLater:
		l.drain.answered, l.drain.askAgain = false, time.Now().Add(drainAgain)
		l.moved = true
	case protocol.RecordStop:
		l.recordStop(ctx, l.drain)
	case protocol.Stop:
		l.beginStop(ctx, l.drain)
	case protocol.ResumeStop:
		l.resumeStop(ctx)
	case protocol.Reopen:
		l.reopen(ctx)
	}
}

// lookAgain makes sure of a look at what changes with time alone.
func (l *life) lookAgain(f protocol.Facts) {
	switch {
	case f.Wake.Own && !f.Wake.Failed && f.Task != protocol.TaskStart: // the start has the same deadline
		l.lookAt(l.waking.deadline)
		if f.Wake.Turn != protocol.TurnTaken {
			l.lookAt(l.waking.lookAgain)
		}
	case f.Drain.Own && f.Drain.Resting:
		l.lookAt(l.drain.askAgain)
	case f.Lease != protocol.LeaseNone && !f.Listed:
		l.lookAt(time.Now().Add(recheck))
	}
}

// write writes what the move says, to which fill adds what is to be told, and
// answers. It reports whether that is certain to have happened.
func (l *life) write(ctx context.Context, m protocol.Move, fill func(*workload.State)) bool {
	next, d := l.draft(m)
	if fill != nil {
		fill(&next)
	}
	if !l.put(ctx, next) {
		return false
	}
	l.answerAs(d.Asks, next.Reason)
	l.answerSleep(d.Sleeps)
	return true
}

// draft makes the state that a move writes. A new phase keeps nothing of the
// one before but the record of its cold start and until when it is kept awake.
func (l *life) draft(m protocol.Move) (workload.State, protocol.Draft) {
	var before workload.State
	if l.drain != nil {
		before = l.drain.from
	}
	d, _ := m.Draft(l.st.Phase, l.st.Generation, before.Phase)
	now, next := time.Now(), l.st
	switch {
	case d.Replicas == protocol.ReplicasBefore:
		next = before
		next.Since, next.KeptUntil = now, l.st.KeptUntil
	case d.Anew:
		next = workload.State{Since: now, Wake: l.st.Wake, KeptUntil: l.st.KeptUntil}
	}
	next.Phase, next.Generation, next.Replicas = d.Phase, d.Generation, l.replicas(d.Replicas)
	switch d.Lease {
	case protocol.LeaseMine:
		next.Owner, next.LeaseUntil = l.s.cfg.Owner, now.Add(l.s.cfg.Lease)
	case protocol.LeaseLapsed:
		next.LeaseUntil = time.Time{}
	default:
		next.Owner, next.LeaseUntil = "", time.Time{}
	}
	return next, d
}

func (l *life) replicas(which protocol.Replicas) []workload.Replica {
	switch which {
	case protocol.ReplicasKept:
		return l.st.Replicas
	case protocol.ReplicasBefore:
		return l.drain.from.Replicas
	case protocol.ReplicasTried:
		return l.proof.answered
	case protocol.ReplicasProved:
		proved, _ := l.proved()
		return proved
	}
	return nil
}
