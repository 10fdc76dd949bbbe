package schedule

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// A Trace is a schedule of arrivals that were written down.
type Trace struct {
	arrivals []Arrival
	targets  []string
}

// ReadTrace reads CSV with a header. The column at_ms is when a request is
// due, in milliseconds from the start, with a fraction, in order; the column
// target, if there is one, what it asks for, in words of the caller. Speed
// divides the times: 2 replays twice as fast.
func ReadTrace(r io.Reader, speed float64) (*Trace, error) {
	if !(speed > 0) {
		return nil, fmt.Errorf("read trace: speed %v: want more than 0", speed)
	}
	rows := csv.NewReader(r)
	rows.ReuseRecord = true
	header, err := rows.Read()
	if err != nil {
		return nil, fmt.Errorf("read trace: header: %w", err)
	}
	at, target := slices.Index(header, "at_ms"), slices.Index(header, "target")
	if at < 0 {
		return nil, errors.New("read trace: no column at_ms")
	}
	t := &Trace{}
	known := map[string]int{} // name -> its index
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err == nil {
			err = t.add(row, at, target, known, speed)
		}
		if err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("read trace: line %d: %w", line, err)
		}
	}
}

func (t *Trace) add(row []string, at, target int, known map[string]int, speed float64) error {
	ms, err := strconv.ParseFloat(row[at], 64)
	if err != nil {
		return err
	}
	ns := math.Round(ms / speed * float64(time.Millisecond))
	if !(ns >= 0 && ns < float64(math.MaxInt64)) {
		return fmt.Errorf("at_ms %s: out of range", row[at])
	}
	arrival := Arrival{At: time.Duration(ns)}
	if len(t.arrivals) > 0 && arrival.At < t.Length() {
		return fmt.Errorf("at_ms %s: earlier than the line before", row[at])
	}
	name := ""
	if target >= 0 {
		name = row[target]
	}
	index, seen := known[name]
	if !seen {
		index = len(t.targets)
		known[name] = index
		t.targets = append(t.targets, name)
	}
	arrival.Target = index
	t.arrivals = append(t.arrivals, arrival)
	return nil
}

// Targets are the names in the column target, in the order of their first
// use: Arrival.Target is an index into them. Without the column it is one
// empty name.
func (t *Trace) Targets() []string { return t.targets }

// Length is the time of the last arrival.
func (t *Trace) Length() time.Duration {
	if len(t.arrivals) == 0 {
		return 0
	}
	return t.arrivals[len(t.arrivals)-1].At
}

// Arrivals gives what was read.
func (t *Trace) Arrivals() Next {
	rest := t.arrivals
	return func() (Arrival, bool) {
		if len(rest) == 0 {
			return Arrival{}, false
		}
		first := rest[0]
		rest = rest[1:]
		return first, true
	}
}
