package scaler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// away makes the store fail as soon as cond says so, until back is called.
func (w *world) away(cond func(op string, s workload.State) bool) (back func()) {
	lost := false
	w.fail(func(op string, s workload.State) (bool, bool) {
		lost = lost || cond(op, s)
		return lost, false
	})
	return func() { w.fail(nil) }
}

func putting(p workload.Phase) func(string, workload.State) bool {
	return func(op string, s workload.State) bool { return op == "put" && s.Phase == p }
}

func TestAReadyThatCannotBeWrittenIsWrittenWhenTheStoreIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		back := w.away(putting(workload.Ready))
		time.AfterFunc(10*time.Minute, back) // beyond lease and timeout
		n.wake(t, "wiki")
		st := w.ready("wiki", 1)
		assert.Less(t, st.Since.Sub(st.Wake.RequestedAt), 10*time.Minute+2*time.Second)
		assert.InDelta(t, 0.15, st.Wake.ReadyAt.Sub(st.Wake.RequestedAt).Seconds(), 0.01, "when it was proved")
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
	})
}

func TestAReadyThatCannotBeWrittenGivesWayToANewOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first := w.scaler(scaler.Config{Owner: "s1"}, spec("wiki"))
		second := w.scaler(scaler.Config{Owner: "s2"}, spec("wiki"))
		verdict := make(chan scaler.Verdict, 1)
		go func() { verdict <- first.Wake(t.Context(), ask("wiki")) }()
		time.Sleep(120 * time.Millisecond)
		first.link.cut.Store(true) // it alone is cut off
		time.Sleep(6 * time.Second)
		second.wake(t, "wiki")
		w.ready("wiki", 1)
		revision := w.state("wiki").Revision
		first.link.cut.Store(false)
		assert.Equal(t, scaler.Verdict{}, <-verdict, "ready, by whomever")
		assert.Equal(t, revision, w.state("wiki").Revision)
		assert.Equal(t, 1, w.engine.count(w.engine.started, "wiki"))
	})
}

// A write that failed may have been done all the same.
func TestAWriteWithAnOpenOutcomeIsReadBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails := map[workload.Phase]int{}
		w.fail(func(op string, s workload.State) (bool, bool) {
			if op == "put" && fails[s.Phase] < 2 {
				fails[s.Phase]++
				return true, true
			}
			return false, true
		})
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		w.ready("wiki", 1)
		assert.Equal(t, 1, w.engine.count(w.engine.calls, "wiki"))
		time.Sleep(5 * time.Minute)
		st := w.state("wiki")
		assert.Equal(t, workload.Asleep, st.Phase)
		assert.Equal(t, uint64(1), st.Generation)
		assert.Empty(t, w.engine.running("wiki"))
		n.wake(t, "wiki")
		w.ready("wiki", 2)
	})
}

func TestAStopIsNotBegunUnlessTheLeaseIsProved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		draining := putting(workload.Draining)
		puts := 0
		back := w.away(func(op string, s workload.State) bool {
			if draining(op, s) {
				puts++
			}
			return puts > 1 // the phase is written, what follows is not
		})
		time.Sleep(10 * time.Minute)
		assert.Equal(t, workload.Draining, w.state("wiki").Phase)
		assert.Zero(t, w.engine.count(w.engine.stopped, "wiki"))
		w.use("g1", "wiki", 1) // the answers of ten minutes ago no longer hold
		back()
		time.Sleep(time.Minute)
		w.ready("wiki", 1)
	})
}

func TestASleepThatCannotBeWrittenIsWrittenWhenTheStoreIsBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		back := w.away(putting(workload.Asleep))
		time.Sleep(10 * time.Minute)
		assert.Equal(t, 1, w.engine.count(w.engine.stopped, "wiki"))
		assert.Equal(t, workload.Draining, w.state("wiki").Phase)
		back()
		time.Sleep(2 * time.Second)
		assert.Equal(t, workload.Asleep, w.state("wiki").Phase)
	})
}

// Wakes and sleeps meet at every possible moment, on a store that fails now
// and then: whoever asks gets a workload that is ready, and nothing is ever
// started and stopped at the same time.
func TestNoWakeIsLostHoweverItMeetsASleep(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.store.delay = time.Millisecond
		w.gateway("g1").answerAfter = 3 * time.Millisecond
		p := w.engine.plan("wiki")
		p.start, p.stop, p.boot = 20*time.Millisecond, 30*time.Millisecond, 10*time.Millisecond
		random, faults := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(5, 6))
		w.fail(func(string, workload.State) (bool, bool) {
			return faults.IntN(20) == 0, faults.IntN(2) == 0
		})
		n := w.scaler(scaler.Config{}, spec("wiki"))
		n.wake(t, "wiki")
		time.Sleep(5 * time.Second)
		joined, started := 0, 0
		for round := range 400 {
			asleep := make(chan error, 1)
			time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, func() { asleep <- n.Sleep(t.Context(), "wiki") })
			time.Sleep(time.Duration(random.IntN(60_000)) * time.Microsecond)
			a := ask("wiki")
			a.Generation = w.state("wiki").Generation
			require.Equal(t, scaler.Verdict{}, n.Wake(t.Context(), a), "round %d", round)
			st := w.state("wiki")
			if st.Generation == a.Generation {
				joined++
			} else {
				started++
			}
			require.NoError(t, <-asleep)
			n.wakeUntilReady(t, w, "wiki")
			w.ready("wiki", w.state("wiki").Generation)
		}
		assert.Greater(t, joined, 20)
		assert.Greater(t, started, 20)
	})
}

// wakeUntilReady asks as a gateway does: again, as long as somebody waits.
func (n *node) wakeUntilReady(t *testing.T, w *world, name string) {
	t.Helper()
	for range 10 {
		a := ask(name)
		a.Generation = w.state(name).Generation
		n.Wake(t.Context(), a)
		if w.state(name).Phase == workload.Ready {
			return
		}
	}
	t.Fatal("asked ten times and not ready")
}

// The same with idleness and two scalers: a gateway holds a request from the
// moment it finds the gate shut, and is served within a bounded time.
func TestNoWakeIsLostBetweenTwoScalers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.store.delay = time.Millisecond
		w.gateway("g1").answerAfter = 2 * time.Millisecond
		p := w.engine.plan("wiki")
		p.start, p.stop, p.boot = 20*time.Millisecond, 30*time.Millisecond, 10*time.Millisecond
		s := spec("wiki")
		s.IdleTimeout = 2 * time.Second
		nodes := []*node{w.scaler(scaler.Config{}, s), w.scaler(scaler.Config{}, s)}
		random := rand.New(rand.NewPCG(3, 4))
		for round := range 200 {
			if round%10 == 9 { // one of them dies and comes back
				i := random.IntN(2)
				nodes[i].kill()
				nodes[i] = w.scaler(scaler.Config{}, s)
			}
			time.Sleep(2*time.Second + time.Duration(random.IntN(90))*time.Millisecond)
			begun := time.Now()
			for w.state("wiki").Phase != workload.Ready {
				a := ask("wiki")
				a.Generation = w.state("wiki").Generation
				if v := nodes[random.IntN(2)].Wake(t.Context(), a); v.Kind == scaler.Later {
					time.Sleep(v.After)
				}
				require.Less(t, time.Since(begun), 10*time.Second, "round %d", round)
			}
		}
		assert.Greater(t, w.engine.count(w.engine.started, "wiki"), 20)
	})
}
