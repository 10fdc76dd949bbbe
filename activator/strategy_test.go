package activator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// shares sends n requests and counts them by replica; each is answered after
// what its replica takes, and then released if it is to be.
func (r *rig) shares(n int, takes map[string]time.Duration, end bool) map[string]int {
	count := map[string]int{}
	for range n {
		c := r.pass(activator.Ask{})
		id := c.lease().Replica().ID
		count[id]++
		rest(takes[id])
		c.lease().Answered()
		if end {
			release(c)
		}
	}
	return count
}

func TestLeastInFlightEvensOutWhatIsInFlight(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, ids(4)...))
		for id, n := range r.shares(400, nil, false) {
			assert.InDelta(t, 100, n, 5, id)
		}
	})
}

func TestRoundRobinTakesOneAfterTheOther(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.by(workload.StrategyRoundRobin)
		r.see(ready(1, 1, ids(3)...))
		for range 5 {
			assert.Len(t, r.shares(3, nil, true), 3)
		}
	})
}

func TestFastestPrefersTheFastButDoesNotForgetTheSlow(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.by(workload.StrategyFastest)
		r.see(ready(1, 1, "a", "b"))
		takes := map[string]time.Duration{"a": 100 * time.Millisecond, "b": 10 * time.Millisecond}
		first := r.shares(200, takes, true)
		require.Equal(t, 1, first["a"], "one try tells")
		assert.Equal(t, 199, first["b"])

		rest(20 * time.Second) // what was measured is out of date
		takes["a"], takes["b"] = takes["b"], takes["a"]
		second := r.shares(200, takes, true)
		assert.Equal(t, 1, second["b"])
		assert.Equal(t, 199, second["a"])
	})
}

func TestFastestTriesAnUnknownReplicaWithOneRequestAtATime(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.by(workload.StrategyFastest)
		r.see(ready(1, 1, "a"))
		r.shares(3, map[string]time.Duration{"a": time.Millisecond}, true)
		r.see(ready(1, 2, "a", "new"))
		count := map[string]int{}
		for range 20 { // "new" hangs
			c := r.pass(activator.Ask{})
			count[c.lease().Replica().ID]++
			if c.lease().Replica().ID == "a" {
				release(c)
			}
		}
		assert.Equal(t, map[string]int{"a": 19, "new": 1}, count)
	})
}

func TestAPreferredReplicaIsTakenWhileItMayBeUsed(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		held := r.held(1)
		r.see(ready(1, 1, ids(4)...))
		key := held[0].lease().Key()
		id := held[0].lease().Replica().ID
		release(held...)
		require.NotEmpty(t, key)
		var loaded []*call
		for range 20 {
			c := r.pass(activator.Ask{Prefer: key})
			assert.Equal(t, id, c.lease().Replica().ID, "however loaded it is")
			loaded = append(loaded, c)
		}
		release(loaded...)
		r.see(state(workload.Asleep, 1, 2))
		c := r.ask(activator.Ask{Prefer: key})
		r.see(ready(1, 3, ids(4)...))
		assert.Equal(t, id, c.lease().Replica().ID, "after a hold too")
		release(c)

		r.fail(id, 5)
		assert.NotEqual(t, id, r.pass(activator.Ask{Prefer: key}).lease().Replica().ID, "its breaker is open")
		assert.NotEmpty(t, r.pass(activator.Ask{Prefer: "unknown"}).lease().Key())
		assert.Empty(t, new(activator.Lease).Key())
	})
}
