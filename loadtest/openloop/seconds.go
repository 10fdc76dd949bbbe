//go:build linux

package openloop

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// SecondsName is the file of what came in each second, failures included.
const SecondsName = "intervals.csv"

// A Second is an interval without its latencies: a row of the file.
type Second struct {
	// Start and End are in seconds from the start of the run.
	Start, End          float64
	WarmUp              bool
	Started, OK, Failed int64
	// Backlog and InFlight at its end.
	Backlog, InFlight int64
}

var secondsHead = []string{"start_s", "end_s", "warm_up", "started", "ok", "failed", "backlog", "in_flight"}

func (i Interval) row() []string {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	s := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	return []string{
		s(i.Start.Seconds()), s(i.End.Seconds()), strconv.FormatBool(i.WarmUp),
		n(i.Started), n(i.OK), n(i.Failed), n(i.Backlog), n(i.InFlight),
	}
}

// ReadSeconds reads the file.
func ReadSeconds(r io.Reader) ([]Second, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("read seconds: %w", err)
	}
	var seconds []Second
	for n, row := range rows {
		if n == 0 {
			continue // the head
		}
		second, err := parseSecond(row)
		if err != nil {
			return nil, fmt.Errorf("read seconds: row %d: %w", n+1, err)
		}
		seconds = append(seconds, second)
	}
	return seconds, nil
}

func parseSecond(row []string) (s Second, err error) {
	if len(row) < len(secondsHead) {
		return s, fmt.Errorf("%d columns of %d", len(row), len(secondsHead))
	}
	for i, field := range []*float64{&s.Start, &s.End} {
		if *field, err = strconv.ParseFloat(row[i], 64); err != nil {
			return s, err
		}
	}
	if s.WarmUp, err = strconv.ParseBool(row[2]); err != nil {
		return s, err
	}
	for i, field := range []*int64{&s.Started, &s.OK, &s.Failed, &s.Backlog, &s.InFlight} {
		if *field, err = strconv.ParseInt(row[3+i], 10, 64); err != nil {
			return s, err
		}
	}
	return s, nil
}
