package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/burst"
	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/mimic"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// TestMain makes this program, started again by compare, the process of a
// lane.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == laneCommand {
		main()
	}
	os.Exit(m.Run())
}

func workload(t *testing.T) (url string) {
	t.Helper()
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0"})
	go func() { _ = server.Run(t.Context()) }()
	return "http://" + server.Address()
}

func TestALoadEndsWellOnlyIfEachAnswerIsRight(t *testing.T) {
	url := workload(t)
	trace := filepath.Join(t.TempDir(), "trace.csv")
	require.NoError(t, os.WriteFile(trace, []byte("at_ms,target\n0,/status/204\n5,\n"), 0o600))
	out := filepath.Join(t.TempDir(), "out")
	cases := []struct {
		code int
		args string
	}{
		{0, "rate --rate 300 --duration 200ms --warmup 50ms --echo body --served " + url + " -o json --progress json --out " + out},
		{0, "rate --phases 100x50ms,100..500x100ms --poisson --body-size 99 --echo request --url " + url + "/echo"},
		{0, "bursts --size 20 --count 2 --every 50ms --protocol fresh --host other.example --method put"},
		{0, "replay --trace " + trace + " --protocol h2c --speed 2 --status 204 --url " + url + "/status/204 --timeout 1m"},
		{exitFailure, "rate --rate 100 --duration 50ms --status 404"},
		{exitFailure, "rate --rate 100 --duration 50ms --served http://127.0.0.1:1"},
		{exitUsage, ""},
		{exitUsage, "dance"},
		{exitUsage, "rate --rate 0"},
		{exitUsage, "rate --phases 1"},
		{exitUsage, "rate --echo loud"},
		{exitUsage, "rate --protocol spdy"},
		{exitUsage, "rate -o xml"},
		{exitUsage, "bursts --size 0"},
		{exitUsage, "replay --trace /nonexistent"},
		{exitUsage, "rate --url https://localhost"},
	}
	for _, c := range cases {
		args := strings.Fields("run " + c.args)
		if !strings.Contains(c.args, "--url") && strings.Contains(c.args, " ") {
			args = append(args, "--url", url)
		}
		assert.Equal(t, c.code, run(args), "%q", args)
	}
	assert.FileExists(t, filepath.Join(out, "result.json"))
	assert.FileExists(t, filepath.Join(out, "manifest.json"))
	assert.FileExists(t, filepath.Join(out, "report.html"))
	assert.Zero(t, run([]string{"verify", out}))
	require.NoError(t, os.Remove(filepath.Join(out, "intended.hgrm")))
	assert.Equal(t, exitFailure, run([]string{"verify", out}))
	assert.Equal(t, exitFailure, run([]string{"report", out}), "the page says so as well")
}

func TestCompareStartsItselfAgainAndLeavesItsFiles(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // of the lanes, where the race detector is on
	url := workload(t)
	dir := filepath.Join(t.TempDir(), "results")
	args := strings.Fields("compare --rate 100 --duration 100ms --warmup 100ms --trials 1 --limit-own-lag 1m --limit-generator 99 --limit-foreign 99" +
		" --limit-steal 99 --limit-drift 99 --unpinned --direct " + url + "/a --routed " + url + "/b --served " + url + " --out " + dir)
	require.Zero(t, run(args))
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var summary trial.Summary
	require.NoError(t, json.Unmarshal(text, &summary))
	assert.Equal(t, 1, summary.Accepted)
	assert.Equal(t, version, summary.Manifest.Version)
	page := filepath.Join(dir, "report.html")
	assert.FileExists(t, page)
	require.NoError(t, os.Remove(page))
	require.Zero(t, run([]string{"report", dir}))
	assert.FileExists(t, page)
	require.Zero(t, run([]string{"verify", filepath.Dir(dir)}), "a directory of results")

	assert.Equal(t, exitUsage, run([]string{"compare", "--direct", url}))
	assert.Equal(t, exitFailure, run([]string{"lane"}), "without a plan")
}

func TestABurstAndColdStartsLeaveAPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "burst")
	lost := errors.New("1 of 3 requests had no answer")
	require.ErrorIs(t, saveBurst(dir, "http://127.0.0.1/", &burst.Result{Requests: 3, Lost: 3}, lost), lost)
	text, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	assert.Contains(t, string(text), lost.Error())

	dir = filepath.Join(t.TempDir(), "cold")
	require.NoError(t, new(coldstart.Summary).Save(dir))
	require.NoError(t, saveColdstarts(dir))
	assert.FileExists(t, filepath.Join(dir, "report.html"))
	assert.Equal(t, exitFailure, run([]string{"report", dir}), "there is nothing in it")
}
