package events_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

// A bench is one server with a gateway and a scaler on it.
type bench struct {
	name            string
	gateway, scaler *events.Bus
	ready           chan string
	states          map[string]workload.State
	wakes, writes   []time.Duration
}

// BenchmarkSync compares a server that syncs each write with one that does
// not, turn by turn in one run: the round trip of a wake as in
// BenchmarkWakeRoundTrip, and one write of a state.
func BenchmarkSync(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 4)
	servers := map[string]*eventstest.Server{"default": eventstest.Start(b), "synced": eventstest.StartSynced(b)}
	benches := []*bench{{name: "default"}, {name: "synced"}}
	for _, n := range benches {
		server := servers[n.name]
		n.gateway, n.scaler, n.ready, n.states = server.Bus("gateway"), server.Bus("scaler"), make(chan string, 1), map[string]workload.State{}
		go func() { ended <- n.gateway.FollowStates(ctx, announce(n.ready), nil) }()
		go func() { ended <- n.scaler.ServeWakes(ctx, "n", 8, start(n.scaler)) }()
	}
	b.ResetTimer()
	for i := range b.N {
		for _, n := range benches {
			n.wake(b, i)
			n.write(b, i)
		}
	}
	b.StopTimer()
	cancel()
	for range cap(ended) {
		require.NoError(b, <-ended)
	}
	for _, n := range benches {
		for what, took := range map[string][]time.Duration{"wake": n.wakes, "write": n.writes} {
			slices.Sort(took)
			for _, q := range []float64{0.5, 0.99} {
				b.ReportMetric(quantile(took, q), fmt.Sprintf("%s-%s-p%.0f-µs", n.name, what, 100*q))
			}
		}
	}
}

func (n *bench) wake(b *testing.B, i int) {
	begun := time.Now()
	wake := workload.Wake{ID: fmt.Sprint(i), Workload: fmt.Sprint("w", i%50), RequestedAt: begun}
	require.NoError(b, n.gateway.PublishWake(b.Context(), "n", wake))
	for <-n.ready != wake.ID {
		// an earlier one, handed over twice
	}
	n.wakes = append(n.wakes, time.Since(begun))
}

func (n *bench) write(b *testing.B, i int) {
	name := fmt.Sprint("s", i%50)
	next := n.states[name]
	next.Workload, next.Phase = name, workload.Waking
	begun := time.Now()
	stored, err := n.scaler.PutState(b.Context(), next)
	require.NoError(b, err)
	n.writes = append(n.writes, time.Since(begun))
	n.states[name] = stored
}
