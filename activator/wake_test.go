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

func TestManyWaitersAskOnceAndThenOnceASecond(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		first := r.ask(activator.Ask{Traceparent: "00-1-2-03"})
		r.held(9)
		require.Len(t, r.wakes.all(), 1)
		assert.Equal(t, time.Now(), r.wakes.when()[0], "at once")
		rest(10 * time.Second)
		wakes := r.wakes.all()
		assert.InDelta(t, 11, len(wakes), 2)
		for i, w := range wakes {
			assert.Equal(t, wakes[0].ID, w.ID, "it is one cold start")
			assert.Equal(t, workload.TriggerRequest, w.Trigger)
			assert.Equal(t, "gw", w.Gateway)
			assert.Equal(t, "wiki", w.Workload)
			assert.Equal(t, "00-1-2-03", w.Traceparent)
			assert.Equal(t, r.wakes.when()[0], w.RequestedAt)
			assert.Equal(t, r.wakes.when()[i], w.PublishedAt)
			if i > 0 {
				gap := r.wakes.when()[i].Sub(r.wakes.when()[i-1])
				assert.GreaterOrEqual(t, gap, 800*time.Millisecond)
				assert.LessOrEqual(t, gap, 1200*time.Millisecond)
			}
		}
		r.see(ready(1, 1))
		assert.NoError(t, first.error())
		asked := len(r.wakes.all())
		rest(10 * time.Second)
		assert.Len(t, r.wakes.all(), asked, "an open gate asks for nothing")
	})
}

func TestANewColdStartIsAskedForAtOnceUnderItsOwnName(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.held(1)
		r.see(ready(1, 1))
		r.see(state(workload.Asleep, 1, 2))
		r.held(1)
		wakes := r.wakes.all()
		require.Len(t, wakes, 2)
		assert.NotEqual(t, wakes[0].ID, wakes[1].ID)
		assert.Equal(t, uint64(0), wakes[0].Generation)
		assert.Equal(t, uint64(1), wakes[1].Generation)
	})
}

func TestTheWakeOutlivesItsFirstClient(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.wakes.answer(func(workload.Wake) error { return errors.New("no servers") })
		c := r.held(1)[0]
		c.leave(nil)
		rest(5 * time.Second)
		require.ErrorIs(t, c.error(), activator.ErrCanceled)
		assert.GreaterOrEqual(t, len(r.wakes.all()), 4, "it goes on until somebody takes it")
		r.wakes.answer(nil)
		rest(2 * time.Second)
		asked := len(r.wakes.all())
		rest(10 * time.Second)
		assert.Len(t, r.wakes.all(), asked, "taken, and nobody waits")
	})
}

func TestAnAskThatNobodyTakesOrWaitsForIsGivenUp(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.wakes.answer(func(workload.Wake) error { return errors.New("no servers") })
		require.ErrorIs(t, r.ask(activator.Ask{NoHold: true}).error(), activator.ErrHoldTimeout)
		rest(2 * time.Minute)
		asked := len(r.wakes.all())
		assert.Greater(t, asked, 40)
		rest(2 * time.Minute)
		assert.Len(t, r.wakes.all(), asked)
		r.ask(activator.Ask{NoHold: true})
		assert.Len(t, r.wakes.all(), asked+1)
		assert.NotEqual(t, r.wakes.all()[0].ID, r.wakes.all()[asked].ID)
	})
}

func TestThoseWhoDoNotStayRepeatTheAskButNotFasterThanIsDue(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		for range 100 { // a page that polls each tenth of a second
			r.ask(activator.Ask{NoHold: true})
			rest(100 * time.Millisecond)
		}
		assert.InDelta(t, 10, len(r.wakes.all()), 3)
	})
}

func TestNewsThatIsLostIsFoundByTheRepeatedAsk(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		c := r.held(1)[0]
		r.wakes.answer(func(workload.Wake) error { // as the wire does: read again, observe
			r.Observe(ready(1, 5))
			return nil
		})
		rest(1200 * time.Millisecond)
		require.NoError(t, c.error())
		assert.True(t, c.done())
	})
}

func TestOneWorkloadsTroubleIsNoOthers(t *testing.T) {
	inBubble(t, activator.Config{QueueRequests: 2, WakesPerMinute: 1}, func(t *testing.T, r *rig) {
		r.Update([]workload.Workload{{Name: "wiki"}, {Name: "blog"}})
		stuck := make(chan struct{})
		r.wakes.answer(func(w workload.Wake) error {
			if w.Workload == "wiki" {
				<-stuck
			}
			return nil
		})
		sick := r.held(2)
		require.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrQueueFull)
		blog := *r
		blog.gate = r.Gate("blog")
		well := blog.held(2)
		s := ready(1, 1)
		s.Workload = "blog"
		r.see(s)
		assert.Equal(t, 2, served(well))
		assert.Zero(t, served(sick))
		close(stuck)
	})
}

