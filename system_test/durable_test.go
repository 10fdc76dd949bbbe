package system_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/workload"
)

var durableRounds = flag.Int("durable.rounds", 3, "how often everything is killed under writes and must have kept what was acknowledged")

// A ledger is what was acknowledged to whoever wrote it, and what was seen of
// the node's own writes.
type ledger struct {
	mu     sync.Mutex
	states map[string]workload.State // written by the test: name -> the last one acknowledged
	specs  map[string]int            // name -> port, as the last one acknowledged has it
	turn   int                       // of the writer
	events int                       // how many of the test's, each numbered, were acknowledged
	seen   map[string]workload.State // the node's own: name -> the newest
	past   map[string]bool           // its history: kind and generation
}

func newLedger() *ledger {
	return &ledger{states: map[string]workload.State{}, specs: map[string]int{}, seen: map[string]workload.State{}, past: map[string]bool{}}
}

func (l *ledger) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// write writes until the server is gone: states of three workloads by compare
// and set, descriptions, and the history, as fast as it is acknowledged.
func (l *ledger) write(ctx context.Context, bus *events.Bus) {
	for ; ctx.Err() == nil; l.turn++ {
		i := l.turn
		name := fmt.Sprint("probe", i%3)
		next := l.states[name]
		next.Workload, next.Phase, next.Generation = name, workload.Phases()[i%5], next.Generation+1
		stored, err := bus.PutState(ctx, next)
		if errors.Is(err, events.ErrConflict) {
			stored, err = bus.State(ctx, name) // the former one was stored, unacknowledged, when all was killed
		}
		if err != nil {
			return
		}
		l.do(func() { l.states[name] = stored })
		if err := bus.PutWorkload(ctx, workload.Workload{Name: name, Node: "elsewhere", Port: 1 + i%60_000}); err != nil {
			return
		}
		l.do(func() { l.specs[name] = 1 + i%60_000 })
		err = bus.RecordEvent(ctx, workload.Event{Workload: "probe", Kind: workload.EventReady, Generation: uint64(l.events + 1)})
		if err != nil {
			return
		}
		l.do(func() { l.events++ })
	}
}

// watch notes what the node itself wrote, as far as it was told of.
func (l *ledger) watch(ctx context.Context, bus *events.Bus) {
	var both sync.WaitGroup
	both.Go(func() {
		_ = bus.FollowStates(ctx, func(s workload.State) {
			l.do(func() {
				if s.Revision > l.seen[s.Workload].Revision {
					l.seen[s.Workload] = s
				}
			})
		}, nil)
	})
	both.Go(func() {
		_ = bus.FollowEvents(ctx, events.EventFilter{}, func(e workload.Event) {
			if e.Workload != "probe" {
				l.do(func() { l.past[fmt.Sprint(e.Workload, e.Kind, e.Generation)] = true })
			}
		})
	})
	both.Wait()
}

// check compares all of it with what a restarted server has.
func (l *ledger) check(t *testing.T, bus *events.Bus) {
	t.Helper()
	for name, acked := range l.states {
		now, err := bus.State(t.Context(), name)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, now.Revision, acked.Revision, name)
		if now.Revision == acked.Revision {
			assert.Equal(t, acked.Generation, now.Generation, name)
			assert.Equal(t, acked.Phase, now.Phase, name)
		} else {
			assert.Equal(t, acked.Generation+1, now.Generation, "%s: the next one was stored, unacknowledged", name)
		}
		l.states[name] = now
	}
	for name, was := range l.seen {
		now, err := bus.State(t.Context(), name)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, now.Revision, was.Revision, name)
		assert.GreaterOrEqual(t, now.Generation, was.Generation, "%s: generations never go back", name)
	}
	past, err := bus.Events(t.Context(), events.EventFilter{})
	require.NoError(t, err)
	kept, numbers := map[string]bool{}, 0
	for _, e := range past {
		kept[fmt.Sprint(e.Workload, e.Kind, e.Generation)] = true
		if e.Workload == "probe" {
			numbers = max(numbers, int(e.Generation))
		}
	}
	for e := range l.past {
		assert.True(t, kept[e], "%s is lost", e)
	}
	for i := max(1, l.events-900); i <= l.events; i++ { // the newest thousand of each kind are kept
		assert.True(t, kept[fmt.Sprint("probe", workload.EventReady, i)], "event %d is lost", i)
	}
	l.events = max(l.events, numbers)
	l.checkSpecs(t, bus)
}

func (l *ledger) checkSpecs(t *testing.T, bus *events.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var ws []workload.Workload
	require.NoError(t, bus.FollowWorkloads(ctx, func(list []workload.Workload) { ws = list; cancel() }))
	ports := map[string]int{}
	for _, w := range ws {
		ports[w.Name] = w.Port
	}
	for name, port := range l.specs {
		assert.Contains(t, []int{port, port + 3}, ports[name], "%s: as acknowledged, or the next one", name)
		l.specs[name] = ports[name]
	}
}

// Everything in one process, killed at random moments while it writes: what
// was acknowledged is there again, in this order or a later one.
func TestNothingAcknowledgedIsLostWhenAllIsKilled(t *testing.T) {
	t.Parallel()
	addr := freeAddr(t)
	p := plan{role: "up", dir: t.TempDir(), config: noDocker + fmt.Sprintf("nats: { listen: %q }\n", addr) +
		"limits: { wakes_per_minute: 0 }\n" + processConfig(t, "tool", "", "--exit-after", "150ms")}
	l := newLedger()
	for range *durableRounds {
		killedRound(t, p, addr, l)
	}
	n := start(t, p)
	l.check(t, joined(t, addr))
	eventually(t, "it answers", func() bool { return n.get("tool.localhost", "/").status == http.StatusOK })
	assert.Greater(t, l.seen["tool"].Generation, uint64(0), "it was woken under the kills")
	t.Logf("%d events, %d generations of three states and %d of a real workload were acknowledged over %d kills",
		l.events, l.states["probe0"].Generation, l.seen["tool"].Generation, *durableRounds)
}

func killedRound(t *testing.T, p plan, addr string, l *ledger) {
	t.Helper()
	n := start(t, p)
	l.check(t, joined(t, addr))
	ctx, cancel := context.WithCancel(t.Context())
	bus := joined(t, addr)
	var busy sync.WaitGroup
	busy.Go(func() { l.watch(ctx, bus) })
	busy.Go(func() { l.write(ctx, bus) })
	busy.Go(func() {
		for ctx.Err() == nil {
			n.do(ctx, http.MethodGet, "tool.localhost", "/", nil)
			time.Sleep(100 * time.Millisecond) // it ends by itself, and is woken again
		}
	})
	time.Sleep(300*time.Millisecond + rand.N(1500*time.Millisecond))
	n.kill()
	cancel()
	bus.Close()
	busy.Wait()
}

func joined(t *testing.T, addr string) *events.Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bus, err := events.Connect(ctx, events.Config{URL: "nats://" + addr, Name: "test"})
	require.NoError(t, err)
	t.Cleanup(bus.Close)
	return bus
}
