package scaler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// keep says that a workload is kept awake from now on, by a gateway that is
// gone since.
func (w *world) keep(name string, d time.Duration) {
	w.board.Hear(workload.Activity{Gateway: "g0", Leaving: true, Loads: []workload.Load{
		{Workload: name, IdleMS: -1, KeepMS: d.Milliseconds()},
	}}, time.Now())
}

func TestWhatIsKeptAwakeSleepsWhenThatIsOverAndNotBefore(t *testing.T) {
	for _, kept := range []time.Duration{10 * time.Second, 10 * time.Minute} {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.scaler(scaler.Config{}, spec("wiki")) // idle after a minute
			w.keep("wiki", kept)
			n.wake(t, "wiki")
			w.keep("wiki", kept)
			until := time.Now().Add(kept)
			time.Sleep(5 * time.Second)
			assert.WithinDuration(t, until, n.SleepsAt("wiki"), time.Millisecond)
			time.Sleep(time.Until(until) - time.Millisecond)
			w.ready("wiki", 1)
			time.Sleep(time.Second)
			assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
		})
	}
}

func TestARequestCountsBesideWhatIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		w.keep("wiki", 30*time.Second)
		n.wake(t, "wiki")
		w.use("g1", "wiki", 0)
		w.keep("wiki", 30*time.Second)
		time.Sleep(59 * time.Second)
		w.ready("wiki", 1)
		time.Sleep(2 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

// A gateway that does not answer a drain in time is no reason to stay awake for
// an idle timeout that does not count.
func TestASleepThatIsCalledOffIsTriedAgainSoonWhereItWasKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := spec("wiki")
		long.IdleTimeout = time.Hour
		n := w.scaler(scaler.Config{}, long)
		n.wake(t, "wiki")
		w.keep("wiki", 30*time.Second)
		deaf := func(is bool) {
			g := w.gateway("g1")
			w.mu.Lock()
			defer w.mu.Unlock()
			g.deaf = is
		}
		deaf(true)
		time.Sleep(40 * time.Second)
		w.ready("wiki", 1)
		require.Equal(t, 1, w.drained())
		deaf(false)
		time.Sleep(10 * time.Second)
		require.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

// Whoever keeps it for less than it would be idle is seen within a while.
func TestWhatIsKeptForLessThanItWouldBeIdle(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		long := spec("wiki")
		long.IdleTimeout = 24 * time.Hour
		n := w.scaler(scaler.Config{}, long)
		n.wake(t, "wiki")
		time.Sleep(time.Hour)
		w.keep("wiki", time.Minute)
		time.Sleep(time.Minute - time.Millisecond)
		w.ready("wiki", 1)
		time.Sleep(15 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestReadyAfterPassesBetweenTheProofAndTheAnnouncement(t *testing.T) {
	for _, ready := range []workload.ReadyKind{workload.ReadyAuto, workload.ReadyDocker} {
		inWorld(t, func(t *testing.T, w *world) {
			slow := spec("slow")
			slow.Ready.Kind, slow.ReadyAfter = ready, 20*time.Second
			n := w.scaler(scaler.Config{}, slow)
			if ready == workload.ReadyDocker {
				w.engine.plan("slow").health = scaler.HealthHealthy
			}
			began := time.Now()
			woken := make(chan scaler.Verdict, 1)
			go func() { woken <- n.Wake(t.Context(), ask("slow")) }()
			time.Sleep(19 * time.Second)
			require.Equal(t, workload.Waking, w.state("slow").Phase)
			require.Len(t, w.engine.running("slow"), 1)
			require.Equal(t, scaler.Verdict{}, <-woken)
			w.ready("slow", 1)
			assert.GreaterOrEqual(t, time.Since(began), 20*time.Second)
			assert.Less(t, time.Since(began), 30*time.Second)
		})
	}
}

func TestAnEndBeforeReadyAfterFailsTheWakeAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow := spec("slow")
		slow.ReadyAfter = 20 * time.Second
		n := w.scaler(scaler.Config{}, slow)
		p := w.engine.plan("slow")
		p.exitAfter, p.exitCode = 10*time.Second, 3
		began := time.Now()
		n.Wake(t.Context(), ask("slow"))
		assert.Equal(t, workload.Failed, w.state("slow").Phase)
		assert.Less(t, time.Since(began), 15*time.Second)
	})
}

func TestSomebodyHasAWorkloadKeptAwakeForATime(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		time.Sleep(5 * time.Second)
		until, err := n.Keep(t.Context(), "wiki", time.Hour)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(time.Hour), until, 0)
		time.Sleep(time.Second)
		st := w.ready("wiki", 1) // it is woken
		assert.True(t, until.Equal(st.KeptUntil))
		assert.WithinDuration(t, until, n.SleepsAt("wiki"), time.Microsecond)
		time.Sleep(20 * time.Minute)
		n.kill()
		n = w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		time.Sleep(39 * time.Minute)
		w.ready("wiki", 1)
		w.engine.die("wiki", w.engine.running("wiki")[0], 1, false)
		time.Sleep(30 * time.Second)
		w.ready("wiki", 2) // what dies meanwhile is woken again
		time.Sleep(2 * time.Minute)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)

		_, err = n.Keep(t.Context(), "wiki", time.Hour)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)
		w.ready("wiki", 3)
		until, err = n.Keep(t.Context(), "wiki", 0)
		require.NoError(t, err)
		assert.Zero(t, until)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
		assert.Zero(t, w.state("wiki").KeptUntil)
	})
}

func TestASleepThatIsAskedForEndsWhatItWasKeptFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(5 * time.Second)
		until, err := n.Keep(t.Context(), "wiki", 48*time.Hour)
		require.NoError(t, err)
		assert.WithinDuration(t, time.Now().Add(24*time.Hour), until, 0, "no longer than a day")
		time.Sleep(time.Minute)
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		time.Sleep(10 * time.Minute)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
		_, err = n.Keep(t.Context(), "nobody", time.Hour)
		assert.ErrorIs(t, err, scaler.ErrUnknown)
	})
}

func TestAKeepThatCannotBeWrittenIsWrittenWhenTheStoreIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.fail(func(string, workload.State) (bool, bool) { return true, false })
		time.AfterFunc(30*time.Second, func() { w.fail(nil) })
		begun := time.Now()
		_, err := n.Keep(t.Context(), "wiki", time.Hour)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(begun), 30*time.Second)
		time.Sleep(30 * time.Minute)
		w.ready("wiki", 1)
	})
}

// A min of one and more is awake from the start, and never sleeps unless asked
// to.
func TestAMinimumNeverSleeps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := spec("wiki")
		s.Min = 1
		n := w.scaler(scaler.Config{}, s)
		time.Sleep(time.Hour)
		w.ready("wiki", 1)
		assert.Zero(t, n.SleepsAt("wiki"))
		w.engine.die("wiki", w.engine.running("wiki")[0], 1, false)
		time.Sleep(10 * time.Second)
		w.ready("wiki", 2)
		require.NoError(t, n.Sleep(t.Context(), "wiki"))
		time.Sleep(time.Hour)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase, "somebody wanted it so")
		n.wake(t, "wiki")
		time.Sleep(time.Hour)
		w.ready("wiki", 3)
	})
}
