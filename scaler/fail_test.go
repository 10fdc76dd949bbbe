package scaler_test

import (
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

func TestAFailedStartAnswersAtOnceWithTheReason(t *testing.T) {
	notFound := workload.Reason{Code: workload.ReasonNotFound, Detail: "no such container: wiki"}
	for name, c := range map[string]struct {
		plan  plan
		ready workload.ReadyKind
		event func(w *world) // 300 ms after the wake
		early bool           // 200 ms after it
		want  workload.Reason
		after time.Duration
		stops int
	}{
		"exit": {
			plan: plan{exitAfter: 200 * time.Millisecond, exitCode: 3},
			want: workload.Reason{Code: workload.ReasonExited, Detail: "it ended before it was ready", ExitCode: 3},
		},
		"out of memory": {
			plan: plan{exitAfter: 200 * time.Millisecond, exitCode: 137, oom: true},
			want: workload.Reason{Code: workload.ReasonOOM, Detail: "it ended before it was ready", ExitCode: 137},
		},
		"not found": {
			plan: plan{startErr: &scaler.StartError{Reason: notFound}}, want: notFound,
		},
		"any error": {
			plan: plan{startErr: errors.New("port is taken")},
			want: workload.Reason{Code: workload.ReasonStartError, Detail: "port is taken"},
		},
		"unhealthy": {
			event: func(w *world) { w.engine.setHealth("wiki", scaler.HealthUnhealthy, scaler.Unhealthy) },
			want:  workload.Reason{Code: workload.ReasonUnhealthy, Detail: "its health check failed"}, stops: 1,
		},
		"removed": {
			event: func(w *world) {
				w.engine.do(func() {
					id := w.engine.copies["wiki"][0].ID
					w.engine.copies["wiki"] = nil
					w.engine.tell(scaler.Event{Kind: scaler.Removed, Workload: "wiki", ID: id})
				})
			},
			want: workload.Reason{Code: workload.ReasonRemoved, Detail: "it was removed"},
		},
		"exit before the start returned": {
			plan:  plan{start: 250 * time.Millisecond},
			event: func(w *world) { w.engine.die("wiki", w.engine.running("wiki")[0], 4, false) },
			early: true,
			want:  workload.Reason{Code: workload.ReasonExited, Detail: "it ended before it was ready", ExitCode: 4},
		},
		"gone unheard": {
			event: func(w *world) {
				w.engine.do(func() {
					w.engine.copies["wiki"] = nil
					w.engine.tell(scaler.Event{Kind: scaler.Resynced})
				})
			},
			want: workload.Reason{Code: workload.ReasonExited, Detail: "it ended before it was ready"},
		},
		"docker without a health check": {
			ready: workload.ReadyDocker,
			want: workload.Reason{
				Code: workload.ReasonStartError, Detail: "ready is docker, but there is no health check: add one, or use auto",
			}, stops: 1,
		},
		"never ready": {
			want:  workload.Reason{Code: workload.ReasonTimeout, Detail: "not ready within 1m0s: connection refused"},
			after: time.Minute, stops: 1,
		},
		"start that hangs": {
			plan:  plan{start: time.Hour},
			want:  workload.Reason{Code: workload.ReasonTimeout, Detail: "not ready within 1m0s: the start did not return"},
			after: time.Minute, stops: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.engine.plan("wiki")
				*p = c.plan
				p.boot = time.Hour
				if p.start == 0 {
					p.start = 100 * time.Millisecond
				}
				s := spec("wiki")
				if c.stops > 0 {
					s.Stop = workload.StopPause
				}
				if c.ready != "" {
					s.Ready.Kind = c.ready
				}
				if c.event != nil && c.early {
					time.AfterFunc(200*time.Millisecond, func() { c.event(w) })
				} else if c.event != nil {
					time.AfterFunc(300*time.Millisecond, func() { c.event(w) })
				}
				n := w.scaler(scaler.Config{}, s)
				begun := time.Now()
				v := n.Wake(t.Context(), ask("wiki"))

				want := c.want
				want.Log = []string{"boot", "last words"}
				assert.Equal(t, scaler.Verdict{Kind: scaler.Permanent, Reason: want.String()}, v)
				assert.LessOrEqual(t, time.Since(begun), max(c.after, 300*time.Millisecond), "at once")
				st := w.state("wiki")
				assert.Equal(t, workload.Failed, st.Phase)
				assert.Equal(t, want, st.Reason)
				assert.Equal(t, 1, st.Failures)
				time.Sleep(time.Second)
				assert.Empty(t, w.state("wiki").Owner)
				assert.Equal(t, c.stops, w.engine.count(w.engine.stopped, "wiki"), "stopped where it was given up")
				w.engine.do(func() { assert.Empty(t, w.engine.copies["wiki"], "not even paused") })
				assert.Contains(t, w.kinds("wiki"), workload.EventFailed)
			})
		})
	}
}

