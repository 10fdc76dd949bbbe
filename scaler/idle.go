package scaler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

// recheck is how often something that may not sleep for a reason other than
// its use is looked at again.
const recheck = time.Second

// keepLook is how late it may be seen that somebody has a workload kept awake
// for less than its idle timeout, and how long after a sleep that was called
// off the next one of such a workload may begin.
const keepLook = 15 * time.Second

// awakeReason says, as an error, why w may not sleep now whatever its use; nil
// if it may. It wraps ErrUnsure or ErrInUse.
func (s *Scaler) awakeReason(w workload.Workload, now time.Time) error {
	if err := s.unsure(now); err != nil {
		return err
	}
	if by := s.neededBy(w.Name); by != "" {
		return fmt.Errorf("%w: %s needs it", ErrInUse, by)
	}
	return nil
}

// unsure says, as an error that wraps ErrUnsure, why a request could be under
// way that nobody here knows of: the gateways have not had the time to be
// heard, there is none, or one went silent that may have been cut off and be
// serving still. nil if every gateway there is was heard.
func (s *Scaler) unsure(now time.Time) error {
	since := s.sighted.Load()
	switch {
	case since == nil || !s.deps.Connected():
		return fmt.Errorf("%w: the events are away", ErrUnsure)
	case now.Sub(*since) < workload.Gone:
		return fmt.Errorf("%w: gateways may not have been heard yet", ErrUnsure)
	case len(s.deps.Board.Alive(now)) == 0:
		return fmt.Errorf("%w: no gateway is heard", ErrUnsure)
	}
	if silent := s.silentGateways(now); len(silent) > 0 {
		return fmt.Errorf("%w: nothing is heard of gateway %s", ErrUnsure, silent[0])
	}
	return nil
}

// silentGateways are those that may have been cut off and be serving still.
func (s *Scaler) silentGateways(now time.Time) []string {
	since := s.sighted.Load()
	if since == nil {
		return nil // no gateway can be heard
	}
	return s.deps.Board.Silent(now, *since, now.Add(-s.cfg.LostGateway))
}

// tellOfSilence logs once that nothing is put to sleep for the sake of a
// gateway, and when that is over.
func (s *Scaler) tellOfSilence(now time.Time) {
	silent := s.silentGateways(now)
	if slices.Equal(silent, s.silent) {
		return
	}
	s.silent = silent
	if len(silent) > 0 {
		s.log.Warn("nothing is put to sleep: gateways are silent that may be serving", "gateways", silent, "at_most", s.cfg.LostGateway)
	} else {
		s.log.Info("no gateway is silent any more that may be serving")
	}
}

// neededBy names a workload that is awake and depends on name; empty if there
// is none.
func (s *Scaler) neededBy(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, by := range s.dependants[name] {
		st := s.lives[by].glimpse().state
		if protocol.TurnOf(st) != protocol.TurnTaken {
			continue // nothing of it is started yet, and it may wait for who needs name
		}
		switch st.Phase {
		case workload.Waking, workload.Ready, workload.Draining:
			return by
		}
	}
	return ""
}

// idleAt is when w will have been idle for its timeout, if nothing uses it
// from now on; zero if it never sleeps on its own. It could first be used at
// ready, and idle counts from floor at the earliest.
func (s *Scaler) idleAt(w workload.Workload, ready, floor, now time.Time) time.Time {
	if w.IdleTimeout <= 0 || warm(w, now) {
		return time.Time{}
	}
	use := s.deps.Board.Use(w.Name, now)
	if !use.KeptUntil.After(ready) {
		return latest(use.LastUsed, floor).Add(w.IdleTimeout)
	}
	// Whoever had it kept said how long, in place of IdleTimeout.
	at := latest(use.LastUsed.Add(w.IdleTimeout), use.KeptUntil)
	if floor.After(ready) { // a sleep was called off since, or somebody depended on it
		at = latest(at, floor.Add(keepLook))
	}
	return at
}

// warm reports whether w is to be kept awake at t by what its description says.
func warm(w workload.Workload, t time.Time) bool {
	_, in := keepWarm(w).At(t)
	return in || w.Min > 0
}

// keepWarm is w's windows; a text that cannot be read, which the catalog
// tells of, has none.
func keepWarm(w workload.Workload) workload.Windows {
	if w.KeepWarm == "" {
		return nil
	}
	ws, err := workload.ParseWindows(w.KeepWarm)
	if err != nil {
		return nil
	}
	return ws
}

// idle puts a ready workload to sleep once its time has come, and otherwise
// says when to look again.
func (l *life) idle(now time.Time) (due bool) {
	if err := l.s.awakeReason(l.spec, now); err != nil {
		if errors.Is(err, ErrInUse) {
			l.floor = now // a dependant's use is use
		}
		l.lookAt(now.Add(recheck))
		return false
	}
	l.lookAtWindows(now)
	at := l.s.idleAt(l.spec, l.readySince, l.floor, now)
	if at.IsZero() {
		return false
	}
	at = latest(at, l.st.KeptUntil)
	l.lookAt(at)
	l.lookAt(now.Add(keepLook)) // it may be kept for less than it would be idle
	return !now.Before(at)
}
