package scaler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// readyInStore writes down that what runs now is ready.
func (w *world) readyInStore(name string, generation uint64) {
	w.t.Helper()
	st := workload.State{Workload: name, Phase: workload.Ready, Generation: generation, Since: time.Now()}
	w.engine.do(func() {
		for _, c := range w.engine.copies[name] {
			st.Replicas = append(st.Replicas, c.Replica)
		}
	})
	w.put(st)
}

func TestWhatRunsWhenTheScalerRestartsIsAdoptedAndNotStopped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.byHand("wiki")
		w.readyInStore("wiki", 7)
		revision := w.state("wiki").Revision
		time.Sleep(10 * time.Minute) // nobody looked after it; last used long ago
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(30 * time.Second)
		assert.Equal(t, revision, w.ready("wiki", 7).Revision, "as it was")
		w.use("g1", "wiki", 1)
		n.kill()
		n = w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 7)
		w.use("g1", "wiki", 0)
		n.kill()
		time.Sleep(10 * time.Minute)
		w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(59 * time.Second)
		w.ready("wiki", 7)
		assert.Zero(t, w.drained())
		time.Sleep(2 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "idle for a full timeout under this scaler")
	})
}

// lease writes down that a scaler holds the lease, until its clock shows so.
func (w *world) lease(name, owner string, until time.Time) {
	w.t.Helper()
	st := w.state(name)
	st.Owner, st.LeaseUntil = owner, until
	w.put(st)
}

func TestTheStoreIsMadeToSayWhatRuns(t *testing.T) {
	gone := workload.Replica{ID: "gone", Address: "10.0.0.1:gone"}
	for name, c := range map[string]struct {
		before     workload.State // Replicas nil: what runs
		running    int
		phase      workload.Phase
		generation uint64
		starts     int
	}{
		"ready but not running": {
			before: workload.State{Phase: workload.Ready, Generation: 3, Replicas: []workload.Replica{gone}},
			phase:  workload.Asleep, generation: 3,
		},
		"ready without replicas, not running": { // nobody wrote that; who waits for it would wait for ever
			before: workload.State{Phase: workload.Ready, Generation: 3},
			phase:  workload.Asleep, generation: 3,
		},
		"ready with other replicas": {
			before:  workload.State{Phase: workload.Ready, Generation: 3, Replicas: []workload.Replica{gone}},
			running: 1, phase: workload.Ready, generation: 4,
		},
		"ready, one of two": {
			before:  workload.State{Phase: workload.Ready, Generation: 3},
			running: 2, phase: workload.Ready, generation: 3,
		},
		"asleep but running": {before: workload.State{Generation: 3}, running: 1, phase: workload.Ready, generation: 4},
		"failed but running": {
			before:  workload.State{Phase: workload.Failed, Generation: 3, Failures: 2, RetryAt: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)},
			running: 1, phase: workload.Ready, generation: 4,
		},
		"waking, lease over, running": {
			before:  workload.State{Phase: workload.Waking, Generation: 3, Owner: "dead"},
			running: 1, phase: workload.Ready, generation: 3, starts: 1,
		},
		"waking, lease over, not running": {
			before: workload.State{Phase: workload.Waking, Generation: 3, Owner: "dead"},
			phase:  workload.Asleep, generation: 3,
		},
		"draining, lease over, running": {
			before:  workload.State{Phase: workload.Draining, Generation: 3, Owner: "dead"},
			running: 1, phase: workload.Ready, generation: 3,
		},
		"stopping, lease over, running": {
			before:  workload.State{Phase: workload.Draining, Generation: 3, Owner: "dead", Replicas: []workload.Replica{gone}},
			running: 1, phase: workload.Ready, generation: 4,
		},
		"draining, lease over, not running": {
			before: workload.State{Phase: workload.Draining, Generation: 3, Owner: "dead"},
			phase:  workload.Asleep, generation: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				for range c.running {
					w.engine.byHand("wiki")
				}
				st := c.before
				st.Workload, st.Since = "wiki", time.Now()
				if st.Phase != workload.Asleep && st.Phase != workload.Failed && st.Replicas == nil && c.running > 0 {
					st.Replicas = []workload.Replica{w.engine.copies["wiki"][0].Replica}
				}
				w.put(st)
				w.scaler(scaler.Config{}, spec("wiki"))
				time.Sleep(2 * time.Second)
				got := w.state("wiki")
				assert.Equal(t, c.phase, got.Phase)
				assert.Equal(t, c.generation, got.Generation)
				assert.Empty(t, got.Owner)
				assert.Zero(t, got.RetryAt)
				if c.phase == workload.Ready {
					w.ready("wiki", c.generation)
				}
				assert.Equal(t, c.starts, w.engine.count(w.engine.calls, "wiki"))
				assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"), "what runs is never stopped here")
			})
		})
	}
}

