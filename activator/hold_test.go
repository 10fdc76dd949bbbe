package activator_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

func TestAHeldRequestGoesOnTheMomentTheWorkloadIsReady(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		began := time.Now()
		c := r.held(1)[0]
		rest(3 * time.Second)
		require.False(t, c.done())
		r.see(ready(1, 1))
		require.NoError(t, c.error())
		assert.Equal(t, 3*time.Second, c.ended().Sub(began), "no time is lost after the news")
		assert.Equal(t, "r1:80", c.lease().Replica().Address)
		assert.True(t, c.lease().Cold())
		assert.Equal(t, 3*time.Second, c.lease().Held())
		times := c.lease().Times()
		assert.Equal(t, began, times.Queued)
		assert.Equal(t, began.Add(3*time.Second), times.Opened)
		assert.Equal(t, times.Opened, times.Released)
		release(c)

		warm := r.pass(activator.Ask{})
		assert.False(t, warm.lease().Cold())
		assert.Zero(t, warm.lease().Held())
		assert.Zero(t, warm.lease().Times())
		assert.Nil(t, warm.lease().Wake())
		release(warm)
	})
}

func TestTheQueueIsBoundedByCount(t *testing.T) {
	inBubble(t, activator.Config{QueueRequests: 3}, func(t *testing.T, r *rig) {
		calls := r.held(3)
		full := r.ask(activator.Ask{})
		require.ErrorIs(t, full.error(), activator.ErrQueueFull)
		var bound *activator.FullError
		require.ErrorAs(t, full.error(), &bound)
		assert.Equal(t, activator.BoundRequests, bound.Bound)

		calls[1].leave(nil)
		calls = append(calls, r.held(1)...) // its place, at once
		assert.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrQueueFull)
		assert.Equal(t, 3, r.view().Queued)

		r.see(ready(1, 1))
		assert.Equal(t, 3, served(calls))
		assert.Zero(t, r.view().Queued)
		for _, c := range calls {
			c.lease().Release()
		}
		assert.Zero(t, r.view().InFlight)
	})
}

func TestAWorkloadsOwnBoundGoesBeforeTheGateways(t *testing.T) {
	inBubble(t, activator.Config{QueueRequests: 3}, func(t *testing.T, r *rig) {
		r.Update([]workload.Workload{{Name: "wiki", QueueRequests: 1}})
		r.held(1)
		assert.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrQueueFull)
		r.Update([]workload.Workload{{Name: "wiki", QueueRequests: 2}})
		r.held(1)
		assert.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrQueueFull)
	})
}

func TestTheQueueIsBoundedByBytes(t *testing.T) {
	const kib = 1 << 10
	inBubble(t, activator.Config{QueueBytes: 32 * kib}, func(t *testing.T, r *rig) {
		big := r.ask(activator.Ask{Bytes: 20 * kib})
		require.False(t, big.done())
		r.held(3) // 4 KiB each, however small
		full := r.ask(activator.Ask{Bytes: 1})
		var bound *activator.FullError
		require.ErrorAs(t, full.error(), &bound)
		assert.Equal(t, activator.BoundBytes, bound.Bound)

		big.leave(nil)
		r.held(5)
		assert.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrQueueFull)
		assert.Equal(t, 8, r.view().Queued)
	})
}

func TestAllQueuesTogetherAreBoundedByBytes(t *testing.T) {
	inBubble(t, activator.Config{QueueBytes: 8 << 10, TotalQueueBytes: 12 << 10}, func(t *testing.T, r *rig) {
		r.Update([]workload.Workload{{Name: "wiki"}, {Name: "blog"}})
		wiki := r.held(2)
		blog := *r
		blog.gate = r.Gate("blog")
		blog.held(1)
		var bound *activator.FullError
		require.ErrorAs(t, blog.ask(activator.Ask{}).error(), &bound)
		assert.Equal(t, activator.BoundTotal, bound.Bound)
		wiki[0].leave(nil)
		blog.held(1)
	})
}

