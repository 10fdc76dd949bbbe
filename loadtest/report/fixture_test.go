//go:build linux

package report

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/burst"
	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// A load is a run that never was: in each of its seconds after a warm-up of
// one, a thousand answers of 1 to 1,000 times step, half of it send lag.
type load struct {
	began   time.Time
	seconds int
	step    time.Duration
	shift   time.Duration // of all latencies
	failed  int64         // in the last second
	lag     time.Duration // own lag of every request
}

const perSecond = 1000

// leave writes the files of the run.
func (l load) leave(t *testing.T, dir string) {
	t.Helper()
	files, err := openloop.NewFiles(dir)
	require.NoError(t, err)
	times := openloop.Times{Intended: latency.New(), Service: latency.New(), SendLag: latency.New(), OwnLag: latency.New(), Added: latency.New()}
	interval := openloop.Interval{Intended: latency.New(), Service: latency.New()}
	for second := range l.seconds + 1 {
		at := time.Duration(second) * time.Second
		i := openloop.Interval{
			Began: l.began, Start: at, End: at + time.Second, WarmUp: second == 0, Last: second == l.seconds,
			Started: perSecond, OK: perSecond, Intended: interval.Intended, Service: interval.Service,
		}
		i.Intended.Reset()
		i.Service.Reset()
		if i.Last {
			i.Started, i.Failed = i.Started+l.failed, l.failed
		}
		for k := range perSecond * min(second, 1) {
			d := l.shift + time.Duration(k+1)*l.step
			i.Intended.Record(d)
			i.Service.Record(d / 2)
			times.SendLag.Record(d - d/2)
			times.OwnLag.Record(l.lag)
		}
		times.Intended.Merge(i.Intended)
		times.Service.Merge(i.Service)
		files.Interval(i)
	}
	for range l.failed { // sent, and never answered
		times.SendLag.Record(l.lag)
		times.OwnLag.Record(l.lag)
	}
	require.NoError(t, files.Close(&openloop.Result{
		Began: l.began, WarmUp: counts(perSecond, 0), Measured: counts(perSecond*int64(l.seconds), l.failed),
		Elapsed: time.Duration(l.seconds) * time.Second, Window: time.Duration(l.seconds) * time.Second,
		CPU: 300 * time.Millisecond, DialsBefore: 8, PeakInFlight: 3, Times: times,
	}))
}

func counts(ok, failed int64) openloop.Counts {
	c := openloop.Counts{
		Scheduled: ok + failed, Started: ok + failed, Finished: ok + failed, Answered: ok, Sent: ok + failed,
		Outcomes: map[string]int64{"ok": ok}, Statuses: map[int]int64{200: ok},
	}
	if failed > 0 {
		c.Outcomes["cut"] = failed
	}
	return c
}

var manifest = trial.Manifest{
	Version: "v1", Revision: "0123456789abcdef", Command: []string{"loadtest", "run", "<rate>"},
	Machine: coldstart.Machine{CPU: "A CPU & more", Cores: 2, Kernel: "6.1", Go: "go1.26"},
}

// leaveRun has an origin as well.
func leaveRun(t *testing.T, dir string, l load) {
	t.Helper()
	l.leave(t, dir)
	require.NoError(t, Origin{Schema: RunSchema, Scenario: "rate", URL: "http://127.0.0.1:8080/", Protocol: "keep-alive", Manifest: manifest}.Save(dir))
}

// comparisons are kept: one is copied sooner than it is made.
var comparisons = map[time.Duration]fs.FS{}

// leaveComparison has seven trials, of which the fifth is rejected: the
// generator was late. Latencies are 1 µs to 1 ms directly, and routed later
// by so much, and a tenth of a millisecond for each trial.
func leaveComparison(t *testing.T, dir string, later time.Duration) {
	t.Helper()
	if comparisons[later] == nil {
		made := fstest.MapFS{}
		makeComparison(t, dir, later)
		require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, _ := filepath.Rel(dir, path)
			text, err := os.ReadFile(path)
			made[name] = &fstest.MapFile{Data: text, Mode: 0o644}
			return err
		}))
		comparisons[later] = made
		return
	}
	require.NoError(t, os.CopyFS(dir, comparisons[later]))
}

