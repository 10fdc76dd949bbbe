//go:build linux

package trial

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

func ofCount(n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(n - i)
	}
	return values
}

// The ranks and coverages are those of the tables (for example Conover,
// Practical Nonparametric Statistics, table A3 of n and p = 0.5).
func TestTheIntervalOfAMedianIsThatOfTheTables(t *testing.T) {
	for n, want := range map[int]Estimate{
		1:  {N: 1, Median: 1, Low: 1, High: 1, Coverage: 0, Min: 1, Max: 1},
		5:  {N: 5, Median: 3, Low: 1, High: 5, Coverage: 0.9375, Min: 1, Max: 5},
		6:  {N: 6, Median: 3.5, Low: 1, High: 6, Coverage: 0.96875, Min: 1, Max: 6},
		10: {N: 10, Median: 5.5, Low: 2, High: 9, Coverage: 0.978515625, Min: 1, Max: 10},
		20: {N: 20, Median: 10.5, Low: 6, High: 15, Coverage: 0.9586105347, Min: 1, Max: 20},
	} {
		got := EstimateOf(ofCount(n))
		assert.InDelta(t, want.Coverage, got.Coverage, 1e-9, "%d", n)
		got.Coverage = want.Coverage
		assert.Equal(t, want, got)
	}
	assert.Zero(t, EstimateOf(nil))
}

func clean() *Run {
	counts := openloop.Counts{Scheduled: 10, Started: 10, Finished: 10, Sent: 10, Outcomes: map[string]int64{"ok": 10}}
	return &Run{
		Served: 20, Report: openloop.Report{
			Result: &openloop.Result{WarmUp: counts, Measured: counts}, Conserved: true,
			Intended: latency.Summary{P50: 1},
		},
	}
}

func TestEachDisturbanceHasItsReason(t *testing.T) {
	limits := Limits{}.filled()
	assert.Empty(t, clean().faults(limits))
	cases := map[string]func(*Run){
		"nothing was due": func(r *Run) { r.Report.Measured = openloop.Counts{}; r.Served = 10 },
		"2 of 10 requests failed: 1 cut, 1 unsent": func(r *Run) {
			r.Report.Measured.Outcomes = map[string]int64{"ok": 8, "cut": 1}
			r.Report.Measured.Unsent = 1
		},
		"not conserved: 10 due, 10 started, 10 finished": func(r *Run) { r.Report.Conserved = false },
		"the server has served 21 requests of 20":        func(r *Run) { r.Served = 21 },
		"own lag p99 1.100 ms":                           func(r *Run) { r.Report.OwnLag.P99 = 1.1 },
		"generator used 86 % of its core":                func(r *Run) { r.Report.CoreShare = 0.86 },
		"others used 0.16 cores":                         func(r *Run) { r.Machine.Foreign = 0.16 },
		"0.030 cores were stolen":                        func(r *Run) { r.Machine.Steal = 0.03 },
		"3 dials after the warm-up":                      func(r *Run) { r.Report.DialsMeasured = 3 },
		"1 connections with bytes that nobody asked for": func(r *Run) { r.Report.Unsolicited = 1 },
		"4 times over an hour":                           func(r *Run) { r.Report.Intended.Overflow = 4 },
	}
	for want, disturb := range cases {
		r := clean()
		disturb(r)
		assert.Equal(t, []string{want}, r.faults(limits))
	}
	unknown := clean()
	unknown.Served, unknown.Machine.Foreign = -1, -1
	assert.Empty(t, unknown.faults(limits), "what is not known is no fault")
	fresh := clean()
	fresh.fresh, fresh.Report.DialsMeasured = true, 10
	assert.Empty(t, fresh.faults(limits), "nor is what was asked for")
}

func TestATrialWhoseDirectLaneMetAnotherMachineIsRejected(t *testing.T) {
	var trials []*Trial
	for _, p50 := range []float64{1, 1.1, 0.9, 1.7, 9} {
		one := &Trial{Direct: clean(), Routed: clean()}
		one.Direct.Report.Intended.P50 = p50
		trials = append(trials, one)
	}
	trials[4].Rejected = []string{"something else"}
	drift(trials, 1.5)
	var accepted []bool
	for _, one := range trials {
		accepted = append(accepted, one.Accepted())
	}
	assert.Equal(t, []bool{true, true, true, false, false}, accepted)
	assert.Equal(t, []string{"direct p50 1.700 ms is off the median of all, 1.050 ms"}, trials[3].Rejected)
	assert.Equal(t, []string{"something else"}, trials[4].Rejected)
}

