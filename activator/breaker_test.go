package activator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// fail has n requests in a row fail at a replica, whatever the others get.
func (r *rig) fail(id string, n int) {
	for try := 0; n > 0; try++ {
		require.Less(r.t, try, 10_000, "%s is not chosen", id)
		c := r.pass(activator.Ask{})
		if c.lease().Replica().ID == id {
			c.lease().Failed()
			n--
		}
		release(c)
	}
}

// taken counts where the next n requests go, all of them under way at once.
func (r *rig) taken(n int) map[string]int {
	count, calls := map[string]int{}, []*call{}
	for range n {
		c := r.pass(activator.Ask{})
		count[c.lease().Replica().ID]++
		calls = append(calls, c)
	}
	release(calls...)
	return count
}

func everyStrategy(t *testing.T, test func(t *testing.T, r *rig)) {
	for name, s := range map[string]workload.Strategy{
		"least in flight": workload.StrategyLeastInFlight, "fastest": workload.StrategyFastest, "round robin": workload.StrategyRoundRobin,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, activator.Config{}, func(t *testing.T, r *rig) { r.by(s); test(t, r) })
		})
	}
}

func TestAReplicaThatFailsIsPassedOverAndTriedByOneRequestAtATime(t *testing.T) {
	everyStrategy(t, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		r.fail("a", 5)
		assert.Equal(t, map[string]int{"b": 50}, r.taken(50))
		pause := time.Second
		for range 8 { // up to a minute
			rest(pause - 10*time.Millisecond)
			assert.Equal(t, map[string]int{"b": 50}, r.taken(50))
			rest(20 * time.Millisecond)
			var tried *call
			for range 50 {
				c := r.pass(activator.Ask{})
				if c.lease().Replica().ID == "a" {
					assert.Nil(t, tried, "one is enough")
					tried = c
					continue
				}
				c.lease().Answered()
				release(c)
			}
			if !assert.NotNil(t, tried, "nobody tried it after %s", pause) {
				return
			}
			tried.lease().Failed()
			tried.lease().Answered() // a 502 is an answer too
			release(tried)
			pause = min(2*pause, time.Minute)
		}
		rest(2 * time.Minute)
		for answered := false; !answered; {
			c := r.pass(activator.Ask{})
			answered = c.lease().Replica().ID == "a"
			c.lease().Answered()
			release(c)
		}
		assert.Positive(t, r.taken(50)["a"], "it is back")
	})
}

func TestATryThatHangsHoldsUpTheNextNoLongerThanThePause(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		r.fail("a", 5)
		for range 3 {
			rest(time.Second + time.Millisecond)
			count := map[string]int{}
			for range 50 { // and none of them ends
				count[r.pass(activator.Ask{}).lease().Replica().ID]++
			}
			assert.Equal(t, 1, count["a"])
		}
	})
}

func TestTheLastReplicaIsNeverTakenOut(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a"))
		r.fail("a", 20)
		assert.Equal(t, map[string]int{"a": 5}, r.taken(5))
	})
	everyStrategy(t, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		r.fail("a", 5)
		r.fail("b", 5)
		assert.Len(t, r.taken(50), 2, "all that there is")
	})
}

func TestFailuresCountInARowAndNotFromAnEarlierStart(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		for range 5 {
			r.fail("a", 4)
			r.shares(20, nil, true) // answers of both
		}
		assert.Len(t, r.taken(50), 2)
		r.fail("a", 5)
		assert.Len(t, r.taken(50), 1)
		r.see(ready(2, 2, "a-again", "b"))
		assert.Len(t, r.taken(50), 2)
	})
}

func TestARequestFailsOnce(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		c := r.pass(activator.Ask{})
		for range 10 {
			c.lease().Failed()
		}
		release(c)
		assert.Len(t, r.taken(50), 2)
		new(activator.Lease).Failed() // does nothing
	})
}
