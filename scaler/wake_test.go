package scaler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

func TestAWakeBringsASleeperUpAndRecordsEachStep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		begun := time.Now()
		n.wake(t, "wiki")

		st := w.ready("wiki", 1)
		assert.Equal(t, []workload.Phase{workload.Waking, workload.Ready}, w.phases("wiki"))
		assert.Empty(t, st.Owner)
		assert.Zero(t, st.LeaseUntil)
		rec := st.Wake
		require.NotNil(t, rec)
		assert.Equal(t, uint64(1), rec.Generation)
		assert.Equal(t, "w", rec.ID)
		assert.WithinDuration(t, begun, rec.ReceivedAt, 0)
		assert.WithinDuration(t, begun, rec.StartAt, 0)
		assert.Equal(t, 100*time.Millisecond, rec.StartedAt.Sub(rec.StartAt))
		assert.InDelta(t, 50, rec.ReadyAt.Sub(rec.StartedAt).Milliseconds(), 1, "proved within a try of its readiness")
		assert.Equal(t, rec.ReadyAt, st.Since, "written at once")

		synctest.Wait()
		assert.Equal(t, []workload.EventKind{workload.EventWoken, workload.EventStarted, workload.EventReady}, w.kinds("wiki"))
		last := w.events[2]
		assert.Equal(t, "s1", last.Actor)
		assert.Len(t, last.Wake.Steps(), 4)
	})
}

// The address of a replica that has ended may answer, as something else has it
// now.
func TestAnAnswerProvesOnlyAReplicaThatStillRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		confirmed, begun := 0, time.Now()
		w.engine.confirm = func(string) error {
			if confirmed++; time.Since(begun) < time.Second {
				return errors.New("it has ended")
			}
			return nil
		}
		n.wake(t, "wiki")
		st := w.ready("wiki", 1)
		assert.InDelta(t, 1000, st.Since.Sub(begun).Milliseconds(), 50)
		assert.Greater(t, confirmed, 1)
	})
}

func TestWakesJoinTheStartUnderWay(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				n.wake(t, "wiki")
			})
		}
		all.Wait()
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
	})
}

func TestAWakeOfWhatIsReadyStartsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		revision := w.state("wiki").Revision
		n.wake(t, "wiki") // asks with generation 0: stale
		api := ask("wiki")
		api.Generation, api.Trigger = 1, workload.TriggerAPI
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), api))
		assert.Equal(t, revision, w.state("wiki").Revision, "nothing written")
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
	})
}

// A gate that a called off drain closed late knows this generation and asks
// all the same; only a newer revision opens it.
func TestAGatewayThatAsksForTheGenerationItKnowsIsToldAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(time.Second)
		before := w.state("wiki")
		a := ask("wiki")
		a.Generation = 1
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), a))
		after := w.ready("wiki", 1)
		assert.Greater(t, after.Revision, before.Revision)
		before.Revision, after.Revision = 0, 0
		assert.Equal(t, before, after)
	})
}

func TestWhatRefusesIsProvedAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").copies = 2
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(time.Second)
		refused := ask("wiki")
		refused.Unreachable, refused.Generation = true, 1

		revision := w.ready("wiki", 1).Revision
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused))
		assert.Greater(t, w.ready("wiki", 1).Revision, revision, "it answers: told anew")

		ids := w.engine.running("wiki")
		w.engine.do(func() { w.engine.deaf[ids[0]] = true })
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused))
		st := w.state("wiki")
		require.Len(t, st.Replicas, 1, "the deaf one is out")
		assert.Equal(t, ids[1], st.Replicas[0].ID)
		w.engine.do(func() { delete(w.engine.deaf, ids[0]) })
		time.Sleep(time.Second)
		w.ready("wiki", 1)

		stale := refused
		stale.Generation = 0
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), stale))
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
	})
}

func TestWhoeverIsRefusedMeanwhileJoinsTheProof(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").probe = 20 * time.Millisecond
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(time.Second)
		refused := ask("wiki")
		refused.Unreachable, refused.Generation = true, 1
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { assert.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused)) })
			time.Sleep(3 * time.Millisecond)
		}
		all.Wait()
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
	})
}

// What runs already may answer while the start of the rest is under way: all
// that a start brings up is served once it has returned.
func TestWhatAnswersSlowlyBecomesReadyAllTheSame(t *testing.T) {
	for _, roundTrip := range []time.Duration{70 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second} {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.scaler(scaler.Config{}, spec("far"))
			w.engine.plan("far").probe = roundTrip
			n.wake(t, "far")
			w.ready("far", 1)
			assert.Equal(t, 1, w.engine.count(w.engine.started, "far"))
		})
	}
}

