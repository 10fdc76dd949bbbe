package activator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

func TestAFreshReplicaGetsAFewAndMoreAsItAnswers(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(100)
		r.see(ready(1, 1))
		require.Equal(t, 4, served(calls))
		for _, c := range calls[:4] {
			require.NoError(t, c.error(), "first come, first served")
			c.lease().Answered()
		}
		rest(0)
		require.Equal(t, 12, served(calls), "one for each answer, and one more")
		for _, c := range calls[4:12] {
			c.lease().Answered()
		}
		rest(0)
		require.Equal(t, 28, served(calls), "8 in flight without an answer became 16")
		release(calls[:12]...)
		assert.Equal(t, 28, served(calls), "one answer counts once")
	})
}

func TestTheFirstWindowGrowsWithTheReplicas(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(20)
		r.see(ready(1, 1, ids(3)...))
		assert.Equal(t, 12, served(calls))
		for _, v := range r.view().Replicas {
			assert.Greater(t, v.InFlight, 0)
		}
	})
}

func TestThoseWhoseAnswerIsLongInComingHoldUpNobodyForLong(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(1000) // long polls all of them
		r.see(ready(1, 1))
		for want := 4; want < 1000; want *= 2 {
			require.Equal(t, want, served(calls))
			rest(50 * time.Millisecond)
		}
		assert.Equal(t, 1000, served(calls))
		assert.Equal(t, 1000, r.view().InFlight)
		r.pass(activator.Ask{})
	})
}

func TestAReplicaThatAnswersIsNotHurried(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(40)
		r.see(ready(1, 1))
		for i := range 6 {
			rest(30 * time.Millisecond)
			require.Equal(t, 4+2*i, served(calls))
			calls[i].lease().Answered()
		}
	})
}

func TestAFixedConcurrencyIsKeptTo(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 3}, func(t *testing.T, r *rig) {
		calls := r.held(10)
		r.see(ready(1, 1))
		rest(time.Second)
		require.Equal(t, 3, served(calls))
		calls[1].lease().Answered()
		rest(0)
		require.Equal(t, 4, served(calls))
		release(calls[0], calls[2])
		require.Equal(t, 6, served(calls))
	})
}

func TestNewArrivalsGoBehindThoseWhoAreStillHeld(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 2}, func(t *testing.T, r *rig) {
		calls := r.held(3)
		r.see(ready(1, 1))
		late := r.ask(activator.Ask{})
		require.False(t, late.done())
		release(calls[0])
		require.NoError(t, calls[2].error())
		require.False(t, late.done())
		release(calls[1])
		require.NoError(t, late.error())
		assert.True(t, late.lease().Times().Queued.Equal(late.lease().Times().Opened))
		r.pass(activator.Ask{}) // nobody is held: the gate is open to all
		r.pass(activator.Ask{})
	})
}

func TestTheGateIsOpenToAllOnceTheLastOfTheHeldHasLeft(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 1}, func(t *testing.T, r *rig) {
		calls := r.held(2)
		r.see(ready(1, 1))
		require.Equal(t, 1, served(calls))
		calls[1].leave(nil)
		require.ErrorIs(t, calls[1].error(), activator.ErrCanceled)
		r.pass(activator.Ask{})
	})
}

func TestAWorkloadThatDiesWhileRequestsAreLetGoKeepsTheRest(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(10)
		watcher := r.ask(activator.Ask{NoWake: true})
		require.ErrorIs(t, watcher.error(), activator.ErrAsleep)
		r.see(ready(1, 1))
		watcher = r.ask(activator.Ask{NoWake: true}) // behind the others
		require.False(t, watcher.done())
		r.see(state(workload.Asleep, 1, 2))
		require.ErrorIs(t, watcher.error(), activator.ErrAsleep)
		require.Equal(t, 4, served(calls))
		release(calls[:4]...) // late answers of a replica that is gone
		rest(time.Second)
		require.Equal(t, 4, served(calls))
		assert.Equal(t, 6, r.view().Queued)

		r.see(ready(2, 3))
		require.Equal(t, 8, served(calls), "a fresh replica, a fresh pace")
		for _, c := range calls[4:8] {
			assert.Equal(t, "r2", c.lease().Replica().ID)
		}
		failed := state(workload.Failed, 3, 5)
		r.see(failed)
		assert.Equal(t, 8, served(calls))
		for _, c := range calls[8:] {
			var f *activator.FailedError
			assert.ErrorAs(t, c.error(), &f)
		}
		assert.Zero(t, r.view().Queued)
	})
}

func TestAReplacedReplicaIsPacedAnew(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(20)
		r.see(ready(1, 1))
		require.Equal(t, 4, served(calls))
		r.see(ready(2, 2))
		require.Equal(t, 8, served(calls))
		release(calls[:4]...)
		assert.Equal(t, 8, served(calls), "the old one's answers say nothing of the new one")
		assert.Equal(t, "r2", calls[7].lease().Replica().ID)
	})
}

func TestAnotherReplicaWhileRequestsAreLetGoTakesItsShare(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		calls := r.held(20)
		r.see(ready(1, 1, "a"))
		r.see(ready(1, 2, "a", "b"))
		require.Equal(t, 4, served(calls))
		release(calls[:4]...)
		require.Equal(t, 12, served(calls))
		v := r.view()
		assert.Equal(t, []int{4, 4}, []int{v.Replicas[0].InFlight, v.Replicas[1].InFlight})
	})
}
