package activator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

func TestNewsMayComeInAnyOrderAndMoreThanOnce(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(2, 7))
		for _, late := range []workload.State{
			state(workload.Asleep, 1, 5), state(workload.Failed, 1, 3), state(workload.Waking, 2, 6), ready(2, 7),
		} {
			r.see(late)
			release(r.pass(activator.Ask{}))
		}
		r.see(state(workload.Asleep, 2, 9))
		r.see(state(workload.Draining, 2, 8))
		r.see(ready(2, 7))
		assert.Equal(t, workload.Asleep, r.gate.State().Phase)
		r.held(1)
	})
}

func TestAGateKeepsWhatItHasWhenTheCatalogChanges(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		held := r.held(2)
		r.Update([]workload.Workload{{Name: "blog"}, {Name: "wiki", HoldTimeout: time.Second}})
		assert.Same(t, r.gate, r.Gate("wiki"))
		assert.Nil(t, r.Gate("nobody"))
		began := time.Now()
		c := r.ask(activator.Ask{})
		rest(time.Second)
		require.True(t, c.done())
		assert.Equal(t, time.Second, c.ended().Sub(began), "what is new holds at once")
		r.see(ready(1, 1))
		assert.Equal(t, 2, served(held))
	})
}

func TestNewsThatComesBeforeItsWorkloadIsKeptForIt(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		s := ready(3, 4)
		s.Workload = "blog"
		r.see(s)
		older := state(workload.Asleep, 2, 2)
		older.Workload = "blog"
		r.see(older)
		require.Nil(t, r.Gate("blog"))
		r.Update([]workload.Workload{{Name: "wiki"}, {Name: "blog"}})
		r.gate = r.Gate("blog")
		c := r.pass(activator.Ask{})
		assert.Equal(t, "r3", c.lease().Replica().ID)
	})
}

func TestARemovedWorkloadTurnsAwayAndIsKnownWhenItIsBack(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		film := r.pass(activator.Ask{})
		r.Update(nil)
		require.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrRemoved)
		require.ErrorIs(t, r.ask(activator.Ask{NoWake: true}).error(), activator.ErrRemoved)
		require.Nil(t, r.Gate("wiki"))
		assert.Empty(t, r.Views())
		assert.Equal(t, 1, r.Activity().Loads[0].InFlight, "what is in flight still counts")
		r.see(ready(1, 2))

		r.Update([]workload.Workload{{Name: "wiki"}})
		r.gate = r.Gate("wiki")
		assert.Equal(t, uint64(2), r.gate.State().Revision)
		assert.Equal(t, workload.Drained{Gateway: "gw", InFlight: 1}, r.Drain("wiki", 3))
		release(film)

		r.see(ready(2, 4))
		r.Update(nil) // nothing in flight: only its state is kept
		assert.Empty(t, r.Activity().Loads)
		r.Update([]workload.Workload{{Name: "wiki"}})
		r.gate = r.Gate("wiki")
		release(r.pass(activator.Ask{}))
	})
}

func TestAfterAResetTheNextNewsIsTakenWhateverItsRevision(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(9, 100))
		r.Drain("wiki", 101)
		r.Reset()
		held := r.held(1)
		s := ready(1, 2)
		r.see(s)
		assert.Equal(t, 1, served(held))
		r.see(ready(9, 1))
		assert.Equal(t, uint64(2), r.gate.State().Revision, "but only the next")
	})
}

func TestAWorkloadThatIsRemovedAfterAResetComesBackWithoutItsFormerState(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(9, 100))
		r.Reset()
		r.Update(nil)
		r.Update([]workload.Workload{{Name: "wiki"}})
		r.gate = r.Gate("wiki")
		held := r.held(1)
		r.see(ready(1, 1))
		assert.Equal(t, 1, served(held), "no revision of the former store hides what is new")
	})
}

func TestAtTheEndEveryWaiterIsToldAndOpenGatesStayOpen(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 1}, func(t *testing.T, r *rig) {
		r.Update([]workload.Workload{{Name: "wiki"}, {Name: "blog"}})
		held := r.held(3)
		s := ready(1, 1)
		s.Workload = "blog"
		r.see(s)
		r.stop()
		for _, c := range held {
			assert.ErrorIs(t, c.error(), activator.ErrShutdown)
		}
		assert.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrShutdown)
		asked := len(r.wakes.all())
		rest(time.Minute)
		assert.Len(t, r.wakes.all(), asked)
		_, err := r.Gate("blog").Acquire(context.Background(), activator.Ask{})
		assert.NoError(t, err)

		r.Update([]workload.Workload{{Name: "shop"}})
		_, err = r.Gate("shop").Acquire(context.Background(), activator.Ask{})
		assert.ErrorIs(t, err, activator.ErrShutdown, "also at a gate that is new")
	})
}

func TestTheRestOfTheHeldAreToldAtTheEndAndTheGateOpens(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 1}, func(t *testing.T, r *rig) {
		held := r.held(3)
		r.see(ready(1, 1))
		r.stop()
		assert.NoError(t, held[0].error())
		assert.ErrorIs(t, held[2].error(), activator.ErrShutdown)
		r.pass(activator.Ask{})
	})
}

func TestNothingIsAskedBeforeRunAndThenWhatWasMissed(t *testing.T) {
	r := &rig{t: t, wakes: &wakeLog{}}
	r.Activator = activator.New(activator.Config{}, r.wakes)
	r.Update([]workload.Workload{{Name: "wiki"}})
	_, err := r.Gate("wiki").Acquire(context.Background(), activator.Ask{NoHold: true})
	require.ErrorIs(t, err, activator.ErrHoldTimeout)
	require.Empty(t, r.wakes.all())
	ctx, cancel := context.WithCancel(context.Background())
	r.wakes.answer(func(workload.Wake) error { cancel(); return nil })
	require.NoError(t, r.Run(ctx))
	assert.Len(t, r.wakes.all(), 1)
}