func TestEveryEndOfAWaitIsToldApart(t *testing.T) {
	cause := errors.New("connection reset")
	failed := state(workload.Failed, 1, 9)
	failed.Reason = workload.Reason{Code: workload.ReasonExited, ExitCode: 3}
	failed.RetryAt = began
	cases := map[string]struct {
		end  func(r *rig, c *call)
		want error
	}{
		"caller gone":   {func(_ *rig, c *call) { c.leave(cause) }, activator.ErrCanceled},
		"held too long": {func(*rig, *call) { rest(50 * time.Second) }, activator.ErrHoldTimeout},
		"shutdown":      {func(r *rig, _ *call) { r.stop() }, activator.ErrShutdown},
		"removed":       {func(r *rig, _ *call) { r.Update(nil) }, activator.ErrRemoved},
		"failed start":  {func(r *rig, _ *call) { r.see(failed) }, nil},
	}
	sentinels := []error{
		activator.ErrQueueFull, activator.ErrHoldTimeout, activator.ErrCanceled, activator.ErrShutdown,
		activator.ErrAsleep, activator.ErrRemoved, activator.ErrWakeLimited,
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
				r.see(state(workload.Asleep, 1, 1))
				c := r.held(1)[0]
				gate := r.gate
				tc.end(r, c)
				rest(0)
				require.True(t, c.done())
				require.Error(t, c.error())
				for _, s := range sentinels {
					assert.Equal(t, s == tc.want, errors.Is(c.error(), s), "%v is %v", c.error(), s)
				}
				var f *activator.FailedError
				assert.Equal(t, tc.want == nil, errors.As(c.error(), &f))
				if f != nil {
					assert.Equal(t, 3, f.State.Reason.ExitCode)
				}
				assert.Equal(t, tc.want == activator.ErrCanceled, errors.Is(c.error(), cause))
				assert.Equal(t, "wiki", gate.Name())
			})
		})
	}
}

func TestOneWaitersEndTakesNoOtherWithIt(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		first := r.ask(activator.Ask{Hold: time.Second})
		others := r.held(3)
		first.leave(nil)
		rest(0)
		assert.ErrorIs(t, first.error(), activator.ErrCanceled)
		short := r.ask(activator.Ask{Hold: 2 * time.Second})
		rest(2 * time.Second)
		assert.ErrorIs(t, short.error(), activator.ErrHoldTimeout)
		r.see(ready(1, 1))
		assert.Equal(t, 3, served(others))
	})
}

func TestARequestWhoseTurnComesAsItsCallerLeavesHasOneEnd(t *testing.T) {
	inBubble(t, activator.Config{ReleaseConcurrency: 100}, func(t *testing.T, r *rig) {
		calls := r.held(100)
		for _, c := range calls {
			c.cancel(nil)
		}
		r.see(ready(1, 1)) // while they are on their way out
		leases := 0
		for _, c := range calls {
			require.True(t, c.done())
			if c.error() == nil {
				leases++
			} else {
				require.ErrorIs(t, c.error(), activator.ErrCanceled)
			}
		}
		assert.Equal(t, leases, r.view().InFlight)
		release(calls...)
		assert.Zero(t, r.view().InFlight)
		assert.Zero(t, r.view().Queued)
	})
}

func TestAnEndedContextStillAsksForTheWorkload(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := r.gate.Acquire(ctx, activator.Ask{})
		require.ErrorIs(t, err, activator.ErrCanceled)
		rest(0)
		assert.Len(t, r.wakes.all(), 1)
	})
}

func TestHoldBoundsTheWait(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		began := time.Now()
		short, usual := r.ask(activator.Ask{Hold: 800 * time.Millisecond}), r.ask(activator.Ask{})
		page := r.ask(activator.Ask{NoHold: true})
		require.ErrorIs(t, page.error(), activator.ErrHoldTimeout)
		assert.Equal(t, 2, r.view().Queued, "what is not held takes no place")
		rest(time.Minute)
		assert.Equal(t, 800*time.Millisecond, short.ended().Sub(began))
		assert.Equal(t, 50*time.Second, usual.ended().Sub(began), "the workload's HoldTimeout")
	})
}

func TestAFailureWhoseLeaseIsRenewedEndsNobodyWhoCameAfterIt(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		failed := state(workload.Failed, 1, 3)
		failed.RetryAt = time.Now().Add(time.Second)
		r.see(failed)
		rest(2 * time.Second)
		held := r.held(1) // it waits for the end of what was given up, and for the next start
		for failed.Revision < 6 {
			failed.Revision++
			r.see(failed)
		}
		require.False(t, held[0].done())
		r.see(state(workload.Waking, 2, 7))
		r.see(state(workload.Failed, 2, 8))
		require.True(t, held[0].done())
		var f *activator.FailedError
		assert.ErrorAs(t, held[0].error(), &f)
	})
}

