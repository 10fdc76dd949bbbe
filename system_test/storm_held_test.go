package system_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heldWorkloads and heldEach are how many requests are held for how many
// workloads.
func heldWorkloads() int { return scale(20, 50) }
func heldEach() int      { return scale(50, 200) }

// Requests of many workloads are all held while these start; then each is
// answered, and was executed, exactly once.
func TestRequestsHeldForManyWorkloadsAreAnsweredOnceEach(t *testing.T) {
	if !*stormsFull {
		t.Parallel()
	}
	workloads, each := heldWorkloads(), heldEach()
	begin := filepath.Join(t.TempDir(), "begin")
	s := brew(t, sectionHeld, plan{role: "up", dir: t.TempDir(), config: heldConfig(t, begin, "")})
	all, idle := workloads*each, s.resident()
	for round := range scale(1, 3) {
		s.calm(round)
		crowd := gather(t, s.node, workloads, each)
		connected := s.resident()
		s.during(arrival, round, func() {
			crowd.send(round)
			s.waitHeld(all)
		})
		held := s.resident()
		took := s.during("held", round, func() {
			time.Sleep(scale(0, 10*time.Second))
			touch(t, begin)
			crowd.waitFirst()
		})
		s.during("release", round, crowd.waitAll)
		require.NoError(t, os.Remove(begin))
		require.Equal(t, map[int]int{http.StatusOK: all}, crowd.statuses())
		crowd.assertExecutedOnce(s.node)
		crowd.disperse()
		s.fact(fmt.Sprintf("round %d", round+1), "%d requests held at once for %d workloads, %.1f s long; all answered, each executed once, within %.2f s of the first",
			all, workloads, took.Seconds(), crowd.released().Seconds())
		memory := fmt.Sprintf("%.0f MB with the connections, %.0f while all are held, %.0f after the last answer", mega(connected), mega(held), mega(s.resident()))
		if round == 0 { // later, some of what was used before is used again
			memory += fmt.Sprintf("; %.0f MB before everything, so %.1f KB for each held request, %.1f of it for its connection",
				mega(idle), kilo(held-idle, all), kilo(connected-idle, all))
		}
		s.fact(fmt.Sprintf("memory in round %d", round+1), "%s", memory)
		putToSleep(t, s.node, heldNames(workloads))
	}
	s.settle()
}

// A bound for each workload, and one for the whole node: what is over is
// refused at once with a reason and a time to come back, what is within is
// held and answered, a few at a time.
func TestExactlyTheSurplusOfHeldRequestsIsRefused(t *testing.T) {
	if !*stormsFull {
		t.Parallel()
	}
	const charge = 16 << 10 // what one held request counts
	workloads, each := heldWorkloads(), heldEach()
	var both sync.WaitGroup
	defer both.Wait()
	for _, c := range []surplus{
		{"for each workload", fmt.Sprintf("queue_requests: %d", each/2), workloads * each / 2},
		{"for the whole node", fmt.Sprintf("queue_bytes: %d", each*charge), 16 * each}, // 16 times that in all
	} {
		both.Go(func() { t.Run(c.name, c.run) })
		if *stormsFull { // the small ones mostly wait, and can do so beside each other
			both.Wait()
		}
	}
}

// A surplus is a bound, and how many requests are within it.
type surplus struct {
	name, limits string
	held         int
}

func (c surplus) run(t *testing.T) {
	const atOnce = 4
	begin := filepath.Join(t.TempDir(), "begin")
	n := start(t, plan{role: "up", dir: t.TempDir(), config: heldConfig(t, begin, fmt.Sprintf(", release_concurrency: %d, %s", atOnce, c.limits), "--delay", "5ms")})
	s := &storm{t: t, section: sectionHeld, node: n}
	crowd := gather(t, n, heldWorkloads(), heldEach())
	all := len(crowd.members)
	crowd.send(0)
	s.waitHeld(c.held)
	crowd.waitRefused(all - c.held)
	touch(t, begin)
	crowd.waitFirst()
	most := s.mostInFlight(crowd.done)
	require.Equal(t, map[int]int{http.StatusOK: c.held, http.StatusServiceUnavailable: all - c.held}, crowd.statuses())
	crowd.assertRefusals("queue-full")
	crowd.assertExecutedOnce(n)
	// A request is in flight until its answer was read, and counts for the pace
	// until the answer began.
	assert.LessOrEqual(t, most, 4*atOnce, "requests in flight at one workload")
	s.fact("bound "+c.name, "`%s`: of %d requests %d held and answered, %d refused with 503 and `Retry-After`; at most %d in flight at one workload, where `release_concurrency` is %d",
		c.limits, all, c.held, all-c.held, most, atOnce)
}

func heldName(i int) string { return fmt.Sprintf("held%d", i) }

func heldNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = heldName(i)
	}
	return names
}

// heldConfig describes workloads that do not listen before the file begin is
// there, and the awake one.
func heldConfig(t *testing.T, begin, limits string, mimic ...string) string {
	t.Helper()
	mimic = append(mimic, "--await", begin)
	var b strings.Builder
	fmt.Fprintf(&b, "%slimits: { wakes_per_minute: 0, starts_in_parallel: 50%s }\nworkloads:\n%s", noDocker, limits, awakeEntry(t))
	for _, name := range heldNames(heldWorkloads()) {
		b.WriteString(processEntry(t, name, "", mimic...))
	}
	return b.String()
}

// touch makes an empty file.
func touch(t *testing.T, file string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
}

// waitHeld waits until exactly so many requests are held.
func (s *storm) waitHeld(n int) {
	s.t.Helper()
	last := 0
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if last = s.sum("rouse_queue_requests{"); last == n {
			return
		}
	}
	s.t.Fatalf("%d requests held, wanted %d", last, n)
}

// mostInFlight is the most requests in flight at one workload that were seen
// until done is closed.
func (s *storm) mostInFlight(done <-chan struct{}) int {
	s.t.Helper()
	most := 0
	for {
		for _, n := range s.metric("rouse_in_flight_requests{") {
			most = max(most, n)
		}
		select {
		case <-done:
			return most
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func mega(n int64) float64 { return float64(n) / (1 << 20) }

func kilo(n int64, among int) float64 { return float64(n) / 1024 / float64(among) }
