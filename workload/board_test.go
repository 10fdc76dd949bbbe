package workload_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/workload"
)

func report(gateway string, inFlight int, idleMS int64) workload.Activity {
	return workload.Activity{Gateway: gateway, Loads: []workload.Load{{Workload: "wiki", InFlight: inFlight, IdleMS: idleMS}}}
}

func TestUseIsTheSumOfAllGateways(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	b.Hear(report("a", 2, 0), t0)
	b.Hear(report("b", 3, 0), t0)
	assert.Equal(t, workload.Use{InFlight: 5, LastUsed: t0.Add(time.Second)}, b.Use("wiki", t0.Add(time.Second)))
	assert.Equal(t, workload.Use{}, b.Use("other", t0))
	assert.ElementsMatch(t, []string{"a", "b"}, b.Alive(t0.Add(time.Second)))
}

func TestIdleCountsFromTheLatestUseAnywhere(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	b.Hear(report("a", 0, 4000), t0)
	b.Hear(report("b", 0, 1500), t0)
	assert.Equal(t, t0.Add(-1500*time.Millisecond), b.Use("wiki", t0).LastUsed)
	b.Hear(report("b", 0, -1), t0)
	assert.Equal(t, t0.Add(-4*time.Second), b.Use("wiki", t0).LastUsed, "never used by b")
}

func TestASilentGatewayCountsAsUsingUntilItWasLastHeard(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	b.Hear(report("a", 1, 0), t0)
	later := t0.Add(workload.Gone)
	assert.Empty(t, b.Alive(later))
	assert.Equal(t, workload.Use{LastUsed: t0}, b.Use("wiki", later))
}

func TestALeavingGatewayIsGoneAtOnceAndItsUseStays(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	a := report("a", 1, 500)
	a.Leaving = true
	b.Hear(a, t0)
	assert.Empty(t, b.Alive(t0))
	assert.Equal(t, workload.Use{LastUsed: t0.Add(-500 * time.Millisecond)}, b.Use("wiki", t0))
}

func TestASilentGatewayMayBeServingUntilItIsLost(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	b.Hear(report("a", 1, 0), t0)
	b.Hear(report("b", 0, -1), t0.Add(time.Second))
	silent := func(after time.Duration, since time.Time) []string {
		now := t0.Add(after)
		return b.Silent(now, since, now.Add(-time.Minute))
	}
	assert.Empty(t, silent(workload.Gone-1, t0))
	assert.Equal(t, []string{"a"}, silent(workload.Gone, t0))
	assert.Equal(t, []string{"a", "b"}, silent(time.Minute-1, t0))
	assert.Equal(t, []string{"b"}, silent(time.Minute, t0), "a is lost")
	assert.Equal(t, []string{"a", "b"}, silent(time.Hour, t0.Add(time.Hour-time.Second)), "nobody could be heard before")
	b.Hear(report("a", 1, 0), t0.Add(time.Hour))
	assert.Equal(t, []string{"a"}, b.Alive(t0.Add(time.Hour)), "it was cut off, and is back")
}

func TestAGoodbyeAndASuccessorEndTheSilence(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	a, old := report("a", 1, 0), report("old", 1, 0)
	a.Leaving, old.Place = true, "host :80"
	b.Hear(a, t0)
	b.Hear(old, t0)
	later := t0.Add(workload.Gone)
	assert.Equal(t, []string{"old"}, b.Silent(later, t0, t0.Add(-time.Hour)), "a has left")
	other, young := report("other", 0, -1), report("young", 0, -1)
	other.Place, young.Place = "host :81", "host :80"
	b.Hear(other, later)
	b.Hear(report("nowhere", 0, -1), later)
	assert.Equal(t, []string{"old"}, b.Silent(later, t0, t0.Add(-time.Hour)))
	b.Hear(young, later)
	assert.Empty(t, b.Silent(later, t0, t0.Add(-time.Hour)), "two cannot be at one place")
	assert.Equal(t, []string{"nowhere", "other", "young"}, b.Alive(later))
	assert.Equal(t, t0, b.Use("wiki", later).LastUsed, "its use is still known")
}

func TestForgottenGatewaysLeaveNothing(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	b.Hear(report("a", 1, 0), t0)
	b.Forget(t0.Add(time.Minute), time.Hour)
	assert.NotZero(t, b.Use("wiki", t0.Add(time.Minute)).LastUsed)
	b.Forget(t0.Add(2*time.Hour), time.Hour)
	assert.Zero(t, b.Use("wiki", t0.Add(2*time.Hour)))
}

func TestABoardIsBounded(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	for i := range 10_100 {
		b.Hear(workload.Activity{Gateway: fmt.Sprint(i)}, t0.Add(time.Duration(i)))
	}
	alive := b.Alive(t0.Add(time.Second))
	assert.Len(t, alive, 10_000)
	assert.NotContains(t, alive, "99", "the ones that were not heard for longest go")
	assert.Contains(t, alive, "100")
}

func TestWhatIsKeptAwakeOutlivesTheGatewayThatTold(t *testing.T) {
	b, t0 := workload.NewBoard(), time.Unix(1000, 0)
	a := report("a", 0, -1)
	a.Loads[0].KeepMS = 60_000
	b.Hear(a, t0)
	b.Hear(report("b", 0, -1), t0)
	kept := t0.Add(time.Minute)
	assert.Equal(t, workload.Use{KeptUntil: kept}, b.Use("wiki", t0))
	assert.Equal(t, kept, b.Use("wiki", t0.Add(time.Hour)).KeptUntil)
	over := report("a", 0, -1)
	over.Loads[0].KeepMS = -1000
	b.Hear(over, t0.Add(61*time.Second))
	assert.Equal(t, kept, b.Use("wiki", t0.Add(time.Hour)).KeptUntil, "what is over is not forgotten")
	leaving := report("a", 0, -1)
	leaving.Leaving, leaving.Loads[0].KeepMS = true, 30_000
	b.Hear(leaving, t0.Add(30*time.Second))
	assert.Equal(t, kept, b.Use("wiki", t0.Add(31*time.Second)).KeptUntil)
}