func TestAFailedStartAnswersAtOnceAndSoDoesTheGateUntilTheNextMayBe(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(state(workload.Asleep, 0, 1))
		calls := r.held(4)
		r.see(state(workload.Waking, 1, 2))
		failed := state(workload.Failed, 1, 3)
		failed.RetryAt = time.Now().Add(2 * time.Second)
		r.see(failed)
		for _, c := range calls {
			var f *activator.FailedError
			require.ErrorAs(t, c.error(), &f)
			assert.Equal(t, uint64(3), f.State.Revision)
		}
		asked := len(r.wakes.all())
		var f *activator.FailedError
		require.ErrorAs(t, r.ask(activator.Ask{}).error(), &f)
		require.ErrorAs(t, r.ask(activator.Ask{NoHold: true}).error(), &f)
		rest(time.Second)
		assert.Len(t, r.wakes.all(), asked, "nobody asks before it is due")

		rest(time.Second)
		again := r.held(1)
		assert.Len(t, r.wakes.all(), asked+1)
		r.see(failed) // the failure it entered with is no news
		require.False(t, again[0].done())
		r.see(ready(2, 4))
		assert.Equal(t, 1, served(again))
	})
}

// The scaler's clock may be an hour ahead of the gateway's.
func TestAGateRefusesForAsLongAsTheBackOffWasMeantToLast(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		failed := state(workload.Failed, 1, 3)
		failed.Since = time.Now().Add(time.Hour)
		failed.RetryAt = failed.Since.Add(2 * time.Second)
		r.see(failed)
		rest(time.Second)
		var f *activator.FailedError
		require.ErrorAs(t, r.ask(activator.Ask{}).error(), &f)
		assert.Equal(t, time.Second, time.Until(f.State.RetryAt))
		rest(time.Second)
		r.held(1)
	})
}

func TestTheFirstNewsOfAnOldFailureEndsNobodysWait(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		c := r.held(1)[0] // nothing is known of the workload yet
		old := state(workload.Failed, 4, 7)
		old.RetryAt = time.Now().Add(-time.Hour)
		r.see(old)
		require.False(t, c.done())
		r.see(ready(5, 8))
		assert.NoError(t, c.error())
	})
}

func TestARequestThatMustNotWakeIsServedOnlyByAnOpenGate(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		assert.ErrorIs(t, r.ask(activator.Ask{NoWake: true}).error(), activator.ErrAsleep)
		rest(3 * time.Second)
		assert.Empty(t, r.wakes.all())
		assert.Empty(t, r.Activity().Loads)
		r.see(ready(1, 1))
		c := r.pass(activator.Ask{NoWake: true})
		assert.Equal(t, 1, r.view().InFlight)
		assert.Equal(t, workload.Drained{Gateway: "gw", InFlight: 1}, r.Drain("wiki", 2))
		assert.Empty(t, r.Activity().Loads, "it is no use of the workload")
		release(c)
		assert.Empty(t, r.Activity().Loads)
		assert.Equal(t, workload.Drained{Gateway: "gw"}, r.Drain("wiki", 2))
	})
}

func TestReadyWithoutReplicasHolds(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		empty := ready(1, 1)
		empty.Replicas = nil
		r.see(empty)
		c := r.held(1)[0]
		require.Len(t, r.wakes.all(), 1)
		assert.True(t, r.wakes.all()[0].Unreachable, "what claims to be ready has to be proved again")
		r.see(ready(1, 2))
		assert.NoError(t, c.error())
	})
}

func TestTheZeroLeaseDoesNothing(t *testing.T) {
	var l activator.Lease
	l.Answered()
	l.Release()
	assert.Zero(t, l.Replica())
	assert.False(t, l.Cold())
	assert.Nil(t, l.Wake())
	assert.Zero(t, l.Held())
	assert.Zero(t, l.Times())
}

func TestALeaseIsGivenBackOnce(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		a, b := r.pass(activator.Ask{}), r.pass(activator.Ask{})
		release(a, a, a)
		a.lease().Answered()
		assert.Equal(t, 1, r.view().InFlight)
		release(b)
		assert.Zero(t, r.view().InFlight)
	})
}
