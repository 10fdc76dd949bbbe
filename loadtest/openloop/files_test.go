//go:build linux

package openloop_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

func TestTheFilesOfARunHoldAllOfIt(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	files, err := openloop.NewFiles(dir)
	require.NoError(t, err)
	cfg := plainLoad(plain(t), 500, 700)
	cfg.Warmup = 400 * time.Millisecond
	ok, last := int64(0), 0
	cfg.Every = func(i openloop.Interval) {
		files.Interval(i)
		ok += i.OK
		if i.Last {
			last++
		}
		assert.Positive(t, i.Progress().AtSeconds)
	}
	r := run(t, cfg)
	require.NoError(t, files.Close(r))
	assert.Equal(t, int64(700), ok)
	assert.Equal(t, 1, last)

	log, err := os.Open(filepath.Join(dir, openloop.LogName))
	require.NoError(t, err)
	defer log.Close()
	merged, err := latency.MergeLog(log)
	require.NoError(t, err)
	assert.Equal(t, r.Times.Intended.Summary(), merged[openloop.TagIntended].Summary())
	assert.Equal(t, r.Times.Service.Summary(), merged[openloop.TagService].Summary())

	var report struct {
		Conserved bool            `json:"conserved"`
		Rate      float64         `json:"rate"`
		Measured  openloop.Counts `json:"measured"`
		Intended  latency.Summary `json:"intended_ms"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &report))
	assert.True(t, report.Conserved)
	assert.InDelta(t, 500, report.Rate, 0.01)
	assert.Equal(t, r.Measured, report.Measured)
	assert.Equal(t, r.Times.Intended.Summary(), report.Intended)
	for _, name := range []string{"intended.hgrm", "service.hgrm", "send_lag.hgrm", "own_lag.hgrm"} {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	assert.NoFileExists(t, filepath.Join(dir, "added.hgrm"))
	checkSeconds(t, dir, r)

	read, err := openloop.ReadReport(dir)
	require.NoError(t, err)
	assert.Equal(t, read, read.Recomputed(merged), "a true report is what its log comes to")
	delete(merged, openloop.TagIntended)
	again := read.Recomputed(merged)
	assert.Zero(t, again.Intended)
	assert.Zero(t, again.Rate)
	assert.False(t, again.Conserved, "of no right answers, the requests that were due have not ended")
	assert.NotEqual(t, read.Measured, again.Measured)
	assert.Equal(t, r.Measured, read.Measured, "it changes nothing of the report itself")
	_, err = openloop.ReadReport(t.TempDir())
	assert.ErrorContains(t, err, "no such file")
}

func checkSeconds(t *testing.T, dir string, r *openloop.Result) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, openloop.SecondsName))
	require.NoError(t, err)
	defer file.Close()
	seconds, err := openloop.ReadSeconds(file)
	require.NoError(t, err)
	ok, started, end := int64(0), int64(0), 0.0
	for _, s := range seconds {
		assert.InDelta(t, end, s.Start, 0.0011, "one begins where the other ends")
		ok, started, end = ok+s.OK, started+s.Started, s.End
	}
	assert.True(t, seconds[0].WarmUp)
	assert.Equal(t, r.WarmUp.Outcomes["ok"]+r.Measured.Outcomes["ok"], ok)
	assert.Equal(t, r.WarmUp.Started+r.Measured.Started, started)
}

func TestDamagedSecondsAreAnError(t *testing.T) {
	const head = "start_s,end_s,warm_up,started,ok,failed,backlog,in_flight\n"
	_, err := openloop.ReadSeconds(strings.NewReader(head + "0,1,true,1,1,0,0,0\n"))
	require.NoError(t, err)
	for _, damaged := range []string{"x,1,true,1,1,0,0,0", "0,1,maybe,1,1,0,0,0", "0,1,true,1,1,0,0,x", "0,1", "\""} {
		_, err := openloop.ReadSeconds(strings.NewReader(head + damaged))
		assert.Error(t, err, "%q", damaged)
	}
}

func TestTheTextOfAReportSaysWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	cfg := plainLoad(plain(t), 500, 50)
	cfg.Targets[0].Expect.Status = 201
	var text strings.Builder
	require.NoError(t, run(t, cfg).Report().Text(&text))
	assert.Contains(t, text.String(), "50 wrong_status")
	assert.Contains(t, text.String(), "leave out 50 requests that failed")
}
