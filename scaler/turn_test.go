package scaler_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// rivals are workloads that all conflict with each other.
func rivals(names ...string) (ws []workload.Workload) {
	for _, name := range names {
		w := spec(name)
		for _, other := range names {
			if other != name {
				w.ConflictsWith = append(w.ConflictsWith, other)
			}
		}
		ws = append(ws, w)
	}
	return ws
}

// wakes asks for a workload beside the test; the channel gets the verdict.
func (n *node) wakes(t *testing.T, name string) <-chan scaler.Verdict {
	got := make(chan scaler.Verdict, 1)
	go func() { got <- n.Wake(t.Context(), ask(name)) }()
	synctest.Wait()
	return got
}

// insist asks until it is answered, as the events deliver a wake.
func (n *node) insist(t *testing.T, name string) {
	v := n.Wake(t.Context(), ask(name))
	for ; v.Kind == scaler.Later; v = n.Wake(t.Context(), ask(name)) {
		time.Sleep(v.After)
	}
	assert.Equal(t, scaler.Verdict{}, v)
}

func TestARivalThatNobodyUsesIsPutToSleepFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, rivals("llama", "qwen")...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second) // gateways are heard
		n.wake(t, "llama")
		time.Sleep(10 * time.Second)
		begun := time.Now()
		n.wake(t, "qwen")
		w.ready("qwen", 1)
		assert.Less(t, time.Since(begun), time.Second, "at once")
		assert.Equal(t, workload.Reason{Code: workload.ReasonConflict, Detail: "it made way for qwen"}, w.state("llama").Reason)
		assert.Equal(t, []string{"llama", "qwen"}, w.engine.order)
		assert.Zero(t, w.state("qwen").Reason)

		n.wake(t, "llama") // and back, although it has only just begun
		w.ready("llama", 2)
		assert.Equal(t, workload.Asleep, w.state("qwen").Phase)
	})
}

func TestAWakeWaitsForARivalInUseAndSaysSo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, rivals("llama", "qwen")...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		n.wake(t, "llama")
		w.use("g1", "llama", 1)
		got := n.wakes(t, "qwen")
		time.Sleep(5 * time.Second)
		st := w.state("qwen")
		assert.Equal(t, workload.Waking, st.Phase)
		assert.Equal(t, workload.ReasonConflict, st.Reason.Code)
		assert.Contains(t, st.Reason.Detail, "until llama sleeps")
		w.ready("llama", 1)
		assert.Zero(t, w.drained(), "its gate was not closed")
		w.use("g1", "llama", 0)
		time.Sleep(time.Second)
		require.Equal(t, scaler.Verdict{}, <-got)
		w.ready("qwen", 1)
	})
}

// What is asked for without a break makes way as well, and no request is cut.
func TestARivalInUseMakesWayOnceAWakeHasWaited(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, rivals("llama", "qwen")...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		n.wake(t, "llama")
		w.use("g1", "llama", 1)
		got := n.wakes(t, "qwen")
		time.Sleep(9 * time.Second)
		w.ready("llama", 1)
		time.Sleep(20 * time.Second)
		assert.Equal(t, workload.Draining, w.state("llama").Phase, "new requests are held")
		assert.Len(t, w.engine.running("llama"), 1, "the one in flight goes on")
		w.use("g1", "llama", 0)
		back := n.wakes(t, "llama") // who was held meanwhile
		time.Sleep(time.Second)
		require.Equal(t, scaler.Verdict{}, <-got)
		w.ready("qwen", 1)
		w.use("g1", "qwen", 1)
		time.Sleep(8 * time.Second)
		w.ready("qwen", 1) // it is served for a while, whoever waits
		w.use("g1", "qwen", 0)
		time.Sleep(time.Second)
		require.Equal(t, scaler.Verdict{}, <-back)
		w.ready("llama", 2)
	})
}

