//go:build linux

package report

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// cells of a table's row, found by its heading.
func cells(t *testing.T, tables []table, caption, heading string) []string {
	t.Helper()
	for _, one := range tables {
		for _, r := range one.Rows {
			if strings.HasPrefix(one.Caption, caption) && r.Cells[0] == heading {
				return r.Cells[1:]
			}
		}
	}
	require.Fail(t, "no such row", "%s: %s", caption, heading)
	return nil
}

func tables(p part) (all []table) {
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			all = append(all, f.Tables...)
		}
	}
	return all
}

func values(cards []card) map[string]string {
	m := map[string]string{}
	for _, c := range cards {
		m[c.Label] = strings.TrimSpace(c.Value + " " + c.Note)
	}
	return m
}

func TestARunIsShownByItsNumbers(t *testing.T) {
	dir := in(t, "run")
	leaveRun(t, dir, load{began: noon, seconds: 3, step: 100 * time.Microsecond, failed: 0})
	page, err := compose(dir)
	require.NoError(t, err)
	p := page.Parts[0]
	assert.Equal(t, "Valid", page.Verdict.Word())
	assert.Contains(t, page.Verdict.For[0], "3\u202f000 requests")
	assert.Regexp(t, `^1\d\d figures were computed again`, page.Verdict.For[1])
	got := values(p.Cards)
	assert.Equal(t, "1\u202f000 right answers per second", got["Rate"])
	assert.Equal(t, "3\u202f000 of 3\u202f000 due", got["Right answers"])
	assert.Equal(t, "10 % of a core; own lag p99 0.000 ms", got["Generator"])
	// Of 1 to 1,000 tenths of a millisecond, in three digits.
	assert.Equal(t, []string{"50.00", "25.00", "25.00", "0.000"}, cells(t, tables(p), "Latency", "p50"))
	assert.Equal(t, []string{"99.02", "49.51", "49.51", "0.000"}, cells(t, tables(p), "Latency", "p99"))
	assert.Equal(t, []string{"1\u202f000", "-", "-", "0"}, cells(t, tables(p), "Second by second", "0.0"))
	assert.Equal(t, []string{"1\u202f000", "50.00", "99.02", "0"}, cells(t, tables(p), "Second by second", "3.0"))
	assert.Contains(t, p.Manifest, fact{"Revision", "0123456789abcdef"})
}

func TestWhatFailedMakesARunInvalidAndIsCounted(t *testing.T) {
	dir := in(t, "run")
	leaveRun(t, dir, load{began: noon, seconds: 3, step: time.Microsecond, failed: 7, lag: 2 * time.Millisecond})
	page, err := compose(dir)
	require.NoError(t, err)
	assert.Equal(t, "Not valid", page.Verdict.Word())
	assert.Equal(t, []string{"7 of 3007 requests failed: 7 cut, 0 unsent", "own lag p99 2.001 ms"}, page.Verdict.Against)
	assert.Equal(t, []string{"7"}, cells(t, tables(page.Parts[0]), "Requests that had no right answer", "cut"))
	assert.Equal(t, "7", cells(t, tables(page.Parts[0]), "Second by second", "3.0")[3])
}

func TestARunThatWasKilledIsShownAsFarAsItWent(t *testing.T) {
	dir := in(t, "run")
	load{began: noon, seconds: 2, step: time.Microsecond}.leave(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "result.json")))
	verdict, err := Write(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, verdict.Err(), "ended before it could write its result")
	text, err := os.ReadFile(filepath.Join(dir, Name))
	require.NoError(t, err)
	assert.Contains(t, string(text), "Second by second")
}

func TestResultsOfBeforeHaveNoCountOfFailures(t *testing.T) {
	dir := in(t, "run")
	load{began: noon, seconds: 2, step: time.Microsecond}.leave(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "intervals.csv")))
	page, err := compose(dir)
	require.NoError(t, err)
	assert.Equal(t, "Valid, with reservations", page.Verdict.Word(), "there is no manifest")
	assert.Len(t, page.Parts[0].Sections[1].Figures[0].Tables[0].Rows, 2)
	assert.Contains(t, page.Parts[0].Sections[1].Figures[0].Note, "without a count of failures")
}

