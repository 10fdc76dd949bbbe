package scaler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

var slept = []workload.Phase{workload.Waking, workload.Ready, workload.Draining, workload.Asleep}

func TestWhatNobodyUsesIsPutToSleepAfterItsTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		since := w.state("wiki").Since
		time.Sleep(5 * time.Second)
		assert.WithinDuration(t, since.Add(time.Minute), n.SleepsAt("wiki"), 0)
		time.Sleep(54 * time.Second)
		w.ready("wiki", 1)
		time.Sleep(2 * time.Second)
		st := w.state("wiki")
		assert.Equal(t, slept, w.phases("wiki"))
		assert.Equal(t, workload.Reason{Code: workload.ReasonIdle}, st.Reason)
		assert.Equal(t, uint64(1), st.Generation)
		assert.Empty(t, st.Replicas)
		assert.Empty(t, st.Owner)
		assert.Empty(t, w.engine.running("wiki"))
		assert.Equal(t, 1, w.engine.count(w.engine.stopped, "wiki"))
		assert.Zero(t, n.SleepsAt("wiki"))
		assert.Equal(t, workload.EventSlept, w.kinds("wiki")[3])
		n.wake(t, "wiki")
		w.ready("wiki", 2)
	})
}

func TestAnIdleTimeoutShorterThanTheStartDoesNotEndIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		brief := spec("brief")
		brief.IdleTimeout = time.Second
		n := w.scaler(scaler.Config{}, brief)
		w.engine.plan("brief").boot = 50 * time.Second
		time.Sleep(10 * time.Second)
		n.wake(t, "brief")
		w.ready("brief", 1)
		w.use("g1", "brief", 1) // who was held
		time.Sleep(time.Minute)
		w.ready("brief", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "brief"))
	})
}

func TestIdleCountsFromTheLastUse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		for range 10 {
			time.Sleep(55 * time.Second)
			w.use("g1", "wiki", 0)
		}
		w.ready("wiki", 1)
		assert.WithinDuration(t, time.Now().Add(time.Minute), n.SleepsAt("wiki"), time.Second)
		time.Sleep(61 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestInFlightOrQueuedIsInUseHoweverLong(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		never := spec("never")
		never.IdleTimeout = 0
		n := w.scaler(scaler.Config{}, spec("film"), spec("queue"), never)
		n.wake(t, "film")
		n.wake(t, "queue")
		n.wake(t, "never")
		w.use("g1", "film", 1)
		g := w.gateway("g2")
		w.mu.Lock()
		g.queued["queue"], g.usedAt["queue"] = 1, time.Now()
		w.mu.Unlock()
		time.Sleep(10 * time.Minute)
		w.ready("film", 1)
		w.ready("queue", 1)
		w.ready("never", 1)
		assert.Zero(t, n.SleepsAt("film"))
		assert.Zero(t, n.SleepsAt("never"))
		assert.Zero(t, w.drained(), "its gate was never closed")
	})
}

func TestNothingSleepsWhileGatewaysCannotBeHeard(t *testing.T) {
	for name, lose := range map[string]func(w *world, lost bool){
		"events away": func(w *world, lost bool) { w.connected.Store(!lost) },
		"no gateway alive": func(w *world, lost bool) {
			g := w.gateway("g1")
			w.mu.Lock()
			g.silent = lost
			w.mu.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.scaler(scaler.Config{}, spec("wiki"))
				n.wake(t, "wiki")
				w.mu.Lock()
				w.gateways["g1"].usedAt["other"] = time.Now()
				w.mu.Unlock()
				lose(w, true)
				time.Sleep(10 * time.Minute)
				w.ready("wiki", 1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				assert.ErrorIs(t, n.Sleep(ctx, "wiki"), scaler.ErrUnsure)
				assert.Zero(t, w.drained())
				// A request came while nobody could be heard.
				g := w.gateway("g1")
				w.mu.Lock()
				g.inFlight["wiki"], g.usedAt["wiki"] = 1, time.Now()
				w.mu.Unlock()
				lose(w, false)
				time.Sleep(10 * time.Minute)
				w.ready("wiki", 1)
				w.use("g1", "wiki", 0)
				time.Sleep(62 * time.Second)
				assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
			})
		})
	}
}

