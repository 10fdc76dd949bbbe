package protocol

import "github.com/rouse-dev/rouse/workload"

// Next is the next step of a scaler. It remembers nothing: a move that could
// not be made follows from the same facts once more, or another does if
// somebody else was faster.
func Next(f Facts) Step {
	switch f.Phase {
	case workload.Waking:
		if f.Wake.Own {
			return f.wake()
		}
		return f.takeUp()
	case workload.Ready:
		return f.serve()
	case workload.Draining:
		if f.Drain.Own {
			return f.sleep()
		}
		return f.settle()
	}
	return f.rest()
}

// rest is the step in Asleep and Failed.
func (f Facts) rest() Step {
	var s Step
	if f.BackOff {
		s.Asks, f.Asked = AnswerDone, false
	}
	switch {
	case f.Lease != LeaseNone:
		s.Move = f.giveUp()
		if f.Asked && s.Move == LeaveAlone {
			s.Asks = AnswerLater
		}
		return s
	case f.Task != TaskNone:
		return s // a start that another scaler overtook is ending
	case f.Listed && !f.Runs:
		s.Sleeps, f.Sleep = SleepDone, false
	}
	switch {
	case f.Asked:
		s.Move = BeginWake
	case f.Sleep && f.Runs:
		s.Move, s.Explicit = BeginSleep, true
	case f.Proved && f.Listed:
		s.Move = Adopt
	case f.Warm && !f.BackOff:
		s.Move = KeepWarm
	case f.Unwritten && f.Listed && !f.Runs: // gateways may know it ready, from the store before
		s.Move = FallAsleep
	}
	return s
}

// giveUp is the step in a Failed that has an owner, who stops what was given
// up: what still answers may be gone in a moment, and is not to be adopted.
func (f Facts) giveUp() Move {
	switch {
	case f.Lease == LeaseHeld:
		return LeaveAlone
	case f.Lease == LeaseLapsed && f.Task == TaskNone:
		return TakeOver
	case f.Task != TaskNone || !f.Listed || f.Renewal:
		return f.hold().Move
	case f.Runs && !f.Broken:
		return ResumeStop
	case f.Asked:
		return BeginWake
	}
	return Release
}

// takeUp decides about a wake that is not carried out by this scaler: it was
// begun by another, or by one of this name before it ended. It goes on only if
// there is a reason to: something runs, or somebody asks.
func (f Facts) takeUp() Step {
	switch {
	case f.Lease == LeaseHeld:
		return Step{Move: LeaveAlone, Asks: AnswerLater}
	case f.Task != TaskNone: // something of former days is still ending
		return Step{}
	case !f.Asked && !f.Listed:
		return Step{}
	case !f.Asked && !f.Runs:
		return Step{Move: FallAsleep}
	case f.Lease == LeaseMine:
		return Step{Move: Resume}
	}
	return Step{Move: TakeOver}
}

// wake is the step in a wake of this scaler's own.
func (f Facts) wake() Step {
	w := f.Wake
	switch {
	case w.Failed && f.Task == TaskNone && w.Called && !w.Logged:
		return Step{Move: FetchLogs}
	case w.Failed && f.Task == TaskNone && w.GivenUp:
		return Step{Move: GiveUp}
	case w.Failed && f.Task == TaskNone:
		return Step{Move: Fail}
	case w.Failed: // once the task has ended
	case w.Started && f.Proved:
		return Step{Move: Announce}
	case w.Done && f.Task == TaskNone:
		return Step{Move: Complete}
	case w.Started && w.Late:
		return Step{Move: Doom}
	case w.Started && !f.Runs && !w.Found, w.Started && f.Runs && w.Hopeless:
		return Step{Move: Doom}
	case w.Turn != TurnTaken && w.Late:
		return Step{Move: Doom}
	case f.Renewal:
		return Step{Move: Renew}
	case w.Turn != TurnTaken && f.Task == TaskNone:
		return f.turn()
	case w.Started && !f.Runs && f.Task == TaskNone: // it was dying when it was found
		return Step{Move: Start}
	case !w.Begun && f.Task == TaskNone:
		return Step{Move: Start}
	}
	return Step{}
}

// hold keeps the lease. It comes before every call of the platform: who was
// held up for longer than a lease lasts learns by it that another has gone on.
func (f Facts) hold() Step {
	if f.Renewal {
		return Step{Move: Renew}
	}
	return Step{}
}

