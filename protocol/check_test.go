package protocol_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/explore"
)

var deep = flag.Bool("deep", false, "explore the scopes that take minutes, too")

func (m model) explore() (explore.Model[world], explore.Result[world]) {
	e := explore.Model[world]{
		Initial: m.beginning(), Next: m.turns, Good: m.resting, Describe: describe, State: show, Limit: m.limit,
	}
	return e, explore.Run(e)
}

// The faults, by what they happen to.
var (
	faultsOfGates   = some(theDrainIsLost, theAnswerIsLost, theDrainTimesOut, itCrashes, itIsCutOff, itLeaves, itsClientLeaves)
	faultsOfScalers = some(itCrashes, itCrashesForGood, itLeaves, theLeaseIsLost, itIsAway, itGetsTheWakeToo, aMove, itIsAskedToSleep)
	faultsOfRuntime = some(itDies, itIsStartedByHand, theStartFails, theStopFails, itsTimeIsOver)
	anyFault        = faultsOfGates | faultsOfScalers | faultsOfRuntime
)

// Scopes that are explored. No world is both wide and full of faults: what
// two gateways can do to each other needs few faults, and what many faults can
// do in a row needs one gateway.
var (
	wide       = scope{gateways: 2, scalers: 2, requestsMost: 2, limit: 200_000}
	wideBroken = scope{gateways: 2, scalers: 2, requestsMost: 1, faults: 1, kinds: faultsOfRuntime, limit: 1_000_000}
	gates      = scope{gateways: 2, scalers: 1, requestsMost: 1, faults: 1, kinds: faultsOfGates, limit: 1_000_000}
	takeover   = scope{gateways: 1, scalers: 2, requestsMost: 1, faults: 1, kinds: anyFault, limit: 1_000_000}
	narrow     = scope{gateways: 1, scalers: 1, requestsMost: 1, faults: 1, kinds: anyFault, limit: 100_000}
	twice      = scope{gateways: 1, scalers: 1, requestsMost: 1, faults: 2, kinds: anyFault, limit: 1_000_000}

	deepCrash = scope{gateways: 2, scalers: 2, requestsMost: 1, faults: 1, kinds: faultsOfScalers, limit: 12_000_000}
	deepGates = scope{gateways: 2, scalers: 2, requestsMost: 1, faults: 1, kinds: faultsOfGates, limit: 12_000_000}
	deepTwice = scope{gateways: 1, scalers: 2, requestsMost: 1, faults: 2, kinds: faultsOfScalers | faultsOfRuntime, limit: 12_000_000}
	deepOften = scope{gateways: 1, scalers: 1, requestsMost: 1, faults: 3, kinds: anyFault, limit: 12_000_000}
)

func TestTheRulesHoldInEveryState(t *testing.T) {
	cases := []struct {
		name string
		scope
		slow, deep bool // not with the race detector; only when asked for
	}{
		{"2 gateways, 2 scalers, 2 requests, no fault", wide, false, false},
		{"2 gateways, 2 scalers, the runtime fails once", wideBroken, true, false},
		{"2 gateways, which fail once", gates, true, false},
		{"2 scalers, anything fails once", takeover, true, false},
		{"1 of each, anything fails once", narrow, false, false},
		{"1 of each, anything fails twice", twice, true, false},
		{"2 gateways, 2 scalers, which fail once", deepCrash, true, true},
		{"2 gateways, which fail once, 2 scalers", deepGates, true, true},
		{"2 scalers, fail twice with the runtime", deepTwice, true, true},
		{"1 of each, anything fails three times", deepOften, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.deep && !*deep {
				t.Skip("takes minutes: -deep")
			}
			if c.slow && raceDetector {
				c.faults-- // the race detector has nothing to find here
			}
			holds(t, c.scope)
		})
	}
}

func holds(t *testing.T, sc scope) {
	t.Helper()
	begun := time.Now()
	e, r := model{theRules(), sc}.explore()
	t.Logf("%d states, %d transitions, depth %d, %s", r.States, r.Transitions, r.Depth, time.Since(begun).Round(time.Millisecond))
	if r.Wrong != "" {
		require.Fail(t, e.Tell(r))
	}
}
