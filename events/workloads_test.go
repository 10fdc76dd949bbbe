package events_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func lists(t *testing.T, b *events.Bus) <-chan []workload.Workload {
	t.Helper()
	got := make(chan []workload.Workload, 1000)
	background(t, func(ctx context.Context) error {
		return b.FollowWorkloads(ctx, func(ws []workload.Workload) { got <- ws })
	})
	return got
}

func names(ws []workload.Workload) []string {
	var names []string
	for _, w := range ws {
		names = append(names, w.Node+"/"+w.Name)
	}
	return names
}

// awaitNames reads lists until one has these names, which are node/name.
func awaitNames(t *testing.T, got <-chan []workload.Workload, want ...string) []workload.Workload {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		ws := receive(t, got, time.Until(end))
		if assert.ObjectsAreEqual(want, names(ws)) {
			return ws
		}
	}
}

func named(names ...string) []workload.Workload {
	var ws []workload.Workload
	for _, name := range names {
		ws = append(ws, workload.Workload{Name: name, Hosts: []string{name + ".example.com"}, IdleTimeout: time.Minute})
	}
	return ws
}

func TestWorkloadsOfEachNodeBecomeOneList(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	got := lists(t, s.TCP("gateway"))
	assert.Empty(t, receive(t, got, patience), "nothing is known yet, and that is said")

	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n1", named("wiki", "blog.v2")))
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n2", named("shop")))
	ws := awaitNames(t, got, "n1/blog.v2", "n2/shop", "n1/wiki")
	assert.Equal(t, time.Minute, ws[0].IdleTimeout)

	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n1", named("wiki")))
	awaitNames(t, got, "n2/shop", "n1/wiki")
	require.NoError(t, b.DeleteWorkload(t.Context(), "wiki"))
	require.NoError(t, b.DeleteWorkload(t.Context(), "never-there"))
	awaitNames(t, got, "n2/shop")
	require.NoError(t, b.PutWorkload(t.Context(), workload.Workload{Name: "wiki", Node: "n3"}))
	awaitNames(t, got, "n2/shop", "n3/wiki")
	awaitNames(t, lists(t, b), "n2/shop", "n3/wiki")
}

func TestUnchangedWorkloadsAreNotWrittenAgain(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	sequence := func() uint64 {
		stream, err := admin(t, s).Stream(t.Context(), "KV_ROUSE_WORKLOADS")
		require.NoError(t, err)
		return stream.CachedInfo().State.LastSeq
	}
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", named("wiki", "blog")))
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", named("blog", "wiki")))
	assert.EqualValues(t, 2, sequence())
	ws := named("wiki", "blog")
	ws[0].Port = 3000
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", ws))
	assert.EqualValues(t, 3, sequence())
}

func TestLastNodeToDescribeAWorkloadHasIt(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n1", named("wiki")))
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n2", named("wiki")))
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n1", nil))
	awaitNames(t, lists(t, b), "n2/wiki")
}

func TestManyWorkloadsComeInFewLists(t *testing.T) {
	b := eventstest.Start(t).Bus("rouse")
	got := lists(t, b)
	assert.Empty(t, receive(t, got, patience))
	var many []workload.Workload
	for i := range 500 {
		many = append(many, named(fmt.Sprintf("w%03d", i))...)
	}
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", many))
	count := 1
	for len(receive(t, got, patience)) < len(many) {
		count++
	}
	assert.Less(t, count, 250)
}

func TestWorkloadsOutliveALostStoreUntilTheyAreWrittenAgain(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	events.SetLostGrace(b, time.Hour)
	got := lists(t, b)
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", named("blog", "wiki")))
	awaitNames(t, got, "n/blog", "n/wiki")

	s.Wipe()
	eventually(t, patience, func() bool { return b.ReplaceWorkloads(t.Context(), "n", named("shop")) == nil }, "written again")
	ws := awaitNames(t, got, "n/blog", "n/shop", "n/wiki")
	assert.Len(t, ws, 3)
}

func TestWorkloadsOfALostStoreAreGivenUpInTheEnd(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	events.SetLostGrace(b, time.Millisecond)
	got := lists(t, b)
	require.NoError(t, b.ReplaceWorkloads(t.Context(), "n", named("wiki")))
	awaitNames(t, got, "n/wiki")
	s.Wipe()
	eventually(t, patience, func() bool { return b.ReplaceWorkloads(t.Context(), "n", named("shop")) == nil }, "written again")
	awaitNames(t, got, "n/shop")
}