func TestReadyWaitsForTheStartToReturn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.atLeast, p.boot = 2*time.Second, 200*time.Millisecond
		n := w.scaler(scaler.Config{}, spec("wiki"))
		w.engine.byHand("wiki")
		time.Sleep(100 * time.Millisecond) // it is being proved
		n.wake(t, "wiki")
		st := w.ready("wiki", 1)
		assert.Equal(t, st.Wake.StartedAt, st.Since)
		assert.False(t, st.Wake.ReadyAt.Before(st.Wake.StartedAt))
	})
}

func TestWhatAnswersNobodyGetsTheNextGeneration(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		id := w.engine.running("wiki")[0]
		w.engine.do(func() { w.engine.deaf[id] = true })
		time.AfterFunc(3*time.Second, func() { w.engine.do(func() { delete(w.engine.deaf, id) }) })
		refused := ask("wiki")
		refused.Unreachable, refused.Generation = true, 1
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused))
		w.ready("wiki", 2)
		assert.Equal(t, 1, w.engine.count(w.engine.started, "wiki"), "it runs, and is not started twice")
	})
}

func TestAWakeOfWhatDiedUnheardStartsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.engine.do(func() { w.engine.copies["wiki"] = nil }) // no event
		refused := ask("wiki")
		refused.Unreachable, refused.Generation = true, 1
		require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), refused))
		w.ready("wiki", 2)
	})
}

func TestWakesOfAHundredWorkloadsRespectThePlacesAndTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var specs []workload.Workload
		for i := range 100 {
			specs = append(specs, spec(fmt.Sprintf("w%02d", i)))
			w.engine.plan(specs[i].Name).start = time.Second
		}
		n := w.scaler(scaler.Config{StartsInParallel: 4}, specs...)
		begun := time.Now()
		var all sync.WaitGroup
		var want []string
		for _, s := range specs {
			want = append(want, s.Name)
			all.Go(func() { n.wake(t, s.Name) })
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		assert.Equal(t, 4, w.engine.most)
		assert.Equal(t, want, w.engine.order, "first come, first served")
		assert.InDelta(t, 25, time.Since(begun).Seconds(), 0.2, "no place stays empty, none is kept while proving")
		for _, s := range specs {
			st := w.ready(s.Name, 1)
			for _, step := range st.Wake.Steps() {
				assert.LessOrEqual(t, step.Duration, 25*time.Second)
			}
		}
	})
}

func TestAStartThatHangsHoldsUpNoOtherWorkload(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("sick").start = time.Hour
		n := w.scaler(scaler.Config{StartsInParallel: 2}, spec("sick"), spec("wiki"))
		go n.Wake(t.Context(), ask("sick"))
		synctest.Wait()
		n.wake(t, "wiki")
		w.ready("wiki", 1)
	})
}

func TestSeveralReplicasAreServedFromTheFirstOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.copies, p.bootMore = 3, time.Second
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		assert.Len(t, w.state("wiki").Replicas, 1)
		assert.Len(t, w.engine.running("wiki"), 3)
		time.Sleep(1100 * time.Millisecond)
		assert.Len(t, w.state("wiki").Replicas, 2)
		time.Sleep(1100 * time.Millisecond)
		st := w.ready("wiki", 1)

		w.engine.die("wiki", st.Replicas[0].ID, 1, false)
		synctest.Wait()
		assert.Len(t, w.ready("wiki", 1).Replicas, 2, "the dead one leaves at once")
		for _, id := range w.engine.running("wiki") {
			w.engine.die("wiki", id, 3, false)
		}
		synctest.Wait()
		st = w.state("wiki")
		assert.Equal(t, workload.Asleep, st.Phase)
		assert.Equal(t, workload.ReasonExited, st.Reason.Code)
		assert.Equal(t, 3, st.Reason.ExitCode)
	})
}

func TestReadyWaitsForTheEnginesHealthCheckWhereAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").health = scaler.HealthStarting
		s := spec("wiki")
		s.Ready.Kind = workload.ReadyDocker
		n := w.scaler(scaler.Config{}, s)
		time.AfterFunc(5*time.Second, func() { w.engine.setHealth("wiki", scaler.HealthHealthy, scaler.Healthy) })
		begun := time.Now()
		n.wake(t, "wiki")
		assert.Equal(t, 5*time.Second, time.Since(begun))
		w.ready("wiki", 1)
	})
}

