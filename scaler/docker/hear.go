package docker

import (
	"strconv"
	"strings"
	"time"

	"github.com/docker/docker/api/types/events"

	"github.com/rouse-dev/rouse/scaler"
)

// killed is the exit code of what SIGKILL ended: asked for, or out of memory.
const killed = 137

// hear takes in one event of the engine. It never waits: an end is told at
// once, so that nobody dials a dead address, and what takes an inspect is
// left for a look. A stream that was resumed repeats old events; one that is
// older than the run that the view knows of is only a reason to look again.
func (v *view) hear(m events.Message, prefix prefixes) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := time.Unix(0, m.TimeNano)
	if m.Type == events.NetworkEventType {
		v.rewired(m.Actor.Attributes["container"])
		return
	}
	if m.Action == events.ActionCreate {
		v.born(m, prefix, at)
		return
	}
	e := v.entries[m.Actor.ID]
	if e == nil {
		return
	}
	if at.Before(e.startedAt) {
		v.soilWanted(e)
		return
	}
	v.happened(e, m, at)
}

func (v *view) happened(e *entry, m events.Message, at time.Time) {
	attributes := m.Actor.Attributes
	switch m.Action {
	case events.ActionStart, events.ActionPause, events.ActionUnPause, events.ActionUpdate:
		if !e.starting {
			v.soilWanted(e)
		}
	case events.ActionDie:
		v.died(e, exitCode(attributes["exitCode"]), at)
	case events.ActionOOM:
		e.outOfMemory = true
	case events.ActionKill:
		v.signalled(e, attributes["signal"], at)
	case events.ActionRename:
		v.rename(e, strings.TrimPrefix(attributes["name"], "/"))
	case events.ActionDestroy:
		v.destroyed(e, at)
	default:
		v.judged(e, m.Action, at)
	}
}

// born makes the entry of a container whose creation was seen. A repeated
// event may be about one that is gone again; the look finds out.
func (v *view) born(m events.Message, prefix prefixes, at time.Time) {
	if v.entries[m.Actor.ID] != nil {
		return
	}
	s := sight(prefix, m.Actor.ID, m.Actor.Attributes["name"], m.Actor.Attributes)
	s.created = at
	if e := v.meet(s); e != nil {
		e.known = true
		e.state = stateCreated
		v.soilWanted(e)
	}
}

func (v *view) soilWanted(e *entry) {
	if v.wanted(e) {
		v.soil(e)
	}
}

// rewired: a network was given to a container or taken from it. While it
// starts or ends this is part of that.
func (v *view) rewired(id string) {
	if e := v.entries[id]; e != nil && e.serving() && e.ending.IsZero() && !e.starting {
		v.soilWanted(e)
	}
}

// died ends the run that the view knows of. Where the cause may have been the
// memory, it is told after one look: the engine's event of that may be late.
func (v *view) died(e *entry, code int, at time.Time) {
	served := e.serving()
	end := scaler.Event{Kind: scaler.Died, ID: e.replicaID(), ExitCode: code, OOM: e.outOfMemory && code != 0, At: at}
	unexplained := code == killed && !e.outOfMemory && e.ending.IsZero()
	e.ending, e.outOfMemory = time.Time{}, false
	if served || e.frozen() { // else it is about a run not seen yet
		e.state, e.exitCode, e.finishedAt = stateExited, code, at
	}
	v.bump(e)
	switch {
	case !served:
		v.soilWanted(e) // a run that was not seen to begin, or paused
	case unexplained:
		e.pending = &end
		v.soilWanted(e)
	default:
		v.tellOf(e, end)
	}
}

// signalled notes that this run was asked to end.
func (v *view) signalled(e *entry, signal string, at time.Time) {
	asks := e.stopSignal
	if asks == "" {
		asks = signalNumber("")
	}
	if signal == asks || signal == signalNumber("KILL") {
		e.ending = at
		v.bump(e)
	}
}

// judged takes in a verdict of the health check.
func (v *view) judged(e *entry, action events.Action, at time.Time) {
	status, ok := strings.CutPrefix(string(action), string(events.ActionHealthStatus)+": ")
	if !ok || !e.serving() {
		return
	}
	if health := parseHealth(status); health != e.health {
		e.health = health
		v.bump(e)
		v.tellHealth(e, at)
	}
}

func exitCode(s string) int {
	code, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return code
}
