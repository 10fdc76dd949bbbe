//go:build linux

package openloop

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// Files are what a run leaves in a directory: intervals.hlog and
// intervals.csv while it goes on, so that a run that is killed leaves what it
// had; result.json and a .hgrm of each latency at its end.
type Files struct {
	dir     string
	file    *os.File
	log     *latency.Log
	counts  *os.File
	seconds *csv.Writer
	err     error // the first of Interval
}

// Tags of intervals.hlog.
const (
	TagIntended = "intended"
	TagService  = "service"
)

// LogName is the file of intervals.
const LogName = "intervals.hlog"

// NewFiles makes the directory if need be.
func NewFiles(dir string) (*Files, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, LogName))
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	counts, err := os.Create(filepath.Join(dir, SecondsName))
	if err != nil {
		return nil, fmt.Errorf("results: %w", errors.Join(err, file.Close()))
	}
	seconds := csv.NewWriter(counts)
	return &Files{dir: dir, file: file, counts: counts, seconds: seconds, err: seconds.Write(secondsHead)}, nil
}

// Interval adds one to the log. An error is told by Close.
func (f *Files) Interval(i Interval) {
	if f.err == nil {
		f.err = f.interval(i)
	}
}

func (f *Files) interval(i Interval) (err error) {
	err = f.seconds.Write(i.row())
	f.seconds.Flush()
	if err = errors.Join(err, f.seconds.Error()); err != nil {
		return err
	}
	if f.log == nil {
		if f.log, err = latency.NewLog(f.file, i.Began, "latencies in nanoseconds, of requests due after the warm-up"); err != nil {
			return err
		}
	}
	if i.Intended.Count() == 0 {
		return nil
	}
	start, end := i.Began.Add(i.Start), i.Began.Add(i.End)
	if err := f.log.Write(TagIntended, start, end, i.Intended); err != nil {
		return err
	}
	return f.log.Write(TagService, start, end, i.Service)
}

// Close writes the result; nil if there is none.
func (f *Files) Close(r *Result) error {
	err := errors.Join(f.err, f.file.Close(), f.counts.Close())
	if r == nil {
		return err
	}
	encoded, jsonErr := json.MarshalIndent(r.Report(), "", "  ")
	err = errors.Join(err, jsonErr, os.WriteFile(filepath.Join(f.dir, "result.json"), append(encoded, '\n'), 0o644))
	for name, h := range map[string]*latency.Histogram{
		"intended": r.Times.Intended, "service": r.Times.Service, "send_lag": r.Times.SendLag,
		"own_lag": r.Times.OwnLag, "added": r.Times.Added,
	} {
		if h.Count() > 0 {
			err = errors.Join(err, WriteTable(filepath.Join(f.dir, name+".hgrm"), h))
		}
	}
	return err
}

// WriteTable writes a histogram into a .hgrm file.
func WriteTable(path string, h *latency.Histogram) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write histogram: %w", err)
	}
	return errors.Join(h.WriteTable(file), file.Close())
}