func TestALeaseThatIsHeldIsLeftAlone(t *testing.T) {
	for _, phase := range []workload.Phase{workload.Waking, workload.Draining} {
		t.Run(phase.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				id := w.engine.byHand("wiki")
				w.put(workload.State{
					Workload: "wiki", Phase: phase, Generation: 3, Owner: "other", LeaseUntil: time.Now().Add(5 * time.Second),
					Replicas: []workload.Replica{{ID: id, Address: "10.0.0.1:" + id}},
				})
				revision := w.state("wiki").Revision
				tries := 0
				w.engine.tried = func() { tries++ }
				n := w.scaler(scaler.Config{}, spec("wiki"))
				want := scaler.Verdict{Kind: scaler.Later, After: 500 * time.Millisecond}
				assert.Equal(t, want, n.Wake(t.Context(), ask("wiki")))
				time.Sleep(4 * time.Second)
				assert.Equal(t, want, n.Wake(t.Context(), ask("wiki")))
				assert.Equal(t, revision, w.state("wiki").Revision)
				w.engine.do(func() { assert.Zero(t, tries, "what is proved now could be stale by then") })
				time.Sleep(1200 * time.Millisecond)
				w.ready("wiki", 3)
			})
		})
	}
}

func TestALeaseThatIsRenewedIsNotTakenOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").boot = 30 * time.Second
		first, second := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki")), w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		verdict := make(chan scaler.Verdict, 1)
		go func() { verdict <- first.Wake(t.Context(), ask("wiki")) }()
		for range 29 {
			time.Sleep(time.Second)
			assert.Equal(t, scaler.Later, second.Wake(t.Context(), ask("wiki")).Kind)
			assert.Equal(t, "s1", w.state("wiki").Owner)
		}
		assert.Equal(t, scaler.Verdict{}, <-verdict)
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
	})
}

// The clocks of two machines differ, and any may be set: what another wrote
// of its own clock says nothing.
func TestALeaseLastsAsLongByEveryClock(t *testing.T) {
	for name, skew := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.engine.byHand("wiki")
				w.readyInStore("wiki", 3)
				st := w.state("wiki")
				st.Phase, st.Since = workload.Waking, time.Now().Add(skew)
				w.put(st)
				w.lease("wiki", "other", time.Now().Add(skew+5*time.Second))
				w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
				for range 20 {
					time.Sleep(2 * time.Second)
					require.Equal(t, "other", w.state("wiki").Owner, "it is alive")
					w.lease("wiki", "other", time.Now().Add(skew+5*time.Second))
				}
				time.Sleep(7 * time.Second)
				w.ready("wiki", 3)
			})
		})
	}
}

// Nor does Since, where the clock was set back since it was written.
func TestWhatIsReadySinceAnHourToComeSleepsInTime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.byHand("wiki")
		w.readyInStore("wiki", 3)
		st := w.state("wiki")
		st.Since = time.Now().Add(time.Hour)
		w.put(st)
		w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(62 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestAKilledScalerIsSucceededInTheMiddleOfAStart(t *testing.T) {
	for name, at := range map[string]time.Duration{
		"during the start": 2 * time.Second, "while proving": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.engine.plan("wiki")
				p.start, p.boot = 4*time.Second, 4*time.Second
				first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
				second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
				go first.Wake(t.Context(), ask("wiki"))
				time.Sleep(at)
				first.kill()
				again := func() (v scaler.Verdict) { // as the events deliver it
					for v = second.Wake(t.Context(), ask("wiki")); v.Kind == scaler.Later; v = second.Wake(t.Context(), ask("wiki")) {
						time.Sleep(v.After)
					}
					return v
				}
				assert.Equal(t, scaler.Verdict{}, again())
				st := w.ready("wiki", 1)
				assert.Equal(t, 1, w.engine.count(w.engine.started, "wiki"), "exactly one start")
				assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
				assert.Less(t, st.Since.Sub(st.Wake.RequestedAt), at+5*time.Second+4*time.Second)
			})
		})
	}
}

func TestACleanEndHandsTheLeaseOverAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").boot = 3 * time.Second
		first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		verdict := make(chan scaler.Verdict, 1)
		go func() { verdict <- first.Wake(t.Context(), ask("wiki")) }()
		time.Sleep(time.Second)
		first.stop()
		assert.Equal(t, scaler.Later, (<-verdict).Kind)
		second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		second.wake(t, "wiki")
		st := w.ready("wiki", 1)
		assert.InDelta(t, 3.1, st.Since.Sub(st.Wake.RequestedAt).Seconds(), 0.05)

		// The same for a sleep that has not begun to stop anything.
		w.gateway("g1").answerAfter = 700 * time.Millisecond
		time.Sleep(5 * time.Second)
		go second.Sleep(t.Context(), "wiki")
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, workload.Draining, w.state("wiki").Phase)
		second.stop()
		w.ready("wiki", 1)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestAStopWhoseScalerEndedIsCarriedOut(t *testing.T) {
	for name, end := range map[string]func(*node){"cleanly": func(n *node) { n.stop() }, "killed": (*node).kill} {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, asked %v", name, asked), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.engine.plan("wiki").stop = 9 * time.Second // it answers until then
					first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
					first.wake(t, "wiki")
					for w.engine.count(w.engine.stopped, "wiki") == 0 {
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(time.Second)
					end(first)
					second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
					if asked {
						for second.Wake(t.Context(), ask("wiki")).Kind == scaler.Later {
							time.Sleep(500 * time.Millisecond)
						}
						w.ready("wiki", 2)
						assert.Equal(t, append(slept, workload.Waking, workload.Ready), w.phases("wiki"))
						return
					}
					time.Sleep(20 * time.Second)
					assert.Equal(t, slept, w.phases("wiki"), "what is ending is not served")
				})
			})
		}
	}
}

func TestAScalerThatLostItsLeaseStopsActing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.gateway("g1").answerAfter = 900 * time.Millisecond
		n := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		n.wake(t, "wiki")
		for w.state("wiki").Phase != workload.Draining {
			time.Sleep(50 * time.Millisecond)
		}
		for range 300 { // somebody took it over meanwhile
			w.lease("wiki", "s2", time.Now().Add(5*time.Second))
			time.Sleep(2 * time.Second)
		}
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"), "never stopped by who is not the owner")
		assert.Equal(t, "s2", w.state("wiki").Owner)

		w.put(workload.State{Workload: "wiki", Generation: 9})
		time.Sleep(31 * time.Second) // adopted by the next reconcile
		w.ready("wiki", 10)
	})
}

func TestAStartWhoseOwnerChangedIsNotAnnounced(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").start = 3 * time.Second
		n := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		verdict := make(chan scaler.Verdict, 1)
		go func() { verdict <- n.Wake(t.Context(), ask("wiki")) }()
		time.Sleep(time.Second)
		for range 5 {
			w.lease("wiki", "s2", time.Now().Add(5*time.Second))
			time.Sleep(2 * time.Second)
		}
		assert.Equal(t, scaler.Later, (<-verdict).Kind)
		assert.Equal(t, "s2", w.state("wiki").Owner)
		assert.Equal(t, workload.Waking, w.state("wiki").Phase)
		time.Sleep(7 * time.Second) // that one died as well
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.count(w.engine.started, "wiki"))
	})
}

