package simulation

import (
	"flag"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	seedFlag  = flag.Uint64("sim.seed", 0, "run this seed alone and print its trace; 0 runs many")
	fromFlag  = flag.Uint64("sim.from", 1, "the first of many seeds")
	seedsFlag = flag.Uint64("sim.seeds", seedsByDefault, "at least so many seeds")
	forFlag   = flag.Duration("sim.for", 0, "go on for so long, then stop at the next seed")
)

// worst is how many failures end a run: more would say the same.
const worst = 5

func TestSimulation(t *testing.T) {
	if *seedFlag != 0 {
		tell(t, simulate(t, newPlan(*seedFlag), mutant{}), true)
		return
	}
	b := &batch{total: map[string]int{}, until: time.Now().Add(*forFlag)}
	b.next.Store(*fromFlag - 1)
	t.Run("seeds", b.run)
	b.report(t)
}

// A batch is many seeds, run side by side.
type batch struct {
	until time.Time
	next  atomic.Uint64

	mu     sync.Mutex
	seeds  int            // guarded by mu
	failed int            // guarded by mu
	spent  time.Duration  // in simulations; guarded by mu
	total  map[string]int // guarded by mu
}

func (b *batch) run(t *testing.T) {
	for range runtime.GOMAXPROCS(0) {
		t.Run("worker", func(t *testing.T) {
			t.Parallel()
			for {
				seed := b.next.Add(1)
				if seed-*fromFlag >= *seedsFlag && !time.Now().Before(b.until) {
					return
				}
				o := simulate(t, newPlan(seed), mutant{})
				tell(t, o, false)
				if b.add(o) >= worst {
					return
				}
			}
		})
	}
}

func (b *batch) add(o *outcome) (failed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seeds++
	b.spent += o.spent
	for what, n := range o.counts {
		b.total[what] += n
	}
	if o.failed() {
		b.failed++
	}
	return b.failed
}

// tell prints what a person needs of an outcome: all of it where rules were
// broken.
func tell(t *testing.T, o *outcome, always bool) {
	t.Helper()
	if always || o.failed() {
		t.Logf("seed %d, %v:\n%s", o.seed, o.spent, o.trace)
	}
	if o.failed() {
		t.Errorf("seed %d broke:\n  %s\nagain: go test ./system_test/simulation -run TestSimulation -sim.seed=%d -v",
			o.seed, strings.Join(o.broken, "\n  "), o.seed)
	}
}

// must are the things that every run of many seeds has to have met.
var must = []string{
	"request", "answered", "client left", "broken", "refused with a reason", "refused connection", "cold start", "stop",
	"start failed", "start never ready", "exit after start", "restart by itself", "stop failed", "write unconfirmed",
}

func (b *batch) report(t *testing.T) {
	t.Logf("%d seeds, %v of their own time", b.seeds, b.spent.Round(time.Second))
	for _, what := range slices.Sorted(maps.Keys(b.total)) {
		t.Logf("%9d %s", b.total[what], what)
	}
	for _, what := range must {
		assert.NotZero(t, b.total[what], what)
	}
	for _, kind := range faultKinds {
		assert.NotZero(t, b.total[string(kind)], kind)
	}
}

// TestASeedGivesTheSameTraceAgain compares whole traces, to the nanosecond.
// Only the order within one instant is left open: goroutines that run at one
// instant have none.
func TestASeedGivesTheSameTraceAgain(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		p := newPlan(seed)
		first := simulate(t, p, mutant{}).trace.canonical()
		second := simulate(t, p, mutant{}).trace.canonical()
		for i := range min(len(first), len(second)) {
			require.Equal(t, first[i], second[i], "seed %d, line %d", seed, i+1)
		}
		require.Len(t, second, len(first), "seed %d", seed)
	}
}