func TestAWakeWaitsForARivalForItsWakeTimeoutAtMost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, rivals("llama", "qwen")...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		n.wake(t, "llama")
		w.use("g1", "llama", 1)
		begun := time.Now()
		v := n.Wake(t.Context(), ask("qwen"))
		assert.Equal(t, scaler.Permanent, v.Kind)
		assert.WithinDuration(t, begun.Add(time.Minute), time.Now(), time.Second)
		st := w.state("qwen")
		assert.Equal(t, workload.Failed, st.Phase)
		assert.Equal(t, workload.Reason{Code: workload.ReasonConflict, Detail: "it never runs beside llama, which did not sleep within 1m0s"}, st.Reason)
		assert.Zero(t, st.Failures)
		time.Sleep(time.Second)
		w.ready("llama", 1) // its gates are open again
		assert.Zero(t, w.engine.calls["qwen"])
	})
}

func TestRivalsThatAreWokenTogetherTakeTurnsInTheirOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		names := []string{"a", "b", "c", "d"}
		ws := rivals(names...)
		first, second := w.scaler(scaler.Config{}, ws...), w.scaler(scaler.Config{}, ws...)
		w.engine.apart(names...)
		time.Sleep(5 * time.Second)
		var all sync.WaitGroup
		for i, name := range []string{"c", "a", "d", "b"} {
			n := first
			if i%2 == 1 {
				n = second
			}
			all.Go(func() { n.insist(t, name) })
			time.Sleep(10 * time.Millisecond)
		}
		all.Wait()
		assert.Equal(t, []string{"c", "a", "d", "b"}, w.engine.order)
	})
}

func TestRivalsThatAreWokenAtOnceByTwoScalersNeverMeet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ws := rivals("llama", "qwen")
		w.store.delay = time.Millisecond // they read and write side by side
		first, second := w.scaler(scaler.Config{}, ws...), w.scaler(scaler.Config{}, ws...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		for range 20 {
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { first.insist(t, "llama") })
				all.Go(func() { second.insist(t, "qwen") })
			}
			all.Wait()
			time.Sleep(3 * time.Second)
		}
	})
}

// Wherever the scaler dies, the next one brings up what was asked for, alone.
func TestASwapWhoseScalerDiesIsFinishedByTheNext(t *testing.T) {
	for after := time.Duration(0); after < 400*time.Millisecond; after += 20 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ws := rivals("llama", "qwen")
				first := w.scaler(scaler.Config{}, ws...)
				w.engine.apart("llama", "qwen")
				time.Sleep(5 * time.Second)
				first.wake(t, "llama")
				time.Sleep(10 * time.Second)
				first.wakes(t, "qwen")
				time.Sleep(after)
				first.kill()
				second := w.scaler(scaler.Config{}, ws...)
				second.insist(t, "qwen")
				time.Sleep(5 * time.Second)
				w.ready("qwen", w.state("qwen").Generation)
				assert.Empty(t, w.engine.running("llama"))
			})
		})
	}
}

// Who depends on a rival has to sleep before it can.
func TestWhoDependsOnARivalMakesWayFirst(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ws := rivals("llama", "qwen")
		chat := spec("chat")
		chat.DependsOn = []string{"llama"}
		n := w.scaler(scaler.Config{}, append(ws, chat)...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		n.wake(t, "chat")
		w.use("g1", "chat", 1)
		got := n.wakes(t, "qwen")
		time.Sleep(8 * time.Second)
		w.ready("llama", 1)
		w.use("g1", "chat", 0)
		time.Sleep(2 * time.Second)
		require.Equal(t, scaler.Verdict{}, <-got)
		assert.Equal(t, workload.Asleep, w.state("chat").Phase)
		assert.Equal(t, workload.Asleep, w.state("llama").Phase)

		back := n.wakes(t, "chat") // and what waits for its dependency gets it
		time.Sleep(5 * time.Second)
		require.Equal(t, scaler.Verdict{}, <-back)
		w.ready("chat", 2)
	})
}

func TestAWindowDoesNotWakeWhatARivalIsInTheWayOf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ws := rivals("llama", "qwen")
		ws[0].KeepWarm = "00:00-24:00"
		n := w.scaler(scaler.Config{}, ws...)
		w.engine.apart("llama", "qwen")
		time.Sleep(5 * time.Second)
		w.ready("llama", 1)
		n.wake(t, "qwen")
		w.use("g1", "qwen", 1)
		time.Sleep(10 * time.Minute)
		w.ready("qwen", 1)
		w.use("g1", "qwen", 0)
		time.Sleep(3 * time.Minute)
		w.ready("llama", 2) // once it sleeps, the window counts
	})
}
