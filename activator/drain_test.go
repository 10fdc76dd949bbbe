package activator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

func drained(inFlight, queued int) workload.Drained {
	return workload.Drained{Gateway: "gw", InFlight: inFlight, Queued: queued}
}

func TestADrainClosesTheGateBeforeItsNewsComes(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		c := r.pass(activator.Ask{})
		assert.Equal(t, drained(1, 0), r.Drain("wiki", 2))
		held := r.held(1)
		require.Len(t, r.wakes.all(), 1)
		assert.Equal(t, uint64(1), r.wakes.all()[0].Generation)
		assert.False(t, r.wakes.all()[0].Unreachable)
		assert.Equal(t, drained(1, 1), r.Drain("wiki", 2))
		release(c)
		assert.Equal(t, drained(0, 1), r.Drain("wiki", 2))

		r.see(state(workload.Draining, 1, 2))
		r.see(state(workload.Asleep, 1, 3))
		r.see(state(workload.Waking, 2, 4))
		require.False(t, held[0].done())
		r.see(ready(2, 5))
		assert.Equal(t, 1, served(held))
	})
}

func TestADrainThatIsCalledOffOpensTheGate(t *testing.T) {
	calledOff := func(revision uint64) workload.State { return ready(1, revision) }
	cases := map[string]func(r *rig){
		"drain, then its news": func(r *rig) {
			r.Drain("wiki", 2)
			r.see(state(workload.Draining, 1, 2))
		},
		"news, then the drain": func(r *rig) {
			r.see(state(workload.Draining, 1, 2))
			r.Drain("wiki", 2)
		},
		"the news was lost":  func(r *rig) { r.Drain("wiki", 2) },
		"the drain was lost": func(r *rig) { r.see(state(workload.Draining, 1, 2)) },
		"drained twice": func(r *rig) {
			r.Drain("wiki", 2)
			r.see(state(workload.Draining, 1, 2))
			r.Drain("wiki", 2)
		},
	}
	for name, drain := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
				r.see(ready(1, 1))
				drain(r)
				held := r.held(1)
				r.see(calledOff(3))
				assert.Equal(t, 1, served(held), "at once")
				r.see(state(workload.Draining, 1, 2)) // late
				r.pass(activator.Ask{})
			})
		})
	}
}

func TestNewsFromBeforeADrainDoesNotOpenTheGate(t *testing.T) {
	t.Run("the same state again", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			r.see(ready(1, 1))
			r.Drain("wiki", 2)
			held := r.held(1)
			rest(3 * time.Second)
			r.see(ready(1, 1))
			assert.Zero(t, served(held), "however late it comes")
		})
	})
	t.Run("a replica less", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			s := ready(1, 1, "a", "b")
			r.see(s)
			r.Drain("wiki", 3)
			held := r.held(1)
			s.Revision, s.Replicas = 2, s.Replicas[:1]
			r.see(s)
			assert.Zero(t, served(held))
			r.see(state(workload.Draining, 1, 3))
			r.see(ready(1, 4, "a"))
			assert.Equal(t, 1, served(held))
		})
	})
	t.Run("all that led there", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			r.see(state(workload.Asleep, 0, 1))
			r.Drain("wiki", 4)
			held := r.held(1)
			r.see(state(workload.Waking, 1, 2))
			r.see(ready(1, 3))
			assert.Zero(t, served(held))
			r.see(state(workload.Draining, 1, 4))
			r.see(ready(1, 5))
			assert.Equal(t, 1, served(held))
		})
	})
	t.Run("that of an earlier drain that was called off", func(t *testing.T) {
		inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
			r.see(ready(1, 1))
			r.Drain("wiki", 4) // of another, before its news and all of the first
			held := r.held(1)
			r.see(state(workload.Draining, 1, 2))
			r.see(ready(1, 3))
			assert.Zero(t, served(held), "it would be stopped with the workload")
			r.see(state(workload.Asleep, 1, 6))
			r.see(ready(2, 8))
			assert.Equal(t, 1, served(held))
		})
	})
}

func TestADrainSoLateThatItsNewsIsOldClosesNothing(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		r.see(state(workload.Draining, 1, 2))
		r.see(ready(1, 3)) // called off
		c := r.pass(activator.Ask{})
		open := drained(1, 0)
		open.Open = true
		assert.Equal(t, open, r.Drain("wiki", 2), "nothing can be said for it")
		release(c)
		open.InFlight = 0
		assert.Equal(t, open, r.Drain("wiki", 2))
		r.pass(activator.Ask{})
	})
}

func TestADrainOfWhatIsKnownToDrainCountsAll(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		old := r.pass(activator.Ask{})
		r.see(ready(2, 2))
		current := r.pass(activator.Ask{})
		r.see(state(workload.Draining, 2, 3))
		r.see(state(workload.Draining, 2, 4)) // the lease was renewed
		assert.Equal(t, drained(2, 0), r.Drain("wiki", 3))
		release(old)
		release(current)
		assert.Equal(t, drained(0, 0), r.Drain("wiki", 3))
	})
}

func TestADrainBeforeTheNewsOfANewStoreClosesTheGate(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(7, 70))
		r.Reset()
		assert.Equal(t, drained(0, 0), r.Drain("wiki", 3))
		held := r.held(1)
		r.see(ready(1, 2))
		assert.Zero(t, served(held), "it was written before")
		r.see(ready(1, 4))
		assert.Equal(t, 1, served(held))
	})
}

func TestAStoreThatIsReplacedLetsADrainOfTheOldOneGo(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(7, 70))
		r.Drain("wiki", 71)
		r.Reset()
		held := r.held(1)
		assert.Zero(t, served(held))
		r.see(ready(1, 2))
		assert.Equal(t, 1, served(held))
	})
}

func TestADrainCountsWhatReplicasThatAreGoneStillCarry(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1, "a"))
		film := r.pass(activator.Ask{})
		r.see(ready(2, 2, "b"))
		r.see(ready(3, 3, "b"))
		assert.Equal(t, 1, r.view().InFlight)
		assert.Equal(t, drained(1, 0), r.Drain("wiki", 4), "a stop would cut it")
		release(film)
		assert.Equal(t, drained(0, 0), r.Drain("wiki", 4))
	})
}

func TestADrainOfAnUnknownWorkloadHasNothing(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		assert.Equal(t, drained(0, 0), r.Drain("nobody", 1))
	})
}