// A failure that was written by a clock an hour ahead, or before this one was
// set back by an hour, holds for as long as it was meant to.
func TestABackOffIsOverInTimeByEveryClock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ahead := time.Now().Add(time.Hour)
		w.put(workload.State{
			Workload: "wiki", Phase: workload.Failed, Generation: 3, Failures: 1,
			Since: ahead, RetryAt: ahead.Add(10 * time.Second),
		})
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(9 * time.Second)
		n.Wake(t.Context(), ask("wiki"))
		assert.Equal(t, workload.Failed, w.state("wiki").Phase)
		time.Sleep(2 * time.Second)
		n.wake(t, "wiki")
		w.ready("wiki", 4)
	})
}

// Who waits while an engine is restarted is served when it is back.
func TestAShortAbsenceOfThePlatformFailsNoWake(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		there := *w.engine.plan("wiki")
		w.engine.plan("wiki").startErr = fmt.Errorf("start: %w", scaler.ErrAway)
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.AfterFunc(5*time.Second, func() {
			w.engine.do(func() { w.engine.plans["wiki"] = &there })
		})
		begun := time.Now()
		n.wake(t, "wiki")
		w.ready("wiki", 1)
		assert.Less(t, time.Since(begun), 7*time.Second)
		assert.Equal(t, []workload.Phase{workload.Waking, workload.Ready}, w.phases("wiki"))
	})
}

// However long the platform was away: the first request after it is served.
func TestABackOffDoesNotGrowWhileThePlatformIsAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").startErr = fmt.Errorf("start: %w", scaler.ErrAway)
		w.engine.plan("app").start = 0
		app := spec("app")
		app.DependsOn = []string{"wiki"}
		n := w.scaler(scaler.Config{}, spec("wiki"), app)
		for range 20 {
			for _, name := range []string{"app", "wiki"} {
				require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask(name)).Kind)
				assert.Less(t, time.Until(w.state(name).RetryAt), 1300*time.Millisecond)
				time.Sleep(1300 * time.Millisecond)
			}
		}
		w.engine.plan("wiki").startErr = nil
		n.wake(t, "app")
		assert.Zero(t, w.state("wiki").Failures)
	})
}

// The engine was frozen when its copy died, so the start found it running and
// its end is told before the start returns.
func TestTheEndOfAnEarlierRunIsNoFailureOfTheStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		id := w.engine.byHand("wiki")
		w.readyInStore("wiki", 3)
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(time.Second)
		w.engine.plan("wiki").atLeast = 3 * time.Second
		w.engine.do(func() { w.engine.deaf[id] = true })
		time.AfterFunc(2*time.Second, func() { w.engine.die("wiki", id, 137, false) })
		refused := ask("wiki")
		refused.Generation, refused.Unreachable = 3, true
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused))
		w.ready("wiki", 4)
	})
}

func TestNothingIsStartedBeforeTheBackOffIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").startErr = errors.New("no")
		n := w.scaler(scaler.Config{}, spec("wiki"))
		var pauses []time.Duration
		for i := range 9 {
			require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("wiki")).Kind)
			st := w.state("wiki")
			require.Equal(t, i+1, st.Failures)
			pause := st.RetryAt.Sub(st.Since)
			pauses = append(pauses, pause)
			time.Sleep(pause - time.Millisecond)
			calls := w.engine.count(w.engine.calls, "wiki")
			require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), ask("wiki")), "done, with nothing started")
			require.Equal(t, calls, w.engine.count(w.engine.calls, "wiki"))
			time.Sleep(time.Millisecond)
		}
		for i, p := range pauses {
			most := min(time.Second<<i, time.Minute)
			assert.InDelta(t, most.Seconds(), p.Seconds(), most.Seconds()*0.2+0.001, i)
			assert.LessOrEqual(t, p, time.Minute)
		}
		w.engine.plan("wiki").startErr = nil
		n.wake(t, "wiki")
		assert.Zero(t, w.ready("wiki", 10).Failures)
	})
}

func TestAWakeAfterATimeoutWaitsForTheEndOfWhatWasGivenUp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.boot, p.stop = time.Hour, 10*time.Second
		n := w.scaler(scaler.Config{}, spec("wiki"))
		require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("wiki")).Kind)
		time.Sleep(2 * time.Second) // the back-off is over, the stop is not
		w.engine.do(func() { p.boot = 0 })
		go func() {
			time.Sleep(5 * time.Second)
			assert.Equal(t, workload.Failed, w.state("wiki").Phase, "its time has not begun")
		}()
		n.wake(t, "wiki")
		st := w.ready("wiki", 2)
		assert.GreaterOrEqual(t, st.Since.Sub(st.Wake.RequestedAt), 7*time.Second)
		assert.Equal(t, 2, w.engine.count(w.engine.started, "wiki"))
	})
}

