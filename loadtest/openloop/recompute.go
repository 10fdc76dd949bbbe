//go:build linux

package openloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// ReadReport reads result.json of a directory.
func ReadReport(dir string) (Report, error) {
	var r Report
	text, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && r.Result == nil {
		err = errors.New("it holds no result")
	}
	if err != nil {
		return Report{}, fmt.Errorf("read the result in %s: %w", dir, err)
	}
	return r, nil
}

// Recomputed is the report as its counts and the log of its run have it:
// what a true report is equal to. The log, by tag, may lack what was empty.
func (r Report) Recomputed(log map[string]*latency.Histogram) Report {
	r.Intended, r.Service = fromLog(log[TagIntended], r.Intended), fromLog(log[TagService], r.Service)
	result := *r.Result
	result.WarmUp = result.WarmUp.recomputed(result.WarmUp.Outcomes[OK.String()])
	result.Measured = result.Measured.recomputed(r.Intended.Count)
	r.Result = &result
	r.Conserved = result.WarmUp.Conserved() && result.Measured.Conserved()
	r.Rate, r.CoreShare = 0, 0
	if r.WindowSeconds > 0 {
		r.Rate = float64(r.Intended.Count) / r.WindowSeconds
	}
	if r.ElapsedSeconds > 0 {
		r.CoreShare = r.CPUSeconds / r.ElapsedSeconds
	}
	return r
}

// fromLog takes over what a log does not tell.
func fromLog(h *latency.Histogram, said latency.Summary) latency.Summary {
	if h == nil {
		return latency.Summary{}
	}
	s := h.Summary()
	s.Overflow = said.Overflow
	return s
}

// recomputed sums up the outcomes, of which so many were right answers.
func (c Counts) recomputed(ok int64) Counts {
	sum := Counts{Scheduled: c.Scheduled, Outcomes: map[string]int64{}, Statuses: c.Statuses}
	for o := range outcomes {
		n := c.Outcomes[o.String()]
		if o == OK {
			n = ok
		}
		if n == 0 {
			continue
		}
		sum.Outcomes[o.String()] = n
		sum.Started += n
		if o != Unfinished {
			sum.Finished += n
		}
		if o.Answered() {
			sum.Answered += n
		}
		if o.Sent() {
			sum.Sent += n
		}
	}
	sum.Unsent = c.Scheduled - sum.Started
	return sum
}