// serve is the step in Ready.
func (f Facts) serve() Step {
	switch {
	case f.Listed && f.Match != MatchAll:
		return f.trueUp()
	case f.Task != TaskNone:
		return Step{}
	case f.Refused && f.Trial == TrialNone:
		return Step{Move: TryAll}
	case f.Refused && f.Trial == TrialBad:
		return Step{Move: BeginWake}
	case f.Refused:
		return Step{Move: AnnounceTried}
	case f.Shut:
		return Step{Move: AnnounceAgain}
	}
	s := Step{Asks: AnswerDone}
	if f.Barred {
		s.Sleeps, f.Sleep = SleepBarred, false
	}
	switch {
	case f.Sleep:
		s.Move, s.Explicit = BeginSleep, true
	case f.Listed && f.Idle:
		s.Move = BeginSleep
	}
	return s
}

// trueUp makes the state say what runs.
func (f Facts) trueUp() Step {
	switch {
	case f.Match == MatchSome:
		return Step{Move: TrueUp}
	case f.Proved:
		return Step{Move: Adopt}
	}
	return Step{Move: FallAsleep}
}

// sleep is the step in a drain of this scaler's own. While the gateways are
// being asked nothing is called off: a gate that closed after the news of its
// reopening would stay closed.
func (f Facts) sleep() Step {
	d := f.Drain
	var s Step
	switch {
	case d.Stopped:
		return Step{Move: FallAsleep}
	case f.Task != TaskNone: // the drain or the stop is under way
		return f.hold()
	}
	if d.Explicit && f.Barred {
		s.Sleeps, f.Sleep = SleepBarred, false
	}
	switch {
	case f.calledOff():
		s.Move = Reopen
	case d.Recorded && f.Renewal:
		s.Move = Renew
	case d.Recorded:
		s.Move = Stop
	case d.Resting:
		return f.hold()
	case !d.Answered:
		s.Move = AskGateways
	case !d.Said.Busy(d.Explicit):
		s.Move = RecordStop
	case d.Explicit && !d.Over:
		s.Move = AskLater
	default:
		s.Move, s.Sleeps = Reopen, SleepBusy
	}
	return s
}

// calledOff reports whether there is a reason not to stop it after all.
func (f Facts) calledOff() bool {
	if f.Drain.Explicit {
		return !f.Sleep
	}
	return f.Barred || f.Asked || f.Warm
}

// settle decides what becomes of a drain that nobody carries out any more: its
// scaler died, or the stop failed. A stop that was written down is carried
// out: it may be under way on the platform, and what still answers be gone in
// a moment; no gate has opened since. Any other drain is settled by what runs.
func (f Facts) settle() Step {
	switch {
	case f.Lease == LeaseHeld:
		return Step{Move: LeaveAlone, Asks: AnswerLater}
	case f.Task != TaskNone:
		return Step{}
	case f.Lease != LeaseMine:
		return Step{Move: TakeOver}
	case f.Renewal:
		return Step{Move: Renew}
	case f.stopping() && !f.Listed:
		return Step{}
	case f.stopping() && f.Runs:
		return Step{Move: ResumeStop}
	case f.Asked:
		return Step{Move: BeginWake}
	case !f.Listed:
		return Step{}
	case !f.Runs:
		return Step{Move: FallAsleep}
	case !f.Proved: // until one is, or has ended
		return Step{}
	case f.Match != MatchNone:
		return Step{Move: Restore}
	}
	return Step{Move: Adopt}
}

// stopping reports whether the stop of a drain may be under way.
func (f Facts) stopping() bool { return f.Cleared && !f.Broken }

// MayProve reports whether what runs is to be proved now, which it is where
// that could matter: not what is about to be stopped, nor what another scaler
// has in hand.
func (f Facts) MayProve() bool {
	others := f.Lease == LeaseHeld || f.Lease == LeaseLapsed
	return !others && !f.Wake.Failed && f.Task != TaskStart && f.Task != TaskStop
}

// Leave is the last move of a scaler that ends: it lets go of its lease, so
// that the next one need not wait for it to run out, and a drain whose stop
// has not begun is called off.
func Leave(f Facts) Move {
	switch {
	case f.Lease != LeaseMine:
		return Wait
	case f.Drain.Own && f.Task != TaskStop && !f.Drain.Stopped:
		return Reopen
	}
	return LetGo
}
