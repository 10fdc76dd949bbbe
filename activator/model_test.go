package activator_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

const (
	modelBound = 5 // requests held
	modelPace  = 2 // requests let go without an answer
)

// A model is a gate in a few words: what must be true of the real one after
// each step.
type model struct {
	*rig
	revision, generation uint64
	open                 bool
	failed               bool      // the generation has
	drained              bool      // closed by a drain alone
	retryAt              time.Time // zero: not failed
	states               []workload.State

	waiting  []*modelCall
	inFlight []*modelCall
	openings int
}

type modelCall struct {
	*call
	noWake   bool
	opening  int // that let it go; 0: it passed
	answered bool
}

// step does one thing by chance. Requests arrive more often than they leave.
func (m *model) step(b byte) {
	arg := int(b / 14)
	switch b % 14 {
	case 0, 1, 2:
		m.arrive(arg%5 == 4)
	case 3:
		m.cancel(arg)
	case 4, 5:
		m.release(arg)
	case 6:
		m.answer(arg)
	case 7:
		m.news(workload.Ready, m.generation+1)
	case 8:
		m.news(workload.Ready, m.generation)
	case 9:
		m.news(workload.Asleep, m.generation)
	case 10:
		m.news(workload.Failed, m.generation)
	case 11:
		m.drain()
	case 12:
		m.rest()
	case 13:
		m.oldNews(arg)
	}
	m.settle()
}

func (m *model) arrive(noWake bool) {
	c := &modelCall{call: m.ask(activator.Ask{NoWake: noWake}), noWake: noWake}
	failing := time.Now().Before(m.retryAt)
	var failed *activator.FailedError
	switch {
	case m.open && len(m.waiting) == 0:
		require.True(m.t, c.done())
		require.NoError(m.t, c.error())
		require.False(m.t, c.lease().Cold())
		m.inFlight = append(m.inFlight, c)
	case !m.open && noWake:
		require.ErrorIs(m.t, c.error(), activator.ErrAsleep)
	case !m.open && failing:
		require.ErrorAs(m.t, c.error(), &failed)
	case len(m.waiting) == modelBound:
		require.ErrorIs(m.t, c.error(), activator.ErrQueueFull)
	default:
		m.waiting = append(m.waiting, c)
	}
}

func (m *model) cancel(i int) {
	if len(m.waiting) == 0 {
		return
	}
	i %= len(m.waiting)
	c := m.waiting[i]
	c.leave(nil)
	require.ErrorIs(m.t, c.error(), activator.ErrCanceled)
	m.waiting = append(m.waiting[:i:i], m.waiting[i+1:]...)
}

func (m *model) release(i int) {
	if len(m.inFlight) == 0 {
		return
	}
	i %= len(m.inFlight)
	c := m.inFlight[i]
	m.inFlight = append(m.inFlight[:i:i], m.inFlight[i+1:]...)
	release(c.call)
	release(c.call)
}

func (m *model) answer(i int) {
	if len(m.inFlight) == 0 {
		return
	}
	c := m.inFlight[i%len(m.inFlight)]
	c.answered = true
	c.lease().Answered()
	synctest.Wait()
}

func (m *model) news(phase workload.Phase, generation uint64) {
	m.revision++
	s := state(phase, generation, m.revision)
	m.retryAt = time.Time{}
	switch phase {
	case workload.Ready:
		s = ready(generation, m.revision)
	case workload.Failed:
		m.retryAt = time.Now().Add(time.Second)
		s.RetryAt = m.retryAt
	}
	m.states = append(m.states, s)
	m.see(s)
	if !m.open || phase != workload.Ready || generation != m.generation {
		m.halts()
	}
	again := m.failed && phase == workload.Failed && generation == m.generation
	m.failed = phase == workload.Failed
	m.open, m.generation, m.drained = phase == workload.Ready, generation, false
	if phase == workload.Failed && !again {
		m.turnAway(func(*modelCall) bool { return true }, func(err error) bool {
			var failed *activator.FailedError
			return errors.As(err, &failed)
		})
	}
}

