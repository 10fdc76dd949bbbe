package system_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/filters"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/dockertest"
)

// startsInParallel is the default that the storm goes against.
const startsInParallel = 4

// Every container of a node is woken at the same moment: each is started once,
// never more at a time than they may, and every request is answered.
func TestContainersWokenAtOnceAreStartedOnceEachAndAFewAtATime(t *testing.T) {
	if !*stormsFull {
		t.Parallel()
	}
	boxes, rounds := scale(8, 100), scale(1, 3)
	const requests = 3 // to each
	prefix := newPrefix(t)
	created := newBoxes(t, prefix, boxes)
	engine, seen := countCalls(t), watchEvents(t, filters.Arg("label", prefix+".enable=true"))
	s := brew(t, sectionStarts, plan{role: "up", dir: t.TempDir(), config: fmt.Sprintf("docker: { host: %q, label_prefix: %q }\n", engine.address, prefix) +
		fmt.Sprintf("defaults: { hold_timeout: %s }\n", stormPatience) +
		"workloads:\n" + awakeEntry(t)})
	for _, b := range created {
		waitRoute(t, s.node, b)
	}

	for round := range rounds {
		s.calm(round)
		var answers []answer
		took := s.during("storm", round, func() { answers = everywhere(s.node, created, requests) })
		require.Equal(t, map[int]int{http.StatusOK: boxes * requests}, count(t, answers))
		waits := make([]time.Duration, len(answers))
		for i, a := range answers {
			waits[i] = a.took
		}
		slices.Sort(waits)
		s.fact(fmt.Sprintf("round %d", round+1), "%d containers, %d requests, all answered by %.1f s; first %.1f s, median %.1f s", boxes, len(answers),
			took.Seconds(), waits[0].Seconds(), quantile(waits, 0.5).Seconds())
		putToSleep(t, s.node, created)
	}

	eventually(t, "the engine has told of every start", func() bool { return seen.count("start") >= boxes*rounds })
	assert.Len(t, seen.each("start"), boxes)
	for id, n := range seen.each("start") {
		assert.Equal(t, rounds, n, "starts of %s", id)
	}
	most, calls := engine.counts()
	assert.LessOrEqual(t, most, startsInParallel, "start calls at a time")
	assert.Equal(t, boxes*rounds, calls, "start calls")
	s.fact("start calls", "%d, at most %d at a time", calls, most)
	s.settle()
}

// newBoxes makes n containers, and gives the names of their workloads.
func newBoxes(t *testing.T, prefix string, n int) []string {
	t.Helper()
	names := make([]string, n)
	var creating sync.WaitGroup
	lanes := make(chan struct{}, 4)
	for i := range names {
		names[i] = fmt.Sprintf("box%d", i)
		creating.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			dockertest.Create(t, dockertest.Spec{Name: prefix + "-" + names[i], Labels: map[string]string{
				prefix + ".enable": "true", prefix + ".name": names[i], prefix + ".host": names[i] + ".localhost", prefix + ".port": "8080",
			}})
		})
	}
	creating.Wait()
	return names
}

// stormPatience is how long the last of many workloads may take on a machine
// that has other things to do.
const stormPatience = 3 * patience

// everywhere sends so many requests to each of the workloads at once.
func everywhere(n *node, workloads []string, each int) []answer {
	answers := make([]answer, len(workloads)*each)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), stormPatience)
			defer cancel()
			answers[i] = n.do(ctx, http.MethodGet, workloads[i%len(workloads)]+".localhost", "/", nil)
		})
	}
	wg.Wait()
	return answers
}

// putToSleep puts workloads to sleep by hand, and waits until they are.
func putToSleep(t *testing.T, n *node, workloads []string) {
	t.Helper()
	var sleeping sync.WaitGroup
	lanes := make(chan struct{}, 8)
	for _, name := range workloads {
		sleeping.Go(func() {
			lanes <- struct{}{}
			defer func() { <-lanes }()
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				resp, err := client.Post(n.admin+"/api/v1/workloads/"+name+"/sleep", "", nil)
				if !assert.NoError(t, err) {
					return
				}
				_ = drainAll(resp)
				if resp.StatusCode != http.StatusServiceUnavailable { // not all gateways need have been heard yet
					return
				}
			}
		})
	}
	sleeping.Wait()
	for _, name := range workloads {
		n.waitPhase(name, "asleep")
	}
}
