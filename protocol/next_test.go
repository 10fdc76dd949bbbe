package protocol_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/protocol"
	"github.com/rouse-dev/rouse/workload"
)

func ExampleNext() {
	f := protocol.Facts{Phase: workload.Ready, Listed: true, Runs: true, Proved: true, Match: protocol.MatchAll, Idle: true}
	fmt.Println(protocol.Next(f).Move)

	f.Phase, f.Lease, f.Drain = workload.Draining, protocol.LeaseMine, protocol.Drain{Own: true}
	fmt.Println(protocol.Next(f).Move)

	f.Drain.Answered, f.Drain.Said.Silent = true, true
	fmt.Println(protocol.Next(f).Move)
	// Output:
	// begin sleep
	// ask gateways
	// reopen
}

// What the model has not.
func TestNext(t *testing.T) {
	waking := protocol.Facts{Phase: workload.Waking, Lease: protocol.LeaseMine, Runs: true, Wake: protocol.Wake{Own: true, Begun: true, Called: true, Started: true}}
	draining := protocol.Facts{Phase: workload.Draining, Lease: protocol.LeaseMine, Runs: true, Drain: protocol.Drain{Own: true, Answered: true}}
	with := func(f protocol.Facts, change func(*protocol.Facts)) protocol.Facts { change(&f); return f }
	cases := map[string]struct {
		facts protocol.Facts
		want  protocol.Step
	}{
		"a window wakes":               {protocol.Facts{Warm: true}, protocol.Step{Move: protocol.KeepWarm}},
		"not before the back-off ends": {protocol.Facts{Phase: workload.Failed, Warm: true, BackOff: true}, protocol.Step{Asks: protocol.AnswerDone}},
		"what is unhealthy fails": {
			with(waking, func(f *protocol.Facts) { f.Wake.Hopeless = true }), protocol.Step{Move: protocol.Doom},
		},
		"one that is proved serves before others have failed": {
			with(waking, func(f *protocol.Facts) { f.Wake.Late, f.Proved = true, true }), protocol.Step{Move: protocol.Announce},
		},
		"a lease of some age is renewed": {
			with(waking, func(f *protocol.Facts) { f.Renewal = true }), protocol.Step{Move: protocol.Renew},
		},
		"a window calls a sleep off": {
			with(draining, func(f *protocol.Facts) { f.Warm = true }), protocol.Step{Move: protocol.Reopen},
		},
		"a sleep that was asked for waits for the last requests": {
			with(draining, func(f *protocol.Facts) { f.Sleep, f.Drain.Explicit, f.Drain.Said.InFlight = true, true, true }),
			protocol.Step{Move: protocol.AskLater},
		},
		"with a rest": {
			with(draining, func(f *protocol.Facts) {
				f.Sleep, f.Drain.Explicit, f.Drain.Answered, f.Drain.Resting = true, true, false, true
			}),
			protocol.Step{},
		},
		"but not for long": {
			with(draining, func(f *protocol.Facts) {
				f.Sleep, f.Drain.Explicit, f.Drain.Said.InFlight, f.Drain.Over = true, true, true, true
			}),
			protocol.Step{Move: protocol.Reopen, Sleeps: protocol.SleepBusy},
		},
		"and not for those who are held": {
			with(draining, func(f *protocol.Facts) { f.Sleep, f.Drain.Explicit, f.Drain.Said.Queued = true, true, true }),
			protocol.Step{Move: protocol.RecordStop},
		},
		"one of two replicas has ended": {
			protocol.Facts{Phase: workload.Ready, Listed: true, Runs: true, Proved: true, Match: protocol.MatchSome},
			protocol.Step{Move: protocol.TrueUp},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, protocol.Next(c.facts)) })
	}
}

func TestLeave(t *testing.T) {
	drain := protocol.Drain{Own: true}
	assert.Equal(t, protocol.Wait, protocol.Leave(protocol.Facts{Lease: protocol.LeaseHeld}))
	assert.Equal(t, protocol.LetGo, protocol.Leave(protocol.Facts{Lease: protocol.LeaseMine}))
	assert.Equal(t, protocol.Reopen, protocol.Leave(protocol.Facts{Lease: protocol.LeaseMine, Drain: drain}))
	assert.Equal(t, protocol.LetGo, protocol.Leave(protocol.Facts{Lease: protocol.LeaseMine, Drain: drain, Task: protocol.TaskStop}))
}

func TestEveryMoveHasItsName(t *testing.T) {
	seen := map[string]bool{}
	for m := protocol.Wait; m <= protocol.Reopen; m++ {
		assert.NotEmpty(t, m.String())
		seen[m.String()] = true
	}
	assert.Len(t, seen, int(protocol.Reopen)+1)
	assert.Equal(t, "reopen", protocol.Reopen.String())
}
