package events_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

// BenchmarkWakeRoundTrip is what the events add to a cold start: a wake is
// published, a scaler takes it, writes waking, writes ready, and the gateway
// that asked is told.
func BenchmarkWakeRoundTrip(b *testing.B) {
	for name, connect := range map[string]func(*eventstest.Server, string) *events.Bus{
		"in_process": (*eventstest.Server).Bus, "tcp": (*eventstest.Server).TCP,
	} {
		b.Run(name, func(b *testing.B) {
			s := eventstest.Start(b)
			gateway, scaler := connect(s, "gateway"), connect(s, "scaler")
			ctx, cancel := context.WithCancel(b.Context())
			ready := make(chan string, 1)
			ended := make(chan error, 2)
			go func() { ended <- gateway.FollowStates(ctx, announce(ready), nil) }()
			go func() { ended <- scaler.ServeWakes(ctx, "n", 8, start(scaler)) }()
			took := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				begun := time.Now()
				wake := workload.Wake{ID: fmt.Sprint(i), Workload: fmt.Sprint("w", i%50), RequestedAt: begun}
				require.NoError(b, gateway.PublishWake(ctx, "n", wake))
				for <-ready != wake.ID {
					// an earlier one, handed over twice
				}
				took = append(took, time.Since(begun))
			}
			b.StopTimer()
			cancel()
			require.NoError(b, <-ended)
			require.NoError(b, <-ended)
			slices.Sort(took)
			b.ReportMetric(quantile(took, 0.5), "p50-µs")
			b.ReportMetric(quantile(took, 0.99), "p99-µs")
		})
	}
}

func announce(ready chan<- string) func(workload.State) {
	return func(s workload.State) {
		if s.Phase == workload.Ready {
			ready <- s.Wake.ID
		}
	}
}

func start(b *events.Bus) func(context.Context, workload.Wake) events.Verdict {
	return func(ctx context.Context, w workload.Wake) events.Verdict {
		s, err := b.State(ctx, w.Workload)
		s.Phase, s.Generation, s.Wake = workload.Waking, s.Generation+1, &w
		if err == nil {
			s, err = b.PutState(ctx, s)
		}
		s.Phase = workload.Ready
		s.Replicas = []workload.Replica{{ID: "a", Address: "10.0.0.2:80"}}
		if err == nil {
			_, err = b.PutState(ctx, s)
		}
		if err != nil {
			return events.Later(0)
		}
		return events.Done()
	}
}

func quantile(sorted []time.Duration, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return float64(sorted[max(0, i)].Nanoseconds()) / 1e3
}