// The model found it adopted, and requests sent to what was being stopped.
func TestWhatIsGivenUpIsNotServedWhileItEnds(t *testing.T) {
	cases := map[string]func(*world, *node){
		"there is another scaler": func(w *world, _ *node) { w.scaler(scaler.Config{Owner: "s2"}, spec("wiki")) },
		"its scaler ends": func(w *world, first *node) {
			first.stop()
			w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		},
		"its scaler is killed": func(w *world, first *node) {
			first.kill()
			w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		},
	}
	for name, then := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.engine.plan("wiki")
				p.boot, p.stop = time.Hour, 9*time.Second
				first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
				require.Equal(t, scaler.Permanent, first.Wake(t.Context(), ask("wiki")).Kind)
				w.engine.do(func() { p.boot = 0 }) // too late it answers
				assert.Equal(t, "s1", w.state("wiki").Owner)
				then(w, first)
				time.Sleep(30 * time.Second)
				assert.Equal(t, []workload.Phase{workload.Waking, workload.Failed}, w.phases("wiki"))
				assert.Empty(t, w.state("wiki").Owner)
			})
		})
	}
}

// A runtime that starts some of the replicas has done something useful.
func TestOneReplicaOfTwoIsEnoughToServe(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.copies, p.bootMore = 2, time.Hour
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.AfterFunc(120*time.Millisecond, func() {
			w.engine.die("wiki", w.engine.running("wiki")[1], 1, false)
		})
		n.wake(t, "wiki")
		assert.Len(t, w.ready("wiki", 1).Replicas, 1)
	})
}

func TestLogsThatCannotBeHadDoNotHoldUpTheFailure(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.logsErr = errors.New("no log driver")
		p := w.engine.plan("wiki")
		p.exitAfter, p.boot = time.Millisecond, time.Hour
		n := w.scaler(scaler.Config{}, spec("wiki"))
		require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("wiki")).Kind)
		assert.Equal(t, workload.ReasonExited, w.state("wiki").Reason.Code)
		_, err := n.Logs(t.Context(), "wiki", 10)
		assert.ErrorContains(t, err, "no log driver")
		_, err = n.Logs(t.Context(), "none", 10)
		assert.ErrorIs(t, err, scaler.ErrUnknown)
	})
}

func TestDependenciesAreWokenFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		app, db, cache := spec("app"), spec("db"), spec("cache")
		app.DependsOn = []string{"db", "cache", "not-ours"}
		n := w.scaler(scaler.Config{StartsInParallel: 1}, app, db, cache)
		n.wake(t, "app")
		appSt, dbSt, cacheSt := w.ready("app", 1), w.ready("db", 1), w.ready("cache", 1)
		assert.Equal(t, workload.TriggerDependency, dbSt.Wake.Trigger)
		assert.False(t, appSt.Wake.StartAt.Before(dbSt.Since))
		assert.False(t, appSt.Wake.StartAt.Before(cacheSt.Since))
	})
}

func TestAJobHasToEndWellBeforeWhoNeedsIt(t *testing.T) {
	for name, ends := range map[string]time.Duration{"after its start": 5 * time.Second, "as it starts": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				app, migrate := spec("app"), spec("migrate")
				app.DependsOn, migrate.Job = []string{"migrate"}, true
				p := w.engine.plan("migrate")
				p.exitAfter, p.boot = ends, time.Hour // it never listens
				n := w.scaler(scaler.Config{}, app, migrate)
				begun := time.Now()
				n.wake(t, "app")
				w.ready("app", 1)
				assert.GreaterOrEqual(t, time.Since(begun), ends)
				assert.Equal(t, []string{"migrate", "app"}, w.engine.order)
				st := w.state("migrate")
				assert.Equal(t, workload.Asleep, st.Phase)
				assert.Equal(t, workload.Reason{Code: workload.ReasonCompleted}, st.Reason)
				time.Sleep(5 * time.Minute)
				assert.Equal(t, workload.Asleep, w.state("app").Phase)
				n.wake(t, "app")
				assert.Equal(t, 2, w.engine.started["migrate"], "anew for each wake")

				p.exitCode = 3
				time.Sleep(5 * time.Minute)
				v := n.Wake(t.Context(), ask("app"))
				assert.Equal(t, scaler.Permanent, v.Kind)
				assert.Contains(t, v.Reason, "migrate: exited with code 3")
			})
		})
	}
}