func TestAComparisonIsShownByItsNumbers(t *testing.T) {
	dir := in(t, "compare")
	leaveComparison(t, dir, time.Millisecond)
	page, err := compose(dir)
	require.NoError(t, err)
	p := page.Parts[0]
	assert.Equal(t, "Valid", page.Verdict.Word(), page.Verdict)
	assert.Contains(t, page.Verdict.For[0], "6 of 7 trials were accepted, and every one of their 24\u202f000 requests")
	got := values(p.Cards)
	// Later by 1.0, 1.1, 1.2, 1.3, 1.5 and 1.6 ms: the median is 1.25, and
	// of six the interval goes from the least to the most.
	assert.Equal(t, "+1.250 ms +1.000 to +1.601", got["Added at p50"])
	assert.Equal(t, "6 of 7 made", got["Trials accepted"])
	assert.Equal(t, "22.5 µs 20.0 to 26.0", got["Proxy's CPU a request"])
	all := tables(p)
	assert.Equal(t, []string{"0.500", "1.751", "+1.250", "+1.000 to +1.601"}, cells(t, all, "Medians over 6 trials", "p50"))
	assert.Equal(t, []string{"0.500", "1.751"}, cells(t, all, "Intended latency", "p50"))
	assert.Equal(t, []string{"direct: own lag p99 3.000 ms; routed: own lag p99 3.000 ms"}, cells(t, all, "Why trials were rejected", "5"))
	assert.Equal(t, []string{"routed", "1.601", "2.050", "2.091", "2.101", "2\u202f000", "0", "0.000", "0.15", "0.050", "0.000", "accepted"},
		cells(t, all, "Every run", "2"), "the second trial had the routed run first")

	crosses, dots := 0, 0
	for _, m := range page.Parts[0].Sections[2].Figures[0].Drawings[0].Plot.Marks {
		if strings.HasPrefix(m.Class, "cross") {
			crosses++
			assert.Contains(t, m.Note, "trial 5")
			assert.Contains(t, m.Note, "rejected: direct: own lag")
		}
		if m.Class == "dot c1" || m.Class == "dot c2" {
			dots++
		}
	}
	assert.Equal(t, 2*3, crosses, "two runs at three quantiles")
	assert.Equal(t, 6*2*3, dots)
}

func TestTooFewAcceptedTrialsAreLoudlyInvalid(t *testing.T) {
	dir := in(t, "compare")
	leaveComparison(t, dir, time.Millisecond)
	s, err := trial.Read(dir)
	require.NoError(t, err)
	s.Config.Trials = 7
	s.Places.Known, s.Trials[0].Direct.Served, s.Manifest.Revision = false, -1, "abc+dirty"
	again, err := s.Recomputed(dir)
	require.NoError(t, err)
	require.NoError(t, again.Save(dir))
	verdict, err := Write(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"accepted: 6 trials of 7 wanted; 7 were made"}, verdict.Against)
	assert.Len(t, verdict.Reservations, 3)
	text, err := os.ReadFile(filepath.Join(dir, Name))
	require.NoError(t, err)
	body := string(text[strings.Index(string(text), "<main>"):])
	assert.Less(t, strings.Index(body, "Not valid"), strings.Index(body, "Added at p50"), "the verdict comes before any figure")
}

func TestColdStartsAreShownByTheirNumbers(t *testing.T) {
	dir := in(t, "cold")
	leaveColdStarts(t, dir, 21)
	page, err := compose(dir)
	require.NoError(t, err)
	p := page.Parts[0]
	assert.Equal(t, "Valid", page.Verdict.Word(), page.Verdict)
	got := values(p.Cards)
	assert.Equal(t, "20.00 ms p95 29.00, worst 30.00", got["Added by Rouse, median"])
	assert.Equal(t, "+15.00 ms median of the pairs", got["More than a bare start"])
	all := tables(p)
	assert.Equal(t, []string{"12.00", "21.00", "22.00"}, cells(t, all, "Phases", "queue"))
	assert.Equal(t, []string{"620.0", "629.0", "630.0"}, cells(t, all, "Phases", "total"))
	assert.Equal(t, []string{"611.0", "600.0", "11.00", "6.000", "605.0", "ok"}, cells(t, all, "Every cold start", "2"))
	assert.Contains(t, p.Sections[0].Figures[0].Title, "Trial 11: 620.0 ms")
}

func TestAFailedColdStartMakesAllInvalid(t *testing.T) {
	dir := in(t, "cold")
	s := &coldstart.Summary{Trials: []coldstart.Trial{{N: 1, Error: "answered 502"}}}
	require.NoError(t, s.Recomputed().Save(dir))
	page, err := compose(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"1 of 1 trials failed", "trial 1: answered 502", "there is no cold start in it"}, page.Verdict.Against)
}

// From the start call to listen(), a cold start is the app's own, whatever
// phase Rouse is in.
func TestAPhaseIsCutWhereTheAppListens(t *testing.T) {
	one := coldstart.Trial{Total: 120, App: 100, Phases: []coldstart.Span{{Name: "queue", MS: 5}, {Name: "start", MS: 10}, {Name: "probe", MS: 95}, {Name: "answer", MS: 10}}}
	assert.Equal(t, []piece{{"c6", 0, 5}}, pieces(one, one.Phases[0], 0))
	assert.Equal(t, []piece{{"app", 5, 10}}, pieces(one, one.Phases[1], 5))
	assert.Equal(t, []piece{{"app", 15, 90}, {"c3", 105, 5}}, pieces(one, one.Phases[2], 15))
	assert.Equal(t, []piece{{"c2", 110, 10}}, pieces(one, one.Phases[3], 110))
}

