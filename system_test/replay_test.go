package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// A replay is a trace that is sent to sleeping workloads, one for each of its
// functions.
type replay struct {
	name       string
	calls      []call // hastened already
	times      int    // by how much
	idle       time.Duration
	containers bool // or processes
}

// replayBand is what gaps may differ from the idle timeout without that it is
// known who was first. Early: client and gateway see a gap from two sides, and
// both may be kept waiting for a core. Late: the scaler learns each second
// what a gateway has in flight, and asks all of them before it stops anything.
var replayBand = band{early: 250 * time.Millisecond, late: 1500 * time.Millisecond}

// replays are what is sent, in the seconds of make test or the minutes of
// make storms.
func replays(t *testing.T) []replay {
	code, functions := llmTrace(t, "llm-code.csv"), functionsTrace(t)
	conversation := llmTrace(t, "llm-conversation.csv")
	if *stormsFull {
		return []replay{
			{"code model", hasten(code, 12), 12, 4 * time.Second, true},
			{"code model", hasten(code, 10), 10, 2 * time.Second, false},
			{"chat model", hasten(conversation, 5), 5, 3 * time.Second, true},
			{"31 functions", hasten(functions, 10), 10, 3 * time.Second, true},
			{"31 functions", hasten(functions, 10), 10, 3 * time.Second, false},
		}
	}
	return []replay{
		{"code model", hasten(excerpt(code, 3215*time.Second, 3455*time.Second), 20), 20, time.Second, true},
		{"chat model", hasten(excerpt(conversation, 0, time.Minute), 10), 10, time.Second, false},
		{"31 functions", hasten(excerpt(functions, 0, 260*time.Second), 20), 20, time.Second, false},
	}
}

// Real traffic, faster, to workloads that sleep in between: every request is
// answered by its workload, and each workload is started exactly as often as
// the gaps between its requests say.
func TestReplayedTracesStartWorkloadsAsOftenAsTheirGapsSay(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup // beside each other whatever -parallel says: they mostly wait
	for _, r := range replays(t) {
		kind := "processes"
		if r.containers {
			kind = "containers"
		}
		all.Go(func() { t.Run(r.name+" on "+kind, func(t *testing.T) { r.run(t, kind) }) })
	}
	all.Wait()
}

func (r replay) run(t *testing.T, kind string) {
	n := r.node(t)
	r.settle(t, n)
	before := r.generations(t, n)
	requests := r.send(t, n)

	var sum replayed
	sum.requests = len(requests)
	after := r.generations(t, n)
	for f := range r.functions() {
		var mine []replayedCall
		for _, c := range requests {
			if c.function == f {
				mine = append(mine, c)
			}
		}
		r.judge(t, workloadOf(f), mine, int(after[f]-before[f]), &sum)
	}
	t.Logf("%d requests, %d cold starts, predicted %d to %d; nearest gaps %s", sum.requests, sum.starts, sum.least, sum.most, sum.near())
	sum.report(r, kind)
}

// judge compares the starts of one workload with its gaps.
func (r replay) judge(t *testing.T, name string, requests []replayedCall, starts int, sum *replayed) {
	t.Helper()
	spans := make([]span, len(requests))
	lives := map[int64]bool{} // one for each start that answered something
	for i, c := range requests {
		spans[i] = c.span
		lives[c.life] = true
	}
	sum.look(requests, r.idle)
	least, most := predict(spans, r.idle, replayBand)
	assert.GreaterOrEqual(t, starts, least, "cold starts of %s", name)
	assert.LessOrEqual(t, starts, most, "cold starts of %s", name)
	assert.Len(t, lives, starts, "%s: every start answered something, and nothing else did", name)
	sum.starts += starts
	sum.least += least
	sum.most += most
}

// functions gives the numbers of the functions that are called.
func (r replay) functions() map[int]bool {
	called := map[int]bool{}
	for _, c := range r.calls {
		called[c.function] = true
	}
	return called
}

func workloadOf(function int) string { return fmt.Sprintf("fn%d", function) }

// node starts a node with a sleeping workload for each function.
func (r replay) node(t *testing.T) *node {
	t.Helper()
	p := plan{role: "up", dir: t.TempDir()}
	idle := fmt.Sprintf("idle_timeout: %s", r.idle)
	if r.containers {
		prefix := newPrefix(t)
		var creating sync.WaitGroup
		for f := range r.functions() {
			creating.Go(func() {
				newBox(t, boxPlan{name: workloadOf(f), prefix: prefix, labels: []string{fmt.Sprintf("idle-timeout=%s", r.idle)}})
			})
		}
		creating.Wait()
		p.config = dockerConfig(prefix)
	} else {
		p.config = noDocker + "workloads:\n"
		for f := range r.functions() {
			p.config += processEntry(t, workloadOf(f), "    "+idle+"\n")
		}
	}
	p.config += "limits: { wakes_per_minute: 0 }\n" // a trace in haste is no scanner
	return start(t, p)
}

// processEntry is processConfig for one workload among several.
func processEntry(t *testing.T, name, extra string, mimic ...string) string {
	t.Helper()
	return strings.TrimPrefix(processConfig(t, name, extra, mimic...), "workloads:\n")
}

// settle waits until workloads are put to sleep: a scaler that has just begun
// waits for gateways to be heard.
func (r replay) settle(t *testing.T, n *node) {
	t.Helper()
	for f := range r.functions() {
		waitRoute(t, n, workloadOf(f))
	}
	first := workloadOf(r.calls[0].function)
	require.Equal(t, http.StatusOK, n.get(first+".localhost", "/").status)
	n.waitPhase(first, "asleep")
}

func (r replay) generations(t *testing.T, n *node) map[int]uint64 {
	t.Helper()
	of := map[int]uint64{} // function -> generation
	for f := range r.functions() {
		v, err := n.view(workloadOf(f))
		require.NoError(t, err)
		of[f] = v.Generation
	}
	return of
}

// A replayedCall is one call and what came of it.
type replayedCall struct {
	call
	span
	cold bool
	life int64 // which start of the workload answered
}

// send sends every call at its time, whatever became of those before.
func (r replay) send(t *testing.T, n *node) []replayedCall {
	t.Helper()
	done := make([]replayedCall, len(r.calls))
	errs := make([]error, len(r.calls))
	var sent sync.WaitGroup
	began := time.Now()
	for i, c := range r.calls {
		time.Sleep(time.Until(began.Add(c.at)))
		sent.Go(func() { done[i], errs[i] = answered(n, c, i) })
	}
	sent.Wait()
	require.NoError(t, errors.Join(errs...))
	return done
}

// answered sends one call, and sees to it that its workload answered it.
func answered(n *node, c call, number int) (replayedCall, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	host := workloadOf(c.function) + ".localhost"
	path := fmt.Sprintf("/delay/%d", c.takes.Milliseconds())
	query := fmt.Sprintf("call=%d", number)
	d := replayedCall{call: c}
	d.from = time.Now()
	a := n.do(ctx, http.MethodGet, host, path+"?"+query, nil)
	d.to = time.Now()
	if a.err != nil {
		return d, fmt.Errorf("%s?%s at %s: %w", path, query, c.at, a.err)
	}
	var report mimic.Report
	if a.status != http.StatusOK || json.Unmarshal([]byte(a.body), &report) != nil || report.Host != host || report.Query != query {
		return d, fmt.Errorf("%s?%s at %s: status %d: %s", path, query, c.at, a.status, a.body)
	}
	d.cold, d.life = a.header.Get("Rouse-Cold-Start") != "", report.ListeningAt
	return d, nil
}
