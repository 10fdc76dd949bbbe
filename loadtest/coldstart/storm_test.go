package coldstart_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// several has a fakeRouse for each name, told apart by host and by name.
func several(t *testing.T, names ...string) (cfg coldstart.StormConfig, fakes map[string]*fakeRouse) {
	t.Helper()
	fakes = map[string]*fakeRouse{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimSuffix(r.Host, ".localhost")
		if rest, found := strings.CutPrefix(r.URL.Path, "/api/v1/workloads/"); found {
			var verb string
			name, verb, _ = strings.Cut(rest, "/")
			r.URL.Path = strings.TrimSuffix("/api/v1/workloads/hello/"+verb, "/")
		} else if r.URL.Path == "/api/v1/wakes" {
			name = r.URL.Query().Get("workload")
		}
		fakes[name].ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	cfg.URL, cfg.Admin, cfg.Timeout = server.URL, server.URL, 10*time.Second
	for _, name := range names {
		fakes[name] = &fakeRouse{phase: "ready"}
		cfg.Targets = append(cfg.Targets, coldstart.StormTarget{Workload: name, Host: name + ".localhost"})
	}
	return cfg, fakes
}

func TestAStormWakesAllAtOnceAndTakesTurnsWithBareStarts(t *testing.T) {
	cfg, fakes := several(t, "a", "b", "c")
	bare := &order{rouse: fakes["a"]}
	cfg.Rounds, cfg.Bare = 3, []coldstart.Starter{bare, bare}
	storm, err := coldstart.RunStorm(t.Context(), cfg)
	require.NoError(t, err)
	assert.Zero(t, storm.Failed)
	assert.Equal(t, 9, storm.Each.N)
	assert.Equal(t, []int{1, 1, 1, 1, 3, 3}, bare.log, "every second round begins with the bare starts")
	assert.Equal(t, 3, storm.Difference.N)
	assert.InDelta(t, 1000, storm.BareLast.Median, 200)
	for name, fake := range fakes {
		assert.Len(t, fake.wakes, 3, name)
	}
	for _, round := range storm.Rounds {
		assert.Positive(t, round.First)
		assert.GreaterOrEqual(t, round.Last, round.First)
	}
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, storm.Save(dir))
	table, err := os.ReadFile(filepath.Join(dir, "table.md"))
	require.NoError(t, err)
	assert.Contains(t, string(table), "| ms, 3 at once, 3 rounds, 0 failed |")
	var text strings.Builder
	require.NoError(t, storm.Text(&text))
	assert.Contains(t, text.String(), "bare: last answer")
}

func TestOneThatFailsInAStormIsCountedAndTheOthersHaveTheirTimes(t *testing.T) {
	cfg, fakes := several(t, "a", "b")
	fakes["b"].warm = true
	cfg.Rounds = 1
	storm, err := coldstart.RunStorm(t.Context(), cfg)
	require.NoError(t, err)
	assert.Equal(t, 1, storm.Failed)
	assert.Equal(t, 1, storm.Each.N)
	assert.Contains(t, storm.Rounds[0].Trials[1].Error, "not a cold start")
	assert.Zero(t, storm.Difference.N)
	cfg.Bare = []coldstart.Starter{&order{rouse: fakes["a"], fails: true}}
	_, err = coldstart.RunStorm(t.Context(), cfg)
	require.ErrorContains(t, err, "no such container")
	cfg.Targets = nil
	_, err = coldstart.RunStorm(t.Context(), cfg)
	require.ErrorContains(t, err, "want workloads")
}

func TestTheWaterfallBeginsEachPhaseWhereTheOneBeforeEnds(t *testing.T) {
	summary := coldstart.Summary{Phases: []coldstart.SpanStat{
		{Name: "arrive", Stat: coldstart.Stat{N: 1, Median: 10}}, {Name: "start", Stat: coldstart.Stat{N: 1, Median: 80}},
		{Name: "answer", Stat: coldstart.Stat{N: 1, Median: 10}},
	}}
	var b strings.Builder
	require.NoError(t, summary.WriteWaterfall(&b))
	lines := strings.Split(b.String(), "\n")
	assert.Equal(t, "    arrive    10.00 ms  ######", lines[0])
	assert.Equal(t, "     start    80.00 ms        ################################################", lines[1])
	assert.Equal(t, "    answer    10.00 ms                                                        ######", lines[2])
}
