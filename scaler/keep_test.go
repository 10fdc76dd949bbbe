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