func TestABurstIsShownByItsNumbers(t *testing.T) {
	dir := in(t, "burst")
	leaveBurst(t, dir)
	page, err := compose(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"the command failed: 1 of 50 requests had no answer", "1 of 50 requests had no answer"}, page.Verdict.Against)
	assert.Equal(t, "49 of 50", values(page.Parts[0].Cards)["Answered"])
	assert.Equal(t, "9.0 KiB beside 30.0 MiB idle", values(page.Parts[0].Cards)["A held request"])
	assert.Equal(t, []string{"30", "30", "0.200", "0.500", "2.000", "3.000"}, cells(t, tables(page.Parts[0]), "Answers by status", "503"))
}

func TestSeveralResultsAreOnePageSideBySide(t *testing.T) {
	dir := in(t, "bench")
	leaveComparison(t, filepath.Join(dir, "nginx"), time.Millisecond)
	leaveComparison(t, filepath.Join(dir, "rouse"), 2*time.Millisecond)
	leaveBurst(t, filepath.Join(dir, "storm"))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "unknown"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "unknown", "summary.json"), []byte(`{"schema":"loadtest/dance/9"}`), 0o600))
	page, err := compose(dir)
	require.NoError(t, err)
	require.Len(t, page.Parts, 4)
	assert.Contains(t, page.Verdict.Reservations[0], "loadtest/dance/9")
	assert.Equal(t, "Not valid", page.Verdict.Word())
	assert.Contains(t, page.Verdict.Against[0], "storm: ")
	at := page.Overview[0].Figures[0].Tables
	assert.Equal(t, []string{"1000", "0.500", "1.751", "+1.250", "+1.000 to +1.601"}, cells(t, at, "Added at p50", "nginx"))
	assert.Equal(t, []string{"1000", "0.500", "2.751", "+2.251", "+2.000 to +2.600"}, cells(t, at, "Added at p50", "rouse"))
	check, err := Verify(dir)
	require.NoError(t, err)
	require.NoError(t, check.Err())
	assert.Greater(t, check.Figures, 1000)
}

func TestADirectoryWithoutAResultIsAnError(t *testing.T) {
	for name, text := range map[string]string{"summary.json": `{"schema":"loadtest/dance/9"}`, "result.json": "{", "manifest.json": ""} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		_, err := Write(dir)
		require.Error(t, err, name)
		assert.NoFileExists(t, filepath.Join(dir, Name))
	}
	_, err := Verify(t.TempDir())
	assert.ErrorIs(t, err, errNone)
	_, err = Verify(filepath.Join(t.TempDir(), "nowhere"))
	assert.Error(t, err)
}

func TestScalesPutValuesWhereTheyBelong(t *testing.T) {
	x, most := nines(1000, 0, 300)
	assert.InDelta(t, 3, most, 1e-9)
	for q, want := range map[float64]float64{0: 0, 0.9: 100, 0.99: 200, 0.999: 300, 1: 300, 0.5: 30.103} {
		assert.InDelta(t, want, x.at(q), 0.01, "%g", q)
	}
	y := linear(-0.3, 1.9, 100, 0, 5)
	assert.InDelta(t, 80, y.at(0), 1e-9, "from -0.5 to 2")
	assert.Equal(t, "\u22120.5", y.ticks[0].label)
	assert.Equal(t, "2", y.ticks[len(y.ticks)-1].label)
	log := logarithmic(0.15, 90, 0, 300)
	assert.InDelta(t, 100, log.at(1), 0.01, "from 0.1 to 100")
	assert.InDelta(t, 300, log.at(1e6), 0.01, "what is beyond is at the end")
	assert.Less(t, len(linear(5, 5, 0, 1, 4).ticks), 12)
	assert.Less(t, len(logarithmic(0, 0.001, 0, 1).ticks), 50)
	for v, want := range map[float64]string{0.12345: "0.123", 12.345: "12.35", 1234.5: "1\u202f234.5", -1234.5: "-1\u202f234.5", math.NaN(): "-"} {
		assert.Equal(t, want, ms(v))
	}
	assert.Equal(t, "\u22120.500", signed(-0.5))
	assert.Equal(t, "12\u202f345\u202f678", whole(12_345_678))
}

// A line of a plot goes through the quantiles of its histogram.
func TestACurveIsDrawnThroughItsQuantiles(t *testing.T) {
	c := curve{name: "it", class: "c1 line", count: 1000, at: func(q float64) trial.Estimate { return exact(1 + q) }}
	p := newPlot(wideWidth, plotHeight)
	c.points = c.sample()
	drawPercentiles(p, []curve{c})
	line := p.Marks[len(p.Marks)-1]
	x, _ := nines(1000, p.left, p.right)
	y := linear(0, 2, p.bottom, p.top, 5)
	points := strings.FieldsFunc(line.D, func(r rune) bool { return r == 'M' || r == 'L' })
	require.Len(t, points, steps+1)
	assert.Equal(t, at(x.at(0), y.at(1)), points[0])
	assert.Equal(t, at(x.at(0.9), y.at(1.9)), points[steps/3])
	assert.Equal(t, at(x.at(0.999), y.at(1.999)), points[steps])
}

func at(x, y float64) string {
	var s stroke
	s.to(x, y)
	return strings.TrimPrefix(s.String(), "M")
}
