package activator_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// refused is what a router does whose dial was refused.
func (r *rig) refused(c *call) *call {
	id := c.lease().Replica().ID
	release(c)
	return r.ask(activator.Ask{Refused: id})
}

func TestARefusedRequestGoesToAnotherReplica(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a", "b"))
		c := r.pass(activator.Ask{})
		bad := c.lease().Replica().ID
		next := r.refused(c)
		require.NoError(t, next.error())
		require.NotEqual(t, bad, next.lease().Replica().ID)
		for range 50 { // and so do those that come after it
			c := r.pass(activator.Ask{})
			require.NotEqual(t, bad, c.lease().Replica().ID)
		}
		assert.Empty(t, r.wakes.all())

		rest(time.Second) // then it has another chance
		back := false
		for range 50 {
			back = back || r.pass(activator.Ask{}).lease().Replica().ID == bad
		}
		assert.True(t, back)
	})
}

func TestARequestRefusedByAllIsHeldAndAsksForProof(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(4, 1, "a", "b"))
		c := r.refused(r.refused(r.pass(activator.Ask{})))
		require.False(t, c.done())
		wakes := r.wakes.all()
		require.Len(t, wakes, 1)
		assert.True(t, wakes[0].Unreachable)
		assert.Equal(t, uint64(4), wakes[0].Generation)

		r.see(state(workload.Waking, 5, 2)) // it was dead indeed
		rest(1200 * time.Millisecond)
		require.False(t, c.done())
		last := r.wakes.all()[len(r.wakes.all())-1]
		assert.False(t, last.Unreachable)
		r.see(ready(5, 3))
		require.NoError(t, c.error())
		require.NotNil(t, c.lease().Wake(), "it waited for a start after all")
		assert.Equal(t, "r5", c.lease().Replica().ID)
	})
}

func TestTheOnlyReplicaIsTriedAgainOnceTheStoreStillSaysReady(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.pass(activator.Ask{})
		for _, pause := range []time.Duration{50, 100, 200, 400, 800, 1000, 1000, 1000} {
			c = r.refused(c) // it restarts its listener, and takes its time
			rest((pause - 1) * time.Millisecond)
			require.False(t, c.done(), "tried again before %d ms", pause)
			rest(time.Millisecond)
			require.True(t, c.done(), "not tried again after %d ms", pause)
			require.NoError(t, c.error())
		}
		assert.GreaterOrEqual(t, len(r.wakes.all()), 8)
		assert.True(t, c.lease().Cold())
		assert.Nil(t, c.lease().Wake(), "nothing was started")
		assert.Equal(t, "r1", c.lease().Replica().ID)

		c.lease().Answered()
		c = r.refused(c)
		rest(50 * time.Millisecond)
		assert.True(t, c.done(), "an answer makes the next refusal the first in a row")
	})
}

func TestNothingIsTriedAgainBeforeTheAskHasReturned(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		r.wakes.answer(func(workload.Wake) error {
			time.Sleep(400 * time.Millisecond)
			return nil
		})
		c := r.refused(r.pass(activator.Ask{}))
		rest(399 * time.Millisecond)
		late := r.ask(activator.Ask{})
		require.False(t, c.done(), "its address may be another's by now")
		require.False(t, late.done())
		rest(time.Millisecond)
		assert.True(t, c.done())
	})
}

func TestAStoreThatCannotBeAskedDoesNotTakeAReplicaOut(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		r.wakes.answer(func(workload.Wake) error { return errors.New("no servers") })
		c := r.refused(r.pass(activator.Ask{}))
		rest(50 * time.Millisecond)
		require.NoError(t, c.error())
		assert.True(t, c.done())
	})
}

func TestManyRequestsRefusedAtOnceAreOneRefusal(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		var calls []*call
		for range 20 {
			calls = append(calls, r.pass(activator.Ask{}))
		}
		late := r.ask(activator.Ask{})
		for i, c := range calls {
			calls[i] = r.refused(c)
			require.False(t, calls[i].done())
		}
		behind := r.ask(activator.Ask{})
		require.Len(t, r.wakes.all(), 1)
		rest(49 * time.Millisecond)
		require.Zero(t, served(calls))
		rest(time.Millisecond)
		require.Equal(t, 1, served(calls), "one tries it for all")
		require.False(t, behind.done())
		for range 10 {
			for _, c := range calls {
				if c.done() {
					c.lease().Answered()
				}
			}
			rest(0)
		}
		assert.Equal(t, 20, served(calls))
		assert.NoError(t, behind.error())
		release(late)
	})
}

func TestHowOftenAReplicaRefusedIsNotCountedByRequest(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.by(workload.StrategyRoundRobin)
		r.see(ready(1, 1, "a", "b"))
		for range 20 {
			require.True(t, r.ask(activator.Ask{Refused: "a"}).done())
		}
		require.False(t, r.ask(activator.Ask{Refused: "b"}).done())
		rest(50 * time.Millisecond)
		require.True(t, r.ask(activator.Ask{Refused: "b"}).done())
		c := r.ask(activator.Ask{Refused: "a"}) // for the second time in a row
		rest(99 * time.Millisecond)
		require.False(t, c.done())
		rest(time.Millisecond)
		assert.True(t, c.done())
	})
}

func TestARefusedRequestComesBeforeThoseWhoHaveNotHadTheirTurn(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 1}, func(t *testing.T, r *rig) {
		calls := r.held(3)
		r.see(ready(1, 1))
		require.NoError(t, calls[0].error())
		first := r.refused(calls[0])
		require.True(t, calls[1].done(), "its place among those let go went to the next")
		second := r.refused(calls[1])
		require.False(t, calls[2].done())
		rest(50 * time.Millisecond)
		require.Equal(t, 1, served([]*call{first, second}))
		require.False(t, calls[2].done())
	})
}

func TestARefusalByAReplicaThatIsGoneIsNoNews(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.pass(activator.Ask{})
		r.see(ready(2, 2))
		next := r.refused(c)
		require.NoError(t, next.error())
		assert.Equal(t, "r2", next.lease().Replica().ID)
		assert.Empty(t, r.wakes.all())
	})
}

func TestNewerNewsOpensAGateThatReplicasRefused(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.refused(r.pass(activator.Ask{}))
		require.False(t, c.done())
		r.see(ready(1, 2))
		require.NoError(t, c.error())
		assert.True(t, c.done())
	})
}

func TestNobodyNeedsToWaitForAGateToTryAgain(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.refused(r.pass(activator.Ask{}))
		c.leave(nil)
		rest(time.Hour)
		r.pass(activator.Ask{})
	})
}

func TestARefusedRequestThatMustNotWakeIsNotHeld(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.pass(activator.Ask{NoWake: true})
		release(c)
		assert.ErrorIs(t, r.ask(activator.Ask{NoWake: true, Refused: "r1"}).error(), activator.ErrAsleep)
		assert.Empty(t, r.wakes.all())
		rest(time.Minute)
		counted := r.ask(activator.Ask{})
		rest(50 * time.Millisecond)
		assert.NoError(t, counted.error())
	})
}
