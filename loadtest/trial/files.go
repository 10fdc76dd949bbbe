//go:build linux

package trial

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
)

// Save writes summary.json, trials.csv, table.md for a document, and
// direct.hgrm and routed.hgrm of all accepted trials together. The runs have left their own files below
// trials/.
func (s *Summary) Save(dir string) error {
	encoded, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644)
	}
	if err = errors.Join(err, s.saveTrials(filepath.Join(dir, "trials.csv")), s.saveTable(filepath.Join(dir, "table.md"))); err != nil {
		return fmt.Errorf("save summary: %w", err)
	}
	merged := map[string]*latency.Histogram{Direct: latency.New(), Routed: latency.New()}
	for _, t := range s.accepted() {
		merged[Direct].Merge(t.Direct.intended)
		merged[Routed].Merge(t.Routed.intended)
	}
	for lane, h := range merged {
		if h.Count() > 0 {
			err = errors.Join(err, openloop.WriteTable(filepath.Join(dir, lane+".hgrm"), h))
		}
	}
	return err
}

func (s *Summary) saveTable(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(WriteTable(file, []*Summary{s}), file.Close())
}

var columns = []string{
	"trial", "position", "lane", "accepted", "reasons", "scheduled", "ok", "failed", "served",
	"intended_p50_ms", "intended_p90_ms", "intended_p95_ms", "intended_p99_ms", "intended_p99_9_ms", "intended_max_ms",
	"service_p50_ms", "service_p95_ms", "send_lag_p99_ms", "own_lag_p50_ms", "own_lag_p99_ms",
	"generator_cores", "foreign_cores", "steal_cores", "cpu_pressure", "cpu_us_per_request",
	"dials_before", "dials_warm_up", "dials_measured", "peak_backlog",
}

func (s *Summary) saveTrials(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(s.Rows()), file.Close())
}

// Rows are those of trials.csv, its head first.
func (s *Summary) Rows() [][]string {
	rows := [][]string{columns}
	for _, t := range s.Trials {
		for position, lane := range t.Order {
			rows = append(rows, t.row(position+1, lane))
		}
	}
	return rows
}

func (t *Trial) row(position int, lane string) []string {
	run := t.Direct
	if lane == Routed {
		run = t.Routed
	}
	f := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	i := func(v int64) string { return strconv.FormatInt(v, 10) }
	r, m := run.Report, run.Machine
	return []string{
		strconv.Itoa(t.Number), strconv.Itoa(position), lane, strconv.FormatBool(t.Accepted()), strings.Join(t.Rejected, "; "),
		i(r.Measured.Scheduled), i(r.Measured.Outcomes[openloop.OK.String()]), i(r.Measured.Failed()), i(run.Served),
		f(r.Intended.P50), f(r.Intended.P90), f(r.Intended.P95), f(r.Intended.P99), f(r.Intended.P999), f(r.Intended.Max),
		f(r.Service.P50), f(r.Service.P95), f(r.SendLag.P99), f(r.OwnLag.P50), f(r.OwnLag.P99),
		f(r.CoreShare), f(m.Foreign), f(m.Steal), f(m.Waiting), f(run.WatchedMicroseconds),
		i(r.DialsBefore), i(r.DialsWarmUp), i(r.DialsMeasured), i(r.PeakBacklog),
	}
}
