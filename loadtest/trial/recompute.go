//go:build linux

package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// Read reads the summary.json of a directory. Its runs are without their
// logs.
func Read(dir string) (*Summary, error) {
	var s Summary
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	for _, t := range s.Trials {
		if err == nil && (t.Direct == nil || t.Routed == nil || t.Direct.Report.Result == nil || t.Routed.Report.Result == nil) {
			err = fmt.Errorf("trial %d: a run is missing", t.Number)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the summary in %s: %w", dir, err)
	}
	return &s, nil
}

// Recomputed is the summary as the files of its runs below the directory have
// it: what a true summary is equal to. Taken from the summary itself is what
// no other file tells: the readings of the machine, what the server counted,
// and the limits.
func (s *Summary) Recomputed(dir string) (*Summary, error) {
	again := &Summary{Began: s.Began, Ended: s.Ended, Manifest: s.Manifest, Config: s.Config, Places: s.Places}
	for _, t := range s.Trials {
		fresh := &Trial{Number: t.Number, Order: t.Order}
		var errs [2]error
		fresh.Direct, errs[0] = t.Direct.again(LaneDir(dir, t.Number, Direct))
		fresh.Routed, errs[1] = t.Routed.again(LaneDir(dir, t.Number, Routed))
		if err := errors.Join(errs[:]...); err != nil {
			return nil, fmt.Errorf("trial %d: %w", t.Number, err)
		}
		fresh.Direct.fresh = s.Config.Protocol == openloop.Fresh.String()
		fresh.Routed.fresh = fresh.Direct.fresh
		fresh.judge(s.Config.Limits)
		again.Trials = append(again.Trials, fresh)
	}
	again.conclude(s.Config.Limits)
	return again, nil
}

func (r *Run) again(dir string) (*Run, error) {
	report, err := openloop.ReadReport(dir)
	if err != nil {
		return nil, err
	}
	fresh := &Run{Served: r.Served, Machine: r.Machine, WatchedMicroseconds: r.WatchedMicroseconds}
	merged, err := fresh.readLog(dir)
	if err != nil {
		return nil, err
	}
	fresh.Report = report.Recomputed(merged)
	return fresh, nil
}

// LaneDir is where a run of a comparison leaves its files.
func LaneDir(dir string, trial int, lane string) string {
	return filepath.Join(dir, "trials", fmt.Sprintf("%02d-%s", trial, lane))
}