func TestColdStartsAreLimitedForEachWorkload(t *testing.T) {
	inBubble(t, activator.Config{WakesPerMinute: 2}, func(t *testing.T, r *rig) {
		revision := uint64(1)
		cycle := func() {
			revision += 2
			r.see(ready(revision, revision))
			r.see(state(workload.Asleep, revision, revision+1))
		}
		r.held(5) // one cold start, however many wait and however often it is repeated
		rest(5 * time.Second)
		cycle()
		r.held(1)
		cycle()
		c := r.ask(activator.Ask{})
		require.ErrorIs(t, c.error(), activator.ErrWakeLimited)
		var limited *activator.LimitedError
		require.ErrorAs(t, c.error(), &limited)
		assert.Greater(t, limited.RetryAfter, time.Duration(0))
		assert.LessOrEqual(t, limited.RetryAfter, 30*time.Second)
		asked := len(r.wakes.all())
		rest(limited.RetryAfter - 2*time.Millisecond)
		assert.ErrorIs(t, r.ask(activator.Ask{NoHold: true}).error(), activator.ErrWakeLimited)
		assert.Len(t, r.wakes.all(), asked)
		rest(2 * time.Millisecond)
		r.held(1)

		cycle()
		require.ErrorIs(t, r.ask(activator.Ask{}).error(), activator.ErrWakeLimited)
		r.see(state(workload.Waking, revision+1, revision+2))
		r.held(1) // to join one that is under way is free
		assert.Equal(t, 1, r.view().Queued)
	})
}

func TestRequestsHeldWhenTheGateClosesAgainAreNotTurnedAwayByTheLimit(t *testing.T) {
	inBubble(t, activator.Config{WakesPerMinute: 1, ReleaseConcurrency: 1}, func(t *testing.T, r *rig) {
		calls := r.held(3)
		r.see(ready(1, 1))
		require.Equal(t, 1, served(calls))
		r.see(state(workload.Asleep, 1, 2)) // it died
		require.Len(t, r.wakes.all(), 2, "the rest ask again, at once")
		assert.Equal(t, uint64(1), r.wakes.all()[1].Generation)
		r.see(ready(2, 3))
		assert.Equal(t, 2, served(calls))
		assert.Equal(t, "r2", calls[1].lease().Replica().ID)
	})
}

func TestTheRecordOfAColdStartIsTheScalersWithThisGatesTimes(t *testing.T) {
	var reported []workload.Wake
	cfg := activator.Config{ReleaseConcurrency: 1, Released: func(w workload.Wake) { reported = append(reported, w) }}
	inBubble(t, cfg, func(t *testing.T, r *rig) {
		calls := r.held(3)
		asked := r.wakes.all()[0]
		rest(2 * time.Second)
		s := ready(1, 1)
		record := asked
		record.Generation, record.ReadyAt = 1, time.Now()
		s.Wake = &record
		rest(time.Millisecond)
		opened := time.Now()
		r.see(s)
		require.Equal(t, 1, served(calls))
		w := calls[0].lease().Wake()
		require.NotNil(t, w)
		assert.Equal(t, asked.ID, w.ID)
		assert.Equal(t, record.ReadyAt, w.ReadyAt)
		assert.Equal(t, opened, w.OpenedAt)
		assert.Zero(t, w.ReleasedAt)
		assert.Zero(t, record.OpenedAt, "the scaler's own is left alone")
		require.Empty(t, reported)

		late := r.ask(activator.Ask{}) // behind the others, and not what the record waits for
		require.False(t, late.done())
		rest(time.Second)
		release(calls[0])
		rest(time.Second)
		calls[2].leave(nil)
		rest(0)
		require.Len(t, reported, 1)
		assert.Equal(t, asked.ID, reported[0].ID)
		assert.Equal(t, opened, reported[0].OpenedAt)
		assert.Equal(t, opened.Add(2*time.Second), reported[0].ReleasedAt)
		assert.False(t, late.done())
		release(calls[1])
		require.NoError(t, late.error())
		assert.Equal(t, w, late.lease().Wake())
		release(late)
		rest(time.Minute)
		assert.Len(t, reported, 1)
	})
}

func TestAColdStartWhoseClientsAreGoneIsReportedAllTheSame(t *testing.T) {
	var reported []workload.Wake
	cfg := activator.Config{Released: func(w workload.Wake) { reported = append(reported, w) }}
	inBubble(t, cfg, func(t *testing.T, r *rig) {
		r.see(state(workload.Asleep, 0, 1))
		r.ask(activator.Ask{NoHold: true})
		rest(time.Second)
		r.see(ready(1, 2))
		require.Len(t, reported, 1)
		assert.Equal(t, time.Now(), reported[0].OpenedAt)
		assert.Equal(t, time.Now(), reported[0].ReleasedAt)
		r.see(state(workload.Asleep, 1, 3))
		r.see(ready(2, 4))
		assert.Len(t, reported, 1, "this one was another's")
	})
}

func TestAnOldColdStartIsNotTakenForOnesOwn(t *testing.T) {
	old := &workload.Wake{ID: "old", ReadyAt: began}
	t.Run("of a workload that was ready all along", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			c := r.held(1)[0]
			s := ready(3, 8)
			s.Wake = old
			r.see(s)
			require.NoError(t, c.error())
			assert.True(t, c.lease().Cold())
			assert.Nil(t, c.lease().Wake())
		})
	})
	t.Run("of a drain that was called off", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			s := ready(3, 8)
			s.Wake = old
			r.see(s)
			r.see(state(workload.Draining, 3, 9))
			c := r.held(1)[0]
			s = ready(3, 10)
			s.Wake = old
			r.see(s)
			require.NoError(t, c.error())
			assert.Nil(t, c.lease().Wake())
		})
	})
	t.Run("but that of another gateway is", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			r.see(state(workload.Asleep, 3, 8))
			c := r.held(1)[0]
			s := ready(4, 9)
			s.Wake = &workload.Wake{ID: "other", Gateway: "gw2"}
			r.see(s)
			require.NotNil(t, c.lease().Wake())
			assert.Equal(t, "other", c.lease().Wake().ID)
		})
	})
}