func TestWhatIsIdleIsNotBusy(t *testing.T) {
	const before = "cpu  9 9 9 9 9 9 9 9 9 0\ncpu0 100 0 100 500 20 0 0 10 0 0\ncpu1 0 0 0 500 30 0 0 20 0 0\nintr 1\n"
	const after = "cpu  9 9 9 9 9 9 9 9 9 0\ncpu0 100 0 100 600 20 0 0 10 0 0\ncpu1 0 0 0 500 40 0 0 25 0 0\nintr 1\n"
	for _, c := range []struct {
		cpus            []int
		idle, moreSteal time.Duration // idle, waiting and stolen time is not busy
	}{
		{nil, 1150 * time.Millisecond, 50 * time.Millisecond},
		{[]int{0}, 1000 * time.Millisecond, 0},
		{[]int{1}, 150 * time.Millisecond, 50 * time.Millisecond},
	} {
		from := uptime()
		busy, steal := parseStat([]byte(before), c.cpus)
		later, more := parseStat([]byte(after), c.cpus)
		elapsed := uptime() - from
		assert.Equal(t, c.moreSteal, more-steal)
		assert.InDelta(t, -c.idle, later-busy, float64(2*elapsed), "%v", c.cpus)
	}
	assert.Equal(t, 7*time.Microsecond, parsePressure([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\nfull total=9\n")))
	assert.Zero(t, parsePressure(nil))
}

func TestTheTimeOfAProcessIsSeen(t *testing.T) {
	busy := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, busy.Start())
	defer func() { _ = busy.Process.Kill(); _ = busy.Wait() }()
	pids := []int{busy.Process.Pid}
	require.Eventually(t, func() bool { return spent(pids) > 20*time.Millisecond }, time.Minute, time.Millisecond)
	m := newMeter(pids, pids)
	m.start()
	begun := spent(pids)
	require.Eventually(t, func() bool { return spent(pids) > begun+20*time.Millisecond }, time.Minute, time.Millisecond)
	reading, watched := m.stop(0)
	assert.Greater(t, watched, 20*time.Millisecond)
	assert.Positive(t, reading.Compared)
	assert.GreaterOrEqual(t, reading.Foreign, 0.0)
}

func TestProcessesAreKeptApartAndPutBack(t *testing.T) {
	cpus := allowedCPUs(0)
	if len(cpus) < 2 {
		t.Skip("the machine has one CPU")
	}
	proxy := exec.Command("sleep", "60")
	require.NoError(t, proxy.Start())
	defer func() { _ = proxy.Process.Kill(); _ = proxy.Wait() }()
	server := exec.Command("sleep", "60")
	require.NoError(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()

	places := arrange(Config{Direct: Side{PIDs: []int{server.Process.Pid}}, Routed: Side{PIDs: []int{proxy.Process.Pid, server.Process.Pid}}})
	restore := places.pin()
	assert.Empty(t, places.Failed)
	at := allowedCPUs(proxy.Process.Pid)
	assert.Equal(t, places.Proxy, at)
	assert.False(t, slices.Contains(at, places.Generator[0]))
	assert.Equal(t, places.Server, allowedCPUs(server.Process.Pid))
	restore()
	assert.Equal(t, cpus, allowedCPUs(proxy.Process.Pid))

	assert.Empty(t, arrange(Config{Unpinned: true}).Generator)
	assert.Empty(t, arrange(Config{}).Proxy, "of unknown processes, only the generator is placed")
}

func TestAProcessWithARealTimePriorityIsNotMoved(t *testing.T) {
	proxy := exec.Command("sleep", "60")
	require.NoError(t, proxy.Start())
	defer func() { _ = proxy.Process.Kill(); _ = proxy.Wait() }()
	pids := []int{proxy.Process.Pid}
	cfg := Config{Trials: 1, Duration: 1, Rate: 1, Lane: []string{"lane"}, Out: "out", Direct: Side{PIDs: pids}}
	require.NoError(t, cfg.check())
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(pids[0], &attr, 0); err != nil {
		t.Skipf("no right to a real-time priority: %v", err)
	}
	require.ErrorContains(t, cfg.check(), "real-time")
	cfg.Unpinned = true
	require.NoError(t, cfg.check())
}

func TestPeersAreComparedWithTheFirstInTheSameRound(t *testing.T) {
	turn := func(round int, peer string, cpu float64, rejected ...string) Turn {
		return Turn{Round: round, Peer: peer, CPU: cpu, PerSecond: 1e6 / cpu, Added: [3]float64{cpu, 2 * cpu, 3 * cpu}, RejectedCPU: rejected}
	}
	s := PeersSummary{Rounds: 3, Turns: []Turn{
		turn(1, "us", 10), turn(1, "them", 30),
		turn(2, "them", 60), turn(2, "us", 20), // the machine is slower
		turn(3, "us", 10, "others"), turn(3, "them", 90),
	}}
	s.Turns[1].RejectedRate = []string{"others"}
	s.conclude([]Peer{{Name: "us"}, {Name: "them"}, {Name: "nobody"}})
	us, them := s.Standings[0], s.Standings[1]
	assert.Equal(t, 2, us.CPU.N)
	assert.Equal(t, 3, them.CPU.N)
	assert.Equal(t, 60.0, them.CPU.Median)
	assert.Equal(t, 2, them.Ratio.N, "a round without the first has no ratio")
	assert.Equal(t, 3.0, them.Ratio.Median)
	assert.Equal(t, 75.0, them.Added[0].Median)
	assert.False(t, s.Complete(), "of nobody nothing is known")
	var table strings.Builder
	require.NoError(t, s.WriteTable(&table))
	assert.Contains(t, table.String(), "| them | 3 and 2 of 3 | 60.0 (30.0 to 90.0) | 3.00 (3.00 to 3.00) |")
}
