//go:build linux

package report

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// edit replaces text in a file, which must hold it.
func edit(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Contains(text, []byte(old)), "%s has no %s", path, old)
	require.NoError(t, os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(with), 1), 0o600))
}

// dropLine removes a line from the end of a file.
func dropLine(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := bytes.SplitAfter(bytes.TrimSpace(text), []byte("\n"))
	require.NoError(t, os.WriteFile(path, bytes.Join(lines[:len(lines)-1], nil), 0o600))
}

// Each figure that is made better than its files are is found.
func TestWhatWasChangedInARunIsFound(t *testing.T) {
	for file, change := range map[string]func(path string){
		"result.json:p99":     func(p string) { edit(t, p, `"p99": 0.99`, `"p99": 0.89`) },
		"result.json:count":   func(p string) { edit(t, p, `"scheduled": 2000`, `"scheduled": 2001`) },
		"result.json:rate":    func(p string) { edit(t, p, `"rate": 1000`, `"rate": 1001`) },
		"result.json:failure": func(p string) { edit(t, p, `"conserved": true`, `"conserved": false`) },
		"intervals.hlog":      func(p string) { dropLine(t, p) },
		"intended.hgrm":       func(p string) { edit(t, p, "#[Max     =        1.000", "#[Max     =        0.900") },
		"send_lag.hgrm":       func(p string) { require.NoError(t, os.Remove(p)) },
		"service.hgrm":        func(p string) { edit(t, p, "#[Mean    =        0.2", "#[Mean    =        0.1") },
	} {
		dir := in(t, "run")
		leaveRun(t, dir, load{began: noon, seconds: 2, step: time.Microsecond})
		check, err := Verify(dir)
		require.NoError(t, err)
		require.NoError(t, check.Err())
		name, _, _ := bytes.Cut([]byte(file), []byte(":"))
		change(filepath.Join(dir, string(name)))
		check, err = Verify(dir)
		require.NoError(t, err)
		assert.Error(t, check.Err(), file)
		verdict, err := Write(dir)
		require.NoError(t, err)
		assert.False(t, verdict.Valid(), file)
	}
}

func TestWhatWasChangedInAComparisonIsFound(t *testing.T) {
	dir := in(t, "compare")
	leaveComparison(t, dir, time.Millisecond)
	check, err := Verify(dir)
	require.NoError(t, err)
	require.NoError(t, check.Err())
	at := func(name string) string { return filepath.Join(dir, name) }
	edit(t, at("summary.json"), `"accepted": 6`, `"accepted": 7`)
	edit(t, at("summary.json"), `"routed: own lag p99 3.000 ms"`, `"routed: nothing"`)
	edit(t, at("trials.csv"), "1,2,routed,true", "1,2,routed,false")
	edit(t, at("direct.hgrm"), "#[Max     =        1.000", "#[Max     =        0.900")
	require.NoError(t, os.Remove(at("routed.hgrm")))
	dropLine(t, at("trials/03-routed/intervals.hlog"))
	dropLine(t, at("trials/03-routed/intervals.hlog"))
	edit(t, at("trials/04-direct/result.json"), `"p50": 0.5`, `"p50": 0.4`)
	require.NoError(t, os.Remove(at("trials/05-direct/own_lag.hgrm")))
	edit(t, at("trials/06-direct/result.json"), `"dials_measured": 0`, `"dials_measured": 3`)

	check, err = Verify(dir)
	require.NoError(t, err)
	found := map[string]bool{}
	for _, d := range check.Disagreements {
		found[d.File+" "+d.Figure] = true
	}
	for _, place := range []string{
		"summary.json accepted", "summary.json trials[4].rejected[1]", "summary.json trials[5].rejected", "trials.csv accepted of row 3",
		"direct.hgrm max", "routed.hgrm ", "trials/03-routed/result.json intended_ms.count", "summary.json trials[2].routed.report.rate",
		"trials/04-direct/result.json intended_ms.p50", "trials/05-direct/own_lag.hgrm count", "summary.json trials[5].direct.report.dials_measured",
	} {
		assert.True(t, found[place], "%s is not among %v", place, found)
	}
	dropLine(t, at("trials.csv"))
	check, err = Verify(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, check.Err(), "trials.csv: 14 rows, not 15 as in the summary")
}

func TestWhatWasChangedInColdStartsIsFound(t *testing.T) {
	dir := in(t, "cold")
	leaveColdStarts(t, dir, 3)
	edit(t, filepath.Join(dir, "summary.json"), `"added_ms": 12`, `"added_ms": 2`)
	check, err := Verify(dir)
	require.NoError(t, err)
	assert.ErrorContains(t, check.Err(), "summary.json says trials[2].added_ms = 2; its files come to 12")
}

func TestFiguresAreComparedByTheirJSON(t *testing.T) {
	type figures struct {
		A float64
		B []int
		C map[string]string
	}
	one := figures{0.1 + 0.2, []int{1, 2}, map[string]string{"x": "y"}}
	var same Check
	same.same("f", one, figures{0.3, []int{1, 2}, map[string]string{"x": "y"}})
	require.NoError(t, same.Err())
	assert.Equal(t, 4, same.Figures)
	var other Check
	other.same("f", one, figures{0.31, []int{1}, map[string]string{"x": "z", "w": ""}})
	var places []string
	for _, d := range other.Disagreements {
		places = append(places, d.Figure)
	}
	assert.Equal(t, []string{"A", "B", "C.w", "C.x"}, places)
	var bounds Check
	bounds.add(other, "sub")
	bounds.unreadable("g", os.ErrNotExist)
	assert.ErrorContains(t, bounds.Err(), "sub/f says B = [1,2]; its files come to [1]")
	assert.ErrorContains(t, bounds.Err(), "g: file does not exist")
}