func TestTwoScalersOnOneStoreMakeOneStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.store.delay = time.Millisecond
		scalers := []*node{w.scaler(scaler.Config{}, spec("wiki")), w.scaler(scaler.Config{}, spec("wiki"))}
		for round := range 20 {
			done := make(chan struct{}, 2)
			for _, n := range scalers {
				go func() {
					for n.Wake(t.Context(), ask("wiki")).Kind == scaler.Later {
						time.Sleep(500 * time.Millisecond)
					}
					done <- struct{}{}
				}()
			}
			<-done
			<-done
			w.ready("wiki", uint64(round+1))
			time.Sleep(2 * time.Minute) // both see it idle
			require.Equal(t, workload.Asleep, w.state("wiki").Phase)
			require.Equal(t, round+1, w.engine.count(w.engine.started, "wiki"))
			require.Equal(t, round+1, w.engine.count(w.engine.stopped, "wiki"))
		}
	})
}

// What a scaler remembers is outdated where another has acted.
func TestAWakeThatReachesTheOtherScalerIsNotTakenForDone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").stop = 3 * time.Second
		first, second := w.scaler(scaler.Config{}, spec("wiki")), w.scaler(scaler.Config{}, spec("wiki"))
		first.wake(t, "wiki")
		second.wake(t, "wiki") // now it knows of Ready as well
		time.Sleep(5 * time.Second)
		go first.Sleep(t.Context(), "wiki")
		time.Sleep(time.Second)
		a := ask("wiki")
		a.Generation = 1
		assert.Equal(t, scaler.Later, second.Wake(t.Context(), a).Kind, "it is being stopped")
		time.Sleep(3 * time.Second)
		assert.Equal(t, scaler.Verdict{}, second.Wake(t.Context(), a))
		w.ready("wiki", 2)
	})
}

func TestAStartByHandOrByARestartPolicyIsAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		w.engine.byHand("wiki")
		time.Sleep(time.Second)
		st := w.ready("wiki", 1)
		assert.Nil(t, st.Wake)
		assert.Equal(t, []workload.EventKind{workload.EventAdopted}, w.kinds("wiki"))
		w.engine.die("wiki", st.Replicas[0].ID, 1, false)
		synctest.Wait()
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "dropped at once")
		w.engine.byHand("wiki")
		time.Sleep(time.Second)
		w.ready("wiki", 2)
		time.Sleep(time.Minute)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "idle as any other")
		assert.Equal(t, 1, w.engine.count(w.engine.stopped, "wiki"))
		n.wake(t, "wiki")
	})
}

func TestWhatRunsAndNeverAnswersIsNotHammered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").boot = 20 * time.Minute
		tries := 0
		w.engine.tried = func() { tries++ }
		w.scaler(scaler.Config{}, spec("wiki"))
		w.engine.byHand("wiki")
		time.Sleep(61 * time.Second)
		w.engine.do(func() { tries = 0 })
		time.Sleep(10 * time.Minute)
		w.engine.do(func() { assert.LessOrEqual(t, tries, 21, "once with each list") })
		time.Sleep(9*time.Minute + 30*time.Second)
		w.ready("wiki", 1)
	})
}

func TestAListThatIsOutdatedIsNotBelieved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(time.Second)
		hold := make(chan struct{})
		w.engine.do(func() { w.engine.hold = hold })
		n.Reconcile() // lists that nothing runs, and takes long to say so
		synctest.Wait()
		n.wake(t, "wiki")
		revision := w.ready("wiki", 1).Revision
		w.engine.do(func() { w.engine.hold = nil })
		close(hold)
		time.Sleep(time.Second)
		assert.Equal(t, revision, w.ready("wiki", 1).Revision)
	})
}

func TestARuntimeThatCannotBeListedChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.byHand("wiki")
		w.readyInStore("wiki", 3)
		w.engine.listErr = errors.New("engine away")
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 3)
		assert.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), ask("wiki")))
		lists := w.engine.lists
		assert.Less(t, lists, 1000, "with growing pauses")
		w.engine.do(func() { w.engine.listErr, w.engine.copies["wiki"] = nil, nil })
		time.Sleep(20 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestAWakeReturnsWithItsContextAndTheStartGoesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		assert.Equal(t, scaler.Later, n.Wake(ctx, ask("wiki")).Kind)
		time.Sleep(time.Second)
		w.ready("wiki", 1)
	})
}
