package activator_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

func load(inFlight, queued int, idle int64) []workload.Load {
	return []workload.Load{{Workload: "wiki", InFlight: inFlight, Queued: queued, IdleMS: idle}}
}

// changed reports whether there is a sign of change, and takes it.
func (r *rig) changed() bool {
	select {
	case <-r.Changed():
		return true
	default:
		return false
	}
}

func TestActivityTellsWhatIsInUseAndForHowLongItWasNot(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		assert.Equal(t, workload.Activity{Gateway: "gw"}, r.Activity(), "never used, nothing to say")
		c := r.held(1)[0]
		rest(5 * time.Second)
		assert.Equal(t, load(0, 1, 0), r.Activity().Loads, "held is in use")
		r.see(ready(1, 1))
		rest(time.Hour)
		assert.Equal(t, load(1, 0, 0), r.Activity().Loads, "in flight is in use, however long")
		release(c)
		assert.Equal(t, load(0, 0, 0), r.Activity().Loads)
		rest(90 * time.Second)
		assert.Equal(t, load(0, 0, 90_000), r.Activity().Loads)
		monitor := r.pass(activator.Ask{NoWake: true})
		assert.Equal(t, load(0, 0, 90_000), r.Activity().Loads)
		release(monitor)
		assert.Equal(t, load(0, 0, 90_000), r.Activity().Loads)
		r.see(state(workload.Asleep, 1, 2))
		gone := r.held(1)[0]
		gone.leave(nil)
		rest(time.Second)
		assert.Equal(t, load(0, 0, 1000), r.Activity().Loads, "one that was never served was a use")
	})
}

func TestOnlyTheFirstUseAfterAnIdleTimeIsAChange(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.see(ready(1, 1))
		require.False(t, r.changed())
		release(r.pass(activator.Ask{NoWake: true}))
		require.False(t, r.changed(), "no use")
		release(r.pass(activator.Ask{}))
		require.True(t, r.changed())
		release(r.pass(activator.Ask{}))
		require.False(t, r.changed())
		r.Activity()
		release(r.pass(activator.Ask{}))
		require.False(t, r.changed(), "it was not idle for long")
		rest(time.Second)
		r.Activity()
		c := r.pass(activator.Ask{})
		require.True(t, r.changed())
		rest(time.Minute)
		r.Activity()
		r.pass(activator.Ask{})
		require.False(t, r.changed(), "it was in use all the time")
		release(c)
		r.see(state(workload.Asleep, 1, 2))
		rest(time.Minute)
		r.Activity()
		require.False(t, r.changed())
	})
}

func TestAHeldRequestIsAChangeToo(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		r.held(2)
		require.True(t, r.changed())
		require.False(t, r.changed())
	})
}

func TestViewsShowTheStateAndWhatEachReplicaCarries(t *testing.T) {
	inBubble(t, activator.Config{}, func(t *testing.T, r *rig) {
		v := r.view()
		assert.Equal(t, "wiki", v.Name)
		assert.Zero(t, v.LastRequest)
		assert.Equal(t, workload.Asleep, r.gate.State().Phase)
		r.see(ready(1, 1, "a"))
		old := r.pass(activator.Ask{})
		r.see(ready(1, 2, "b", "c"))
		release(r.pass(activator.Ask{}))
		one := r.pass(activator.Ask{NoWake: true})
		v = r.view()
		assert.Equal(t, uint64(2), v.State.Revision)
		assert.Equal(t, v.State, r.gate.State())
		assert.Equal(t, 2, v.InFlight, "one of them on a replica that is gone")
		require.Len(t, v.Replicas, 2)
		assert.Equal(t, "b:80", v.Replicas[0].Address)
		assert.Equal(t, 1, v.Replicas[0].InFlight+v.Replicas[1].InFlight)
		rest(time.Minute)
		assert.Equal(t, time.Now(), r.view().LastRequest)
		release(old)
		ended := time.Now()
		rest(time.Minute)
		assert.WithinDuration(t, ended, r.view().LastRequest, time.Microsecond)
		release(one)
	})
}

// gathered flattens what is registered: name{label values} -> value.
func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

func TestMetricsSpeakOfTheCatalogAlone(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	inBubble(t, activator.Config{QueueRequests: 1, Registerer: registry}, func(t *testing.T, r *rig) {
		r.held(1)
		r.ask(activator.Ask{})
		assert.Equal(t, map[string]float64{
			"rouse_in_flight_requests workload=wiki":                   0,
			"rouse_queue_requests workload=wiki":                       1,
			"rouse_queue_rejected_total reason=bytes workload=wiki":    0,
			"rouse_queue_rejected_total reason=failed workload=wiki":   0,
			"rouse_queue_rejected_total reason=requests workload=wiki": 1,
			"rouse_queue_rejected_total reason=total workload=wiki":    0,
			"rouse_queue_rejected_total reason=wakes workload=wiki":    0,
			"rouse_workload_phase phase=asleep workload=wiki":          1,
			"rouse_workload_phase phase=waking workload=wiki":          0,
			"rouse_workload_phase phase=ready workload=wiki":           0,
			"rouse_workload_phase phase=draining workload=wiki":        0,
			"rouse_workload_phase phase=failed workload=wiki":          0,
		}, gathered(t, registry))
		r.see(ready(1, 1))
		values := gathered(t, registry)
		assert.Equal(t, 1.0, values["rouse_workload_phase phase=ready workload=wiki"])
		assert.Equal(t, 1.0, values["rouse_in_flight_requests workload=wiki"])
		assert.Equal(t, 0.0, values["rouse_queue_requests workload=wiki"])
		r.Update(nil)
		assert.Empty(t, gathered(t, registry))
	})
}
