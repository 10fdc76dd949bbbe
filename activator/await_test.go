package activator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// await starts an Await in its own goroutine.
func (r *rig) await(ctx context.Context, ask activator.Ask, keep time.Duration) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- r.gate.Await(ctx, ask, keep) }()
	synctest.Wait()
	return ended
}

func (r *rig) load() workload.Load {
	r.t.Helper()
	loads := r.Activity().Loads
	require.Len(r.t, loads, 1)
	return loads[0]
}

func TestAwaitWakesAndWaitsLikeAnyOtherAndIsNoUse(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		ended := r.await(t.Context(), activator.Ask{}, time.Minute)
		require.Empty(t, ended)
		assert.Len(t, r.wakes.all(), 1)
		assert.Equal(t, 1, r.load().Queued, "it keeps awake what it waits for")
		r.see(ready(1, 1))
		require.NoError(t, <-ended)
		assert.Equal(t, workload.Load{Workload: "wiki", IdleMS: -1, KeepMS: 60_000}, r.load())
		assert.Zero(t, r.view().InFlight, "it has no lease")
		assert.Equal(t, time.Now().Add(time.Minute), r.view().KeptUntil)
	})
}

func TestEveryEndOfAnAwaitKeepsAwake(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		assert.ErrorIs(t, r.gate.Await(t.Context(), activator.Ask{NoHold: true}, time.Minute), activator.ErrHoldTimeout)
		assert.EqualValues(t, 60_000, r.load().KeepMS)
		ctx, leave := context.WithCancelCause(t.Context())
		ended := r.await(ctx, activator.Ask{}, time.Hour)
		leave(errors.New("gone"))
		assert.ErrorIs(t, <-ended, activator.ErrCanceled)
		assert.EqualValues(t, 3_600_000, r.load().KeepMS)
		assert.EqualValues(t, -1, r.load().IdleMS)
	})
}

// Each report covers the calls of the next second, however many come.
func TestAwaitIsNewsOnceASecondAtMost(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		changed := func() bool {
			select {
			case <-r.Changed():
				return true
			default:
				return false
			}
		}
		for range 3 {
			require.NoError(t, r.gate.Await(t.Context(), activator.Ask{}, time.Hour))
			require.True(t, changed(), "it came into use")
			r.Activity()
			require.NoError(t, r.gate.Await(t.Context(), activator.Ask{}, time.Hour))
			require.False(t, changed())
			rest(time.Second)
			r.Activity()
		}
	})
}

func TestADrainCountsWhatAwaitHasJustLetGo(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		require.NoError(t, r.gate.Await(t.Context(), activator.Ask{}, time.Nanosecond))
		assert.Equal(t, 1, r.Drain("wiki", 2).InFlight)
		held := r.await(t.Context(), activator.Ask{}, time.Nanosecond)
		require.Empty(t, held, "the gate is closed")
		rest(time.Second)
		assert.Equal(t, workload.Drained{Gateway: "gw", Queued: 1}, r.Drain("wiki", 2))
		r.see(ready(1, 3))
		require.NoError(t, <-held)
	})
}

func TestAwaitAtAnOpenGateAllocatesNothing(t *testing.T) {
	a := activator.New(activator.Config{}, &wakeLog{})
	a.Update([]workload.Workload{{Name: "wiki"}})
	a.Observe(ready(1, 1))
	gate, ctx := a.Gate("wiki"), context.Background()
	require.Zero(t, testing.AllocsPerRun(1000, func() { _ = gate.Await(ctx, activator.Ask{}, time.Hour) }))
}

func TestWhatIsKeptAwakeEndsWithWhatRuns(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		require.NoError(t, r.gate.Await(t.Context(), activator.Ask{}, time.Hour))
		require.EqualValues(t, 3_600_000, r.load().KeepMS)
		r.see(state(workload.Draining, 1, 2))
		require.EqualValues(t, 3_600_000, r.load().KeepMS, "the drain may be called off")
		r.see(state(workload.Asleep, 1, 3))
		require.Zero(t, r.load().KeepMS, "and who heard of it before hears that it is over")
		require.Zero(t, r.view().KeptUntil)
	})
}