// After the events were away every gateway gets the time to be heard, not
// only the first.
func TestAfterTheEventsWereAwayTheSlowestGatewayIsHeardFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.connected.Store(false)
		time.Sleep(10 * time.Minute)
		g2 := w.gateway("g2")
		w.mu.Lock()
		g2.silent, g2.inFlight["wiki"], g2.usedAt["wiki"] = true, 1, time.Now()
		w.mu.Unlock()
		w.connected.Store(true)
		n.Reconcile()
		time.Sleep(2500 * time.Millisecond)
		w.mu.Lock()
		g2.silent = false
		w.mu.Unlock()
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 1)
		assert.Zero(t, w.drained())
	})
}

func TestABusyOrSilentGatewayCallsTheSleepOff(t *testing.T) {
	for name, spoil := range map[string]func(g *gateway){ // without a report of it
		"in flight": func(g *gateway) { g.inFlight["wiki"] = 1 },
		"queued":    func(g *gateway) { g.queued["wiki"] = 1 },
		"silent":    func(g *gateway) { g.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.gateway("g2") // heard from the start
				n := w.scaler(scaler.Config{}, spec("wiki"))
				n.wake(t, "wiki")
				g := w.gateway("g2")
				w.mu.Lock()
				spoil(g)
				w.mu.Unlock()
				time.Sleep(63 * time.Second)
				st := w.ready("wiki", 1)
				assert.Equal(t, []workload.Phase{workload.Waking, workload.Ready, workload.Draining, workload.Ready}, w.phases("wiki"))
				assert.NotNil(t, st.Wake, "as it was")
				assert.Equal(t, 1, w.drained())
				time.Sleep(50 * time.Second)
				assert.Equal(t, 1, w.drained(), "idle counts anew")
				time.Sleep(15 * time.Second)
				assert.Equal(t, 2, w.drained())
			})
		})
	}
}

func TestASleepIsCalledOffWhenTheEventsGoAwayOrADependantWakes(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, w *world, n *node){
		"events":    func(_ *testing.T, w *world, _ *node) { w.connected.Store(false) },
		"dependant": func(t *testing.T, _ *world, n *node) { n.Wake(t.Context(), ask("app")) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.gateway("g1").answerAfter = 500 * time.Millisecond
				app, db := spec("app"), spec("db")
				app.DependsOn = []string{"db"}
				n := w.scaler(scaler.Config{}, app, db)
				n.wake(t, "db")
				for w.state("db").Phase != workload.Draining {
					time.Sleep(100 * time.Millisecond)
				}
				spoil(t, w, n)
				time.Sleep(time.Second)
				w.ready("db", 1)
				assert.Zero(t, w.engine.count(w.engine.stopped, "db"))
			})
		})
	}
}

func TestASleepThatIsDueTheMomentTheEventsGoAwayDoesNotBegin(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		time.Sleep(time.Until(n.SleepsAt("wiki")) - time.Millisecond)
		w.connected.Store(false)
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 1)
		assert.Zero(t, w.drained())
	})
}

func TestAWakeBeforeTheStopCallsItOff(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.gateway("g1").answerAfter = 500 * time.Millisecond
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		for w.state("wiki").Phase != workload.Draining {
			time.Sleep(100 * time.Millisecond)
		}
		a := ask("wiki")
		a.Generation = 1
		assert.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), a))
		w.ready("wiki", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestAWakeDuringTheStopIsServedTheMomentItHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").stop = 8 * time.Second // beyond the lease
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		for w.engine.count(w.engine.stopped, "wiki") == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		stopping := time.Now()
		assert.Empty(t, w.state("wiki").Replicas, "a replica that is being stopped serves nobody")
		n.wake(t, "wiki")
		st := w.ready("wiki", 2)
		assert.InDelta(t, 8.15, st.Since.Sub(stopping).Seconds(), 0.02)
		assert.Equal(t, append(slept, workload.Waking, workload.Ready), w.phases("wiki"))
	})
}

func TestSleepOnRequestWaitsForTheLastRequestAndIsWokenByTheHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		w.use("g1", "wiki", 1)
		time.AfterFunc(3*time.Second, func() { w.use("g1", "wiki", 0) })
		woken := make(chan scaler.Verdict, 1)
		time.AfterFunc(time.Second, func() {
			g := w.gateway("g1")
			w.mu.Lock()
			g.queued["wiki"] = 1
			w.mu.Unlock()
			a := ask("wiki")
			a.Generation = 1
			woken <- n.Wake(t.Context(), a)
		})
		begun := time.Now()
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		assert.InDelta(t, 3.1, time.Since(begun).Seconds(), 0.15)
		assert.Equal(t, scaler.Verdict{}, <-woken)
		w.ready("wiki", 2)
		assert.Equal(t, append(slept, workload.Waking, workload.Ready), w.phases("wiki"))
	})
}

func TestSleepOnRequestGivesUpWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		w.use("g1", "wiki", 2)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		assert.ErrorIs(t, n.Sleep(ctx, "wiki"), scaler.ErrInUse)
		synctest.Wait()
		w.ready("wiki", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestSleepOnRequestKeepsOthersOutForFiveSecondsAtMost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		w.use("g1", "wiki", 1) // a stream without end
		begun := time.Now()
		err := n.Sleep(t.Context(), "wiki")
		assert.ErrorIs(t, err, scaler.ErrInUse)
		assert.ErrorContains(t, err, ": 1 in flight at g1")
		assert.InDelta(t, 5, time.Since(begun).Seconds(), 0.2)
		synctest.Wait()
		w.ready("wiki", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestSleepOnRequestGivesUpOnAGatewayThatDoesNotSay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.gateway("g2").deaf = true
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		assert.ErrorIs(t, n.Sleep(ctx, "wiki"), scaler.ErrUnsure)
		time.Sleep(2 * time.Second)
		w.ready("wiki", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestSleepOnRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"), spec("mute"))
		assert.ErrorIs(t, n.Sleep(t.Context(), "none"), scaler.ErrUnknown)
		require.NoError(t, n.Sleep(t.Context(), "wiki"), "asleep already")
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		assert.Equal(t, workload.Reason{Code: workload.ReasonAsked}, w.state("wiki").Reason)
		assert.Empty(t, w.engine.running("wiki"))

		w.engine.plan("mute").boot = time.Hour // runs and never answers
		w.engine.byHand("mute")
		time.Sleep(time.Second)
		require.Equal(t, workload.Asleep, w.state("mute").Phase)
		require.NoError(t, n.Sleep(t.Context(), "mute"))
		assert.Empty(t, w.engine.running("mute"))

		n.stop()
		assert.ErrorIs(t, n.Sleep(t.Context(), "wiki"), scaler.ErrClosed)
	})
}

func TestAStopThatFailsLeavesWhatRunsInService(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").stop = time.Hour // Stop runs into its own limit
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(2 * time.Minute)
		st := w.state("wiki")
		assert.Equal(t, workload.Ready, st.Phase)
		assert.Equal(t, uint64(2), st.Generation, "it runs, and was proved again")
	})
}

func TestAPausedWorkloadCountsAsAsleepAndResumes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := spec("wiki")
		s.Stop = workload.StopPause
		w.engine.eventDelay = 300 * time.Millisecond // the news of the pause comes after the next start
		n := w.scaler(scaler.Config{}, s)
		n.wake(t, "wiki")
		id := w.engine.running("wiki")
		for round := range 3 {
			time.Sleep(5 * time.Second)
			require.NoError(t, n.Sleep(t.Context(), "wiki"))
			require.Empty(t, w.engine.running("wiki"))
			n.wake(t, "wiki")
			time.Sleep(time.Second)
			w.ready("wiki", uint64(round+2))
		}
		assert.Equal(t, id, w.engine.running("wiki"))
		w.engine.do(func() { // somebody pauses it
			w.engine.copies["wiki"][0].Paused = true
			w.engine.tell(scaler.Event{Kind: scaler.Died, Workload: "wiki", ID: id[0]})
		})
		time.Sleep(time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestWindowsKeepWarm(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) { // midnight of Saturday 2000-01-01 UTC
		s, midnight := spec("wiki"), time.Now()
		at := func(minute int) {
			time.Sleep(time.Until(midnight.Add(time.Duration(minute)*time.Minute + time.Second)))
		}
		clock := func(minute int) string {
			return midnight.Add(time.Duration(minute) * time.Minute).Local().Format("15:04")
		}
		s.KeepWarm = clock(5) + "-" + clock(12) + "," + clock(20) + "-" + clock(30) + "," + clock(40) + "-" + clock(50)
		n := w.scaler(scaler.Config{}, s)
		at(4)
		assert.Empty(t, w.phases("wiki"))
		at(5)
		st := w.ready("wiki", 1)
		assert.Equal(t, workload.TriggerKeepWarm, st.Wake.Trigger)
		assert.Zero(t, n.SleepsAt("wiki"))
		at(11)
		w.ready("wiki", 1)
		at(13)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "the window has ended")

		at(20)
		w.ready("wiki", 2)
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		at(29)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "somebody wanted it so")
		at(40)
		w.ready("wiki", 3)
		w.engine.die("wiki", w.engine.running("wiki")[0], 1, false)
		time.Sleep(time.Second)
		w.ready("wiki", 4)
	})
}
