package events_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func TestClusterLosesAServerAndNothingElse(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers take some seconds")
	}
	c := eventstest.StartCluster(t, 3)
	connect := func(name string, replicas int) *events.Bus {
		b, err := events.Connect(within(t, patience), events.Config{URL: c.URL(), Name: name, Replicas: replicas})
		require.NoError(t, err)
		t.Cleanup(b.Close)
		require.NoError(t, b.Provision(within(t, 2*patience)))
		return b
	}
	scaler := connect("scaler", 3)
	gateways := []*events.Bus{connect("g1", 0), connect("g2", 0), connect("g3", 0)}
	var views []*view
	for _, g := range gateways {
		views = append(views, follow(t, g))
	}
	got := wakesOf(t, scaler, "n")
	eventually(t, patience, func() bool {
		return gateways[0].PublishWake(t.Context(), "n", workload.Wake{Workload: "before"}) == nil
	}, "a wake is stored")
	receive(t, got, patience)

	last := writeThrough(t, scaler, func() { mustPut(t, scaler, workload.State{Workload: "steady"}) })
	c.StopLeader(t, "KV_ROUSE_STATE")
	for i := range 20 {
		name := fmt.Sprint("w", i%10)
		last[name] = mustPut(t, scaler, workload.State{Workload: name, Generation: 1000})
	}
	for _, v := range views {
		for name, want := range last {
			eventually(t, patience, func() bool { return v.of(name).Revision == want.Revision }, name)
			assert.Equal(t, want, v.of(name))
		}
	}
	eventually(t, patience, func() bool {
		return gateways[1].PublishWake(t.Context(), "n", workload.Wake{Workload: "after"}) == nil
	}, "a wake is stored")
	for receive(t, got, patience).Workload != "after" {
		// what the old leader had not noted as done comes again
	}
}