// Three applications, one database: it stays while any of them is awake, and
// sleeps last.
func TestASharedDependencySleepsAfterTheLastThatNeedsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		disk, db := spec("disk"), spec("db")
		db.DependsOn = []string{"disk"}
		disk.IdleTimeout, db.IdleTimeout = time.Second, time.Second
		ws := []workload.Workload{disk, db}
		for _, name := range []string{"a", "b", "c"} {
			app := spec(name)
			app.DependsOn = []string{"db"}
			ws = append(ws, app)
		}
		n := w.scaler(scaler.Config{}, ws...)
		for _, name := range []string{"a", "b", "c"} {
			n.wake(t, name)
		}
		assert.Equal(t, []string{"disk", "db", "a", "b", "c"}, w.engine.order)
		for range 5 {
			time.Sleep(50 * time.Second)
			w.use("g1", "b", 0)
		}
		assert.Equal(t, workload.Asleep, w.state("a").Phase)
		assert.Equal(t, workload.Asleep, w.state("c").Phase)
		w.ready("b", 1)
		w.ready("db", 1)
		w.ready("disk", 1)
		time.Sleep(2 * time.Minute)
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		var slept []string
		for _, st := range w.store.writes {
			if st.Phase == workload.Asleep && st.Generation > 0 && st.Workload != "a" && st.Workload != "c" {
				slept = append(slept, st.Workload)
			}
		}
		assert.Equal(t, []string{"b", "db", "disk"}, slept)
	})
}

func TestAFailedDependencyFailsWhoNeedsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		app, db := spec("app"), spec("db")
		app.DependsOn = []string{"db"}
		p := w.engine.plan("db")
		p.exitAfter, p.exitCode, p.boot = time.Millisecond, 2, time.Hour
		n := w.scaler(scaler.Config{}, app, db)
		v := n.Wake(t.Context(), ask("app"))
		want := workload.Reason{Code: workload.ReasonDependency, Detail: "db: exited with code 2: it ended before it was ready"}
		assert.Equal(t, scaler.Verdict{Kind: scaler.Permanent, Reason: want.String()}, v)
		assert.Equal(t, want, w.state("app").Reason)
		assert.Zero(t, w.engine.count(w.engine.calls, "app"))
		assert.Zero(t, w.engine.count(w.engine.stopped, "app"), "what was never started is not stopped")

		// While the dependency backs off, the next try fails at once as well.
		for range 2 {
			time.Sleep(time.Until(w.state("db").RetryAt))
			require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("db")).Kind)
		}
		require.Greater(t, time.Until(w.state("db").RetryAt), time.Until(w.state("app").RetryAt))
		time.Sleep(time.Until(w.state("app").RetryAt))
		assert.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("app")).Kind)
		assert.Equal(t, want.Code, w.state("app").Reason.Code)
		assert.Equal(t, 3, w.engine.count(w.engine.calls, "db"))
		assert.Zero(t, w.engine.count(w.engine.calls, "app"))
	})
}

func TestADependencyThatIsNotReadyInTimeFailsWhoNeedsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		app, db := spec("app"), spec("db")
		app.DependsOn, app.WakeTimeout = []string{"db"}, 10*time.Second
		w.engine.plan("db").boot = 30 * time.Second
		n := w.scaler(scaler.Config{}, app, db)
		begun := time.Now()
		assert.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("app")).Kind)
		assert.Equal(t, 10*time.Second, time.Since(begun))
		time.Sleep(25 * time.Second)
		w.ready("db", 1) // its own start went on
		n.wake(t, "app")
	})
}

func TestADependencyStaysAwakeWithItsDependant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		app, db := spec("app"), spec("db")
		app.DependsOn = []string{"db"}
		n := w.scaler(scaler.Config{}, app, db)
		n.wake(t, "app")
		w.use("g1", "app", 1)
		time.Sleep(10 * time.Minute)
		w.ready("db", 1)
		assert.ErrorIs(t, n.Sleep(t.Context(), "db"), scaler.ErrInUse)
		assert.Zero(t, n.SleepsAt("db"))
		w.use("g1", "app", 0)
		time.Sleep(62 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("app").Phase)
		assert.Equal(t, workload.Ready, w.state("db").Phase, "idle counts from the end of that use")
		time.Sleep(62 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("db").Phase)
		synctest.Wait()
	})
}

// The one that crashed while it served still runs for the platform when the
// refused request has it started again.
func TestTheEndOfWhatServedBeforeDoesNotFailTheNextStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		id := w.ready("wiki", 1).Replicas[0].ID
		w.engine.do(func() { w.engine.deaf[id] = true })
		time.AfterFunc(300*time.Millisecond, func() { w.engine.die("wiki", id, 1, false) })
		a := ask("wiki")
		a.Generation, a.Unreachable = 1, true
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), a))
		assert.NotEqual(t, id, w.ready("wiki", 2).Replicas[0].ID)
	})
}