func makeComparison(t *testing.T, dir string, later time.Duration) {
	t.Helper()
	const trials = 7
	s := &trial.Summary{
		Began: noon, Ended: noon.Add(time.Minute), Manifest: manifest, Places: trial.Places{Known: true, Generator: []int{0}, Proxy: []int{1}},
		Config: trial.Plan{
			Direct: trial.Side{URL: "http://127.0.0.1:9000/"}, Routed: trial.Side{URL: "http://127.0.0.1:8080/"},
			Rate: perSecond, Warmup: 1, Duration: 2, Trials: trials - 1, Protocol: "keep-alive", Served: "http://127.0.0.1:9000/",
			Limits: trial.Limits{OwnLag: time.Millisecond, Generator: 0.85, Foreign: 0.15, Steal: 0.02, Drift: 1.5},
		},
	}
	for n := range trials {
		one := &trial.Trial{Number: n + 1, Order: [2]string{trial.Direct, trial.Routed}}
		if n%2 == 1 {
			one.Order = [2]string{trial.Routed, trial.Direct}
		}
		for position, name := range one.Order {
			l := load{began: noon.Add(time.Duration(2*n+position) * 4 * time.Second), seconds: 2, step: time.Microsecond}
			if name == trial.Routed {
				l.shift = later + time.Duration(n)*100*time.Microsecond
			}
			if n == 4 {
				l.lag = 3 * time.Millisecond
			}
			laneDir := trial.LaneDir(dir, n+1, name)
			l.leave(t, laneDir)
			report, err := openloop.ReadReport(laneDir)
			require.NoError(t, err)
			run := &trial.Run{Report: report, Served: 3 * perSecond, WatchedMicroseconds: 20 + float64(n), Machine: trial.Reading{Foreign: 0.05}}
			if name == trial.Direct {
				one.Direct = run
			} else {
				one.Routed = run
			}
		}
		s.Trials = append(s.Trials, one)
	}
	again, err := s.Recomputed(dir)
	require.NoError(t, err)
	require.NoError(t, again.Save(dir))
}

// leaveColdStarts has n of them, of 600 ms to the app's listen() and 10 ms
// and more that Rouse adds.
func leaveColdStarts(t *testing.T, dir string, n int) {
	t.Helper()
	s := &coldstart.Summary{Schema: coldstart.Schema, At: noon, Version: "v1", Workload: "wiki", URL: "http://127.0.0.1:8080/", Bare: &coldstart.BareStat{}}
	for i := range n {
		s.Trials = append(s.Trials, coldstart.Trial{
			N: i + 1, Total: 610 + float64(i), App: 600, Added: 10 + float64(i), AfterListen: 6,
			Phases: []coldstart.Span{{Name: "arrive", MS: 1}, {Name: "wake", MS: 1}, {Name: "queue", MS: 2 + float64(i)}, {Name: "start", MS: 590}, {Name: "probe", MS: 13}, {Name: "ready", MS: 1}, {Name: "answer", MS: 2}},
			Bare:   &coldstart.Bare{Total: 605, App: 602, Call: 590, AfterListen: 3},
		})
	}
	require.NoError(t, s.Recomputed().Save(dir))
}

func leaveBurst(t *testing.T, dir string) {
	t.Helper()
	result := &burst.Result{
		Requests: 50, Lost: 1, SendMS: 3, LastAfterReadyMS: 9, HeldBytes: 9216, IdleBytes: 30 << 20,
		Statuses: []burst.StatusTimes{{Status: 200, Count: 19, MinMS: 500, MedianMS: 510, P99MS: 530, MaxMS: 531}, {Status: 503, Count: 30, Retry: 30, MinMS: 0.2, MedianMS: 0.5, P99MS: 2, MaxMS: 3}},
	}
	require.NoError(t, result.Save(dir))
	require.NoError(t, Origin{Schema: BurstSchema, URL: "http://127.0.0.1:8080/", Problem: "1 of 50 requests had no answer", Manifest: manifest}.Save(dir))
}

// in makes a directory.
func in(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}