// halts notes that nobody is let go any more, if only for a moment: what was
// let go before is no longer waited for.
func (m *model) halts() {
	m.openings++
	if m.open {
		m.turnAway(func(c *modelCall) bool { return c.noWake }, func(err error) bool {
			return errors.Is(err, activator.ErrAsleep)
		})
	}
}

// turnAway takes those who must have been told so out of the waiting.
func (m *model) turnAway(who func(*modelCall) bool, told func(error) bool) {
	var stay []*modelCall
	for _, c := range m.waiting {
		if !who(c) {
			stay = append(stay, c)
			continue
		}
		require.True(m.t, c.done())
		require.True(m.t, told(c.error()), "%v", c.error())
	}
	m.waiting = stay
}

func (m *model) drain() {
	m.revision++ // its news is on its way, or lost
	d := m.Drain("wiki", m.revision)
	synctest.Wait()
	if m.open {
		m.halts()
	}
	m.open, m.drained = false, true
	queued := 0
	for _, c := range m.waiting {
		if !c.noWake {
			queued++
		}
	}
	require.Equal(m.t, workload.Drained{Gateway: "gw", InFlight: len(m.inFlight), Queued: queued}, d)
}

func (m *model) rest() {
	asked := len(m.wakes.all())
	rest(1300 * time.Millisecond)
	if !m.open && len(m.waiting) > 0 {
		require.Greater(m.t, len(m.wakes.all()), asked, "somebody waits and nobody asks")
	} else {
		require.Len(m.t, m.wakes.all(), asked, "nobody waits and somebody asks")
	}
}

func (m *model) oldNews(i int) {
	s := m.states[len(m.states)-1-i%len(m.states)]
	m.see(s)
}

// settle takes in who was let go, and checks what must always hold.
func (m *model) settle() {
	for len(m.waiting) > 0 && m.waiting[0].done() {
		c := m.waiting[0]
		require.NoError(m.t, c.error())
		require.True(m.t, m.open, "let go by a closed gate")
		require.True(m.t, c.lease().Cold())
		c.opening = m.openings
		m.waiting, m.inFlight = m.waiting[1:], append(m.inFlight, c)
	}
	for _, c := range m.waiting {
		require.False(m.t, c.done(), "not first come, first served: %v", c.error())
	}
	unanswered := 0
	for _, c := range m.inFlight {
		if c.opening == m.openings && !c.answered {
			unanswered++
		}
	}
	if m.open && len(m.waiting) > 0 {
		require.Equal(m.t, modelPace, unanswered, "held without need")
	}
	v := m.view()
	require.Equal(m.t, len(m.waiting), v.Queued)
	require.LessOrEqual(m.t, v.Queued, modelBound)
	require.Equal(m.t, len(m.inFlight), v.InFlight)
}

// finish lets everybody go and finds nothing left.
func (m *model) finish() {
	m.news(workload.Ready, m.generation+1)
	m.settle()
	for len(m.inFlight) > 0 {
		m.release(0)
		m.settle()
	}
	require.Empty(m.t, m.waiting)
	require.Equal(m.t, workload.Drained{Gateway: "gw"}, m.Drain("wiki", m.revision+1))
}

// runModel drives a gate and its model through the steps.
func runModel(t *testing.T, steps []byte) {
	cfg := activator.Config{ReleaseConcurrency: modelPace, QueueRequests: modelBound}
	inBubble(t, cfg, func(t *testing.T, r *rig) {
		r.Update([]workload.Workload{{Name: "wiki", HoldTimeout: 24 * time.Hour}})
		m := &model{rig: r}
		m.news(workload.Asleep, 0)
		for _, b := range steps {
			m.step(b)
		}
		m.finish()
	})
}

func FuzzGate(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 1, 7, 4, 6, 3, 11, 0, 8, 10, 0, 12, 0, 7})
	f.Add([]byte{7, 0, 0, 11, 0, 12, 13, 4, 4, 9, 0, 2, 8, 56, 57, 9})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 400 {
			return
		}
		runModel(t, steps)
	})
}

func TestAGateDoesWhatItsModelDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		steps := make([]byte, 80)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		runModel(t, steps)
		if t.Failed() {
			t.Fatalf("steps %v", steps)
		}
	}
}
