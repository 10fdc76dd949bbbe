package events_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func TestProblemsOfEveryNodeReachEveryFollower(t *testing.T) {
	bus := eventstest.Start(t).Bus("scaler")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	bad := workload.Problem{Workload: "b", Place: "box", Message: "unknown label"}
	worse := workload.Problem{Workload: "a", Place: "file:1:2", Message: "bad port", Fix: "use 80"}
	require.NoError(t, bus.ReplaceProblems(ctx, "one", []workload.Problem{bad}))

	heard := make(chan []workload.Problem, 100)
	go func() { _ = bus.FollowProblems(ctx, func(ps []workload.Problem) { heard <- ps }) }()
	await := func(want ...workload.Problem) {
		t.Helper()
		for {
			select {
			case got := <-heard:
				if assert.ObjectsAreEqual(want, got) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("never heard %v", want)
			}
		}
	}
	await(bad)
	require.NoError(t, bus.ReplaceProblems(ctx, "two", []workload.Problem{worse}))
	await(worse, bad)
	require.NoError(t, bus.ReplaceProblems(ctx, "one", nil))
	await(worse)
}

func TestAnEndlessListOfProblemsIsCutAndCounted(t *testing.T) {
	bus := eventstest.Start(t).Bus("scaler")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	many := make([]workload.Problem, 2000)
	for i := range many {
		many[i] = workload.Problem{Workload: fmt.Sprintf("w%04d", i), Place: "box", Message: strings.Repeat("x", 50)}
	}
	require.NoError(t, bus.ReplaceProblems(ctx, "one", many))
	heard := make(chan []workload.Problem, 10)
	go func() { _ = bus.FollowProblems(ctx, func(ps []workload.Problem) { heard <- ps }) }()
	got := <-heard
	require.NotEmpty(t, got)
	assert.Less(t, len(got), 1000)
	assert.Contains(t, fmt.Sprint(got), fmt.Sprintf("and %d more", len(many)-(len(got)-1)))
}