// The verdict may be heard before the start has returned.
func TestAVerdictThatOvertakesTheStartIsNotLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.health, p.start = scaler.HealthStarting, time.Second
		s := spec("wiki")
		s.Ready.Kind = workload.ReadyDocker
		n := w.scaler(scaler.Config{}, s)
		tell := func(k scaler.EventKind) func() {
			return func() {
				w.engine.do(func() {
					w.engine.tell(scaler.Event{Kind: k, Workload: "wiki", ID: w.engine.copies["wiki"][0].ID})
				})
			}
		}
		time.AfterFunc(500*time.Millisecond, tell(scaler.Healthy))
		time.AfterFunc(600*time.Millisecond, tell(scaler.Started))
		begun := time.Now()
		n.wake(t, "wiki")
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

func TestSlowHistoryDelaysNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.recordIn = 1900 * time.Millisecond
		n := w.scaler(scaler.Config{}, spec("wiki"))
		begun := time.Now()
		n.wake(t, "wiki")
		assert.Less(t, time.Since(begun), 200*time.Millisecond)
		time.Sleep(10 * time.Second)
		assert.Len(t, w.kinds("wiki"), 3)
	})
}

func TestAnUnknownWorkloadIsRefusedOnceTheCatalogIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		empty := scaler.New(scaler.Config{}, scaler.Deps{Board: w.board})
		assert.Equal(t, scaler.Later, empty.Wake(t.Context(), ask("wiki")).Kind)
		n := w.scaler(scaler.Config{}, spec("other"))
		assert.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("wiki")).Kind)
		elsewhere, odd := spec("elsewhere"), spec("odd")
		elsewhere.Node, odd.Runtime = "n2", "none"
		n.Update([]workload.Workload{elsewhere, odd, spec("wiki")})
		assert.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("elsewhere")).Kind)
		assert.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("odd")).Kind)
		n.wake(t, "wiki")
		assert.Equal(t, map[string]bool{"wiki": true}, w.engine.mine)
	})
}

func TestANewDescriptionAppliesFromTheNextDecision(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := spec("wiki")
		n := w.scaler(scaler.Config{}, s)
		go func() { // while it is woken, fails, and sleeps
			for i := range 1000 {
				s := s
				s.IdleTimeout = time.Duration(i+1) * time.Second
				n.Update([]workload.Workload{s})
				time.Sleep(time.Millisecond)
			}
			s := s
			s.IdleTimeout = 5 * time.Second
			n.Update([]workload.Workload{s})
		}()
		n.wake(t, "wiki")
		w.ready("wiki", 1)
		time.Sleep(8 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
		w.engine.plan("wiki").exitAfter, w.engine.plan("wiki").boot = time.Millisecond, time.Hour
		require.Equal(t, scaler.Permanent, n.Wake(t.Context(), ask("wiki")).Kind)
	})
}

// A start that does not end with its removal is waited for by who comes next.
func TestAWorkloadThatComesBackWaitsForWhatItsFormerLifeBegan(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.engine.plan("wiki")
		p.start, p.ignoresCtx = 30*time.Second, true
		n := w.scaler(scaler.Config{}, spec("wiki"))
		go n.Wake(t.Context(), ask("wiki"))
		time.Sleep(time.Second)
		n.Update(nil)
		n.Update([]workload.Workload{spec("wiki")})
		n.wake(t, "wiki")
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.most, "one start at a time")
		assert.Equal(t, 1, w.engine.count(w.engine.started, "wiki"))
	})
}

func TestARemovedWorkloadIsLeftAsItRuns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"), spec("blog"))
		n.wake(t, "wiki")
		w.engine.plan("blog").start = time.Minute
		verdict := make(chan scaler.Verdict, 1)
		go func() { verdict <- n.Wake(t.Context(), ask("blog")) }()
		synctest.Wait()
		n.Update(nil)
		assert.Equal(t, scaler.Permanent, (<-verdict).Kind)
		time.Sleep(10 * time.Minute)
		assert.Len(t, w.engine.running("wiki"), 1)
		n.Update([]workload.Workload{spec("wiki")})
		time.Sleep(time.Second)
		w.ready("wiki", 1)
	})
}

// A life with nothing to wait for must hear of its removal all the same.
func TestAWorkloadThatSleptWhenItWasRemovedWakesOnceItIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(time.Minute)
		n.Update(nil)
		n.Update([]workload.Workload{spec("wiki")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.Equal(t, scaler.Done, n.Wake(ctx, ask("wiki")).Kind)
		w.ready("wiki", 1)
	})
}
