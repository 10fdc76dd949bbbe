package scaler_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// The rules here were found to be missing by system_test/simulation.

func TestWhatAnotherScalerHasStartedIsNotTakenForEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.do(func() { w.engine.eventDelay = 5 * time.Second })
		first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		time.Sleep(time.Second)
		first.wake(t, "wiki")
		second.wake(t, "wiki") // the news of the start has not come to it
		time.Sleep(time.Second)
		w.ready("wiki", 1)
		assert.Equal(t, []workload.Phase{workload.Waking, workload.Ready}, w.phases("wiki"))
	})
}

func TestWhatAnotherScalerHasStoppedIsNotAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		first.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		w.ready("wiki", 1)

		held := make(chan struct{})
		w.engine.do(func() { w.engine.hold, w.engine.eventDelay = held, 10*time.Second })
		second.Reconcile()
		time.Sleep(time.Second) // the list is as of before the stop
		require.NoError(t, first.Sleep(t.Context(), "wiki"))
		w.engine.do(func() { w.engine.hold = nil })
		close(held) // and comes after it
		time.Sleep(time.Second)
		assert.Equal(t, slept, w.phases("wiki"))
	})
}

func TestOnlyWhatStartReturnedIsServed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.plan("wiki").address = "10.0.0.9:80" // that of each start
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.engine.do(func() { // nobody is told of the end, and nothing can be listed
			w.engine.copies["wiki"] = nil
			w.engine.listErr = errors.New("away")
		})
		refused := ask("wiki")
		refused.Generation, refused.Unreachable = 1, true
		require.Equal(t, scaler.Done, n.Wake(t.Context(), refused).Kind)
		w.ready("wiki", 2)
		time.Sleep(time.Second)
		w.ready("wiki", 2)
	})
}

func TestARuntimeThatIsBackIsListedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.engine.do(func() { w.engine.listErr = errors.New("away") })
		n.Reconcile()
		time.Sleep(30 * time.Second) // the tries have become rare
		w.engine.do(func() {
			w.engine.copies["wiki"], w.engine.listErr = nil, nil
			w.engine.tell(scaler.Event{Kind: scaler.Resynced})
		})
		time.Sleep(200 * time.Millisecond)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestWhatWasNeverWrittenIsSaidToSleep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.scaler(scaler.Config{}, spec("wiki"))
		time.Sleep(time.Second)
		st := w.state("wiki")
		assert.Equal(t, workload.Asleep, st.Phase)
		assert.NotZero(t, st.Revision, "a gateway may know it ready, from a store that was lost")
		assert.Empty(t, w.kinds("wiki"))
	})
}

func TestALeaseInAStoreThatWasMadeAnewIsRespectedWhateverItsRevision(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(10 * time.Second)
		w.engine.do(func() { w.engine.copies["wiki"] = nil })
		st := workload.State{
			Workload: "wiki", Phase: workload.Waking, Generation: 1, Owner: "s2", Since: time.Now(), LeaseUntil: time.Now().Add(5 * time.Second),
		}
		body, err := json.Marshal(st)
		require.NoError(t, err)
		w.store.mu.Lock()
		w.store.bodies["wiki"] = body // at the revision that s1 knows
		w.store.mu.Unlock()
		n.Reconcile()
		time.Sleep(4 * time.Second)
		assert.Equal(t, "s2", w.state("wiki").Owner)
		time.Sleep(2 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

func TestALeaseThatWasLetGoOfIsTakenAnewAlsoByItsFormerOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.engine.byHand("wiki")
		w.put(workload.State{Workload: "wiki", Phase: workload.Draining, Generation: 1, Owner: "s1", Since: time.Now()})
		w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		for w.engine.count(w.engine.stopped, "wiki") == 0 {
			time.Sleep(time.Millisecond)
		}
		st := w.state("wiki")
		assert.Equal(t, workload.Draining, st.Phase)
		assert.False(t, st.LeaseUntil.IsZero(), "another could stop it, or wake it, at the same time")
	})
}
