package system_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A round is one fault, once: workloads, the load on them, and what came of it.
type round struct {
	t     *testing.T
	fault string
	dir   string // of the ledgers
	began time.Time

	sender  *load
	targets []*target
	pace    int // of underLoad, if not the usual
	hands   int // ends that the fault itself caused
	policy  int // starts by others that Rouse cannot have seen in time

	injected time.Time
	tally    *tally // set by settle
}

// A target is one workload that is asked.
type target struct {
	workload string
	host     string
	held     bool // a stream and long requests are kept open
	mu       sync.Mutex
	doors    []*node // gateways in the order in which they were named; guarded by mu
}

func newRound(t *testing.T, f fault) *round {
	r := &round{t: t, fault: f.name, dir: t.TempDir(), began: time.Now()}
	r.sender = newLoad(r)
	t.Cleanup(r.sender.end)
	return r
}

// ledger is the file that a workload of this name has to keep.
func (r *round) ledger(workload string) string {
	r.t.Helper()
	path := filepath.Join(r.dir, workload)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	require.NoError(r.t, err)
	require.NoError(r.t, file.Close())
	return path
}

// box is newBox with a ledger.
func (r *round) box(p boxPlan) *box {
	r.t.Helper()
	r.ledger(p.name)
	p.docker = append(p.docker, "--volume", r.dir+":/ledger")
	p.mimic = append(p.mimic, "--ledger", "/ledger/"+p.name)
	return newBox(r.t, p)
}

// process is processEntry with a ledger.
func (r *round) process(name, extra string, mimic ...string) string {
	r.t.Helper()
	return processEntry(r.t, name, extra, append(mimic, "--ledger", r.ledger(name))...)
}

// A serveOption changes how a host is asked.
type serveOption func(*target)

// held keeps a stream and a request of five seconds open all the time, which
// nothing may cut. Only for faults that end neither gateway nor workload.
func held(x *target) { x.held = true }

// serve sends load for a host, which is NAME.localhost of workload NAME, to a
// gateway. Of several gateways a client takes one, and the next if it cannot
// connect. It may be called while the load goes on, for a gateway that
// replaces another.
func (r *round) serve(n *node, host string, opts ...serveOption) {
	name := strings.TrimSuffix(host, ".localhost")
	for _, x := range r.targets {
		if x.host == host {
			x.mu.Lock()
			x.doors = append(x.doors, n)
			x.mu.Unlock()
			return
		}
	}
	waitRoute(r.t, n, name)
	x := &target{workload: name, host: host, doors: []*node{n}}
	for _, o := range opts {
		o(x)
	}
	r.targets = append(r.targets, x)
}

// open are the gateways, the one that is asked first for the i-th request
// first. One that has ended is left out, for its port may be another's by now,
// but if all have.
func (x *target) open(i int) []*node {
	x.mu.Lock()
	defer x.mu.Unlock()
	alive := slices.DeleteFunc(slices.Clone(x.doors), (*node).hasEnded)
	if len(alive) == 0 {
		return x.doors[:min(1, len(x.doors))]
	}
	i %= len(alive)
	return append(alive[i:len(alive):len(alive)], alive[:i]...)
}

// load begins to send: so many requests per second in all, at fixed times
// whatever becomes of them, to each host in turn, GET / and POST /echo in turn.
func (r *round) load(perSecond int) { r.sender.begin(perSecond) }

// lull lets nothing new be sent for a while. What is held open stays.
func (r *round) lull(d time.Duration) {
	r.sender.quiet.Store(true)
	time.Sleep(d)
	r.sender.quiet.Store(false)
}

// without does something while nothing new is sent.
func (r *round) without(what func()) {
	r.sender.quiet.Store(true)
	defer r.sender.quiet.Store(false)
	what()
}

// answering waits until a request to each host that was sent from now on has
// been answered. It is part of settle.
func (r *round) answering() {
	r.t.Helper()
	from := time.Now()
	for _, x := range r.targets {
		for !r.sender.answeredSince(x, from) {
			if time.Since(from) > patience {
				r.t.Errorf("%s did not answer again within %s", x.host, patience)
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// inject does what goes wrong.
func (r *round) inject(what func()) {
	r.injected = time.Now()
	what()
}

// byHand says that the fault itself ended a workload n times: in use, and with
// requests that had no answer yet. What somebody else than Rouse starts is
// adopted, which is a generation too, and need not be told.
func (r *round) byHand(n int) { r.hands += n }

// startedByOthers says that somebody else than Rouse started a workload n
// times, and that it may have ended before Rouse could adopt it.
func (r *round) startedByOthers(n int) { r.policy += n }

// settle waits until every host answers again, sends on for a little, waits
// for the end of every request, and checks the counts.
func (r *round) settle() {
	r.t.Helper()
	r.answering()
	time.Sleep(500 * time.Millisecond)
	r.sender.end()
	r.tally = r.count()
	r.tally.check(r.t)
}

// woken sums up the generations of a workload: how often Rouse moved it to
// waking, or took over a run it had not begun.
type woken struct {
	mu   sync.Mutex
	last map[string]uint64 // workload -> generation; guarded by mu
	sum  map[string]uint64 // over stores that began anew; guarded by mu
}

func (w *woken) look(targets []*target) {
	for _, x := range targets {
		for _, n := range x.open(0) {
			if v, err := glanceAt(n, x.workload); err == nil && v.Name == x.workload {
				w.note(x.workload, v.Generation)
				break
			}
		}
	}
}

func (w *woken) note(name string, generation uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch last := w.last[name]; {
	case generation >= last:
		w.sum[name] += generation - last
	case generation > 0: // the store was lost
		w.sum[name] += generation
	default:
		return
	}
	w.last[name] = generation
}

// glanceAt is node.view with a bound.
func glanceAt(n *node, name string) (view, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.admin+"/api/v1/workloads/"+name, nil)
	if err != nil {
		return view{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return view{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return view{}, fmt.Errorf("status %d", resp.StatusCode)
	}
	var v view
	return v, json.NewDecoder(resp.Body).Decode(&v)
}
