package system_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wakesPerMinute is the bound that the scanner runs into.
const wakesPerMinute = 2

// A scanner asks for everything there is over and over: workloads are started
// no more often than they may be, those it may not wake at all sleep on, and
// neither memory nor metrics grow with what it makes up.
func TestAScannerWakesNothingOftenerThanItMay(t *testing.T) {
	if !*stormsFull {
		t.Parallel()
	}
	s := brew(t, sectionScanner, plan{role: "up", dir: t.TempDir(), config: scannedConfig(t)})
	sc := &scanner{storm: s, open: scale(6, 25), fenced: scale(6, 25), unknown: scale(200, 1000)}
	before := s.resident()
	began := time.Now()
	var series int
	for round := range scale(2, 3) {
		s.calm(round)
		s.during("storm", round, func() { sc.scan(round, scale(0, 20*time.Second)) })
		if round == 0 { // every workload has been woken and refused by now
			series = len(s.metrics())
		}
		s.fact(fmt.Sprintf("memory after round %d", round+1), "%.1f MB, %.1f before everything", mega(s.resident()), mega(before))
	}

	allowed := wakesPerMinute + int(time.Since(began).Minutes()*wakesPerMinute)
	most, starts := sc.starts("open", sc.open)
	assert.LessOrEqual(t, most, allowed, "starts of one workload")
	assert.Positive(t, sc.limited, "the bound was reached")
	_, fenced := sc.starts("fenced", sc.fenced)
	assert.Zero(t, fenced, "starts of workloads that the scanner may not wake")
	sc.assertMetrics(series)
	s.fact("requests", "%d for %d workloads that may be woken by anybody, %d of them refused with `wake-limited`; %d starts, at most %d of one workload, %d allowed",
		sc.asked["open"], sc.open, sc.limited, starts, most, allowed)
	s.fact("requests from outside of `wake_allow`", "%d for %d workloads, all refused with 403; no start", sc.asked["fenced"], sc.fenced)
	s.fact("requests for hosts that do not exist", "%d, all refused with 404; the metrics have %d series, as many as after the first round", sc.asked["unknown"], len(s.metrics()))
	sc.assertTheAllowedMay()
	s.settle()
}

// scannedConfig describes workloads that anybody may wake now and then, and as
// many that only one network may.
func scannedConfig(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%slimits: { wakes_per_minute: %d }\nworkloads:\n%s", noDocker, wakesPerMinute, awakeEntry(t))
	for i := range scale(6, 25) {
		b.WriteString(processEntry(t, fmt.Sprintf("open%d", i), "    idle_timeout: 1s\n"))
		b.WriteString(processEntry(t, fmt.Sprintf("fenced%d", i), "    idle_timeout: 1s\n    wake_allow: [10.0.0.0/8]\n"))
	}
	return b.String()
}

// A scanner is one client of this machine that asks for everything.
type scanner struct {
	*storm
	open, fenced, unknown int // how many hosts of each kind

	mu      sync.Mutex
	asked   map[string]int // kind -> requests; guarded by mu
	limited int            // guarded by mu
}

// scan goes over all hosts once more often than they may be woken, and for
// that long at least, with pauses in which workloads fall asleep again.
func (sc *scanner) scan(round int, atLeast time.Duration) {
	sc.t.Helper()
	began := time.Now()
	for pass := 0; pass <= wakesPerMinute || time.Since(began) < atLeast; pass++ {
		next := make(chan func())
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for ask := range next {
					ask()
				}
			})
		}
		for i := range sc.unknown {
			next <- func() { sc.ask("unknown", fmt.Sprintf("scan-%d-%d-%d", round, pass, i), sc.judgeUnknown) }
		}
		for i := range sc.open {
			next <- func() { sc.ask("open", fmt.Sprintf("open%d", i), sc.judgeOpen) }
		}
		for i := range sc.fenced {
			next <- func() { sc.ask("fenced", fmt.Sprintf("fenced%d", i), sc.judgeFenced) }
		}
		close(next)
		workers.Wait()
		sc.waitAsleep()
	}
}

func (sc *scanner) ask(kind, name string, judge func(answer)) {
	a := sc.node.get(name+".localhost", "/wp-login.php?"+name)
	if !assert.NoError(sc.t, a.err) {
		return
	}
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.asked == nil {
		sc.asked = map[string]int{}
	}
	sc.asked[kind]++
	judge(a)
}

func (sc *scanner) judgeUnknown(a answer) {
	assert.Equal(sc.t, http.StatusNotFound, a.status, a.body)
}

// judgeOpen takes an answer of the workload, or a refusal with its reason and
// the time from which it may be woken again. Under the lock.
func (sc *scanner) judgeOpen(a answer) {
	if a.status == http.StatusOK {
		return
	}
	sc.limited++
	assert.Equal(sc.t, http.StatusServiceUnavailable, a.status, a.body)
	assert.Contains(sc.t, a.body, "urn:rouse:problem:wake-limited")
	after, err := strconv.Atoi(a.header.Get("Retry-After"))
	assert.NoError(sc.t, err)
	assert.Positive(sc.t, after)
	assert.LessOrEqual(sc.t, after, 60/wakesPerMinute)
}

func (sc *scanner) judgeFenced(a answer) {
	assert.Equal(sc.t, http.StatusForbidden, a.status, a.body)
	assert.Contains(sc.t, a.body, "urn:rouse:problem:wake-not-allowed")
}

// waitAsleep waits until all that was woken sleeps again.
func (sc *scanner) waitAsleep() {
	sc.t.Helper()
	eventually(sc.t, "what the scanner woke sleeps again", func() bool {
		awake := sc.sum(`rouse_workload_phase{phase="`)
		asleep := sc.sum(`rouse_workload_phase{phase="asleep"`)
		return awake-asleep == 1 // the probe's
	})
}

// starts tells how often the workloads of a kind were started, and the most of
// one.
func (sc *scanner) starts(kind string, workloads int) (most, all int) {
	sc.t.Helper()
	for i := range workloads {
		v, err := sc.node.view(fmt.Sprintf("%s%d", kind, i))
		require.NoError(sc.t, err)
		most = max(most, int(v.Generation))
		all += int(v.Generation)
	}
	return most, all
}

// assertMetrics checks that what was made up is in no series, and that there
// are no more than there were.
func (sc *scanner) assertMetrics(before int) {
	sc.t.Helper()
	after := sc.metrics()
	assert.Len(sc.t, after, before, "series")
	for _, line := range after {
		assert.NotContains(sc.t, line, "scan-")
		assert.NotContains(sc.t, line, "wp-login")
	}
}

// assertTheAllowedMay wakes one that the scanner could not, from a client that
// may, as the trusted proxy on this machine tells it.
func (sc *scanner) assertTheAllowedMay() {
	sc.t.Helper()
	req, err := http.NewRequest(http.MethodGet, sc.node.traffic+"/", nil)
	require.NoError(sc.t, err)
	req.Host = "fenced0.localhost"
	req.Header.Set("X-Forwarded-For", "10.1.2.3")
	resp, err := client.Do(req)
	require.NoError(sc.t, err)
	body := drainAll(resp)
	assert.Equal(sc.t, http.StatusOK, resp.StatusCode, body)
}
