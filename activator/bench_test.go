package activator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// awake gives the open gate of a workload with that many replicas.
func awake(tb testing.TB, s workload.Strategy, replicas int) *activator.Gate {
	tb.Helper()
	a := activator.New(activator.Config{}, activator.Waker(nil))
	a.Update([]workload.Workload{{Name: "wiki", Strategy: s}})
	a.Observe(ready(1, 1, ids(replicas)...))
	return a.Gate("wiki")
}

func BenchmarkAcquireWarm(b *testing.B) {
	cases := map[string]struct {
		replicas int
		strategy workload.Strategy
	}{
		"one replica":      {1, workload.StrategyLeastInFlight},
		"five, least":      {5, workload.StrategyLeastInFlight},
		"five, fastest":    {5, workload.StrategyFastest},
		"five, one by one": {5, workload.StrategyRoundRobin},
	}
	for name, c := range cases {
		g := awake(b, c.strategy, c.replicas)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				passOnce(b, g)
			}
		})
		b.Run(name+", parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					passOnce(b, g)
				}
			})
		})
	}
}

func passOnce(tb testing.TB, g *activator.Gate) {
	lease, err := g.Acquire(context.Background(), activator.Ask{Bytes: 512})
	if err != nil {
		tb.Error(err)
	}
	lease.Answered()
	lease.Release()
}

func TestPassingAnOpenGateAllocatesNothing(t *testing.T) {
	for _, s := range []workload.Strategy{
		workload.StrategyLeastInFlight, workload.StrategyFastest, workload.StrategyRoundRobin,
	} {
		for _, n := range []int{1, 2, 7} {
			g := awake(t, s, n)
			require.Zero(t, testing.AllocsPerRun(1000, func() { passOnce(t, g) }), "strategy %d, %d replicas", s, n)
		}
	}
}
