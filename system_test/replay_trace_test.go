package system_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call is one request of a trace.
type call struct {
	at       time.Duration // since the trace began
	function int           // which workload it is for, from 1
	takes    time.Duration // how long its answer takes
}

// perToken turns the length of a model's answer into time.
const perToken = 20 * time.Millisecond

// llmTrace reads a trace of requests to one model.
func llmTrace(t *testing.T, file string) []call {
	t.Helper()
	return readTrace(t, file, func(row []int) call {
		return call{function: 1, takes: time.Duration(row[1]) * perToken}
	})
}

// functionsTrace reads the trace of many functions.
func functionsTrace(t *testing.T) []call {
	t.Helper()
	return readTrace(t, "functions.csv", func(row []int) call {
		return call{function: row[1], takes: time.Duration(row[2]) * time.Millisecond}
	})
}

func readTrace(t *testing.T, file string, read func(row []int) call) []call {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "traces", file))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	var calls []call
	var at time.Duration
	for _, line := range lines[1:] {
		row := make([]int, len(line))
		for i, field := range line {
			row[i], err = strconv.Atoi(field)
			require.NoError(t, err)
		}
		at += time.Duration(row[0]) * time.Millisecond
		c := read(row)
		c.at = at
		calls = append(calls, c)
	}
	return calls
}

// excerpt has the calls of a trace that begin and end between two moments,
// counted from the first of them.
func excerpt(calls []call, from, to time.Duration) []call {
	var part []call
	for _, c := range calls {
		if c.at >= from && c.at+c.takes < to {
			part = append(part, c)
		}
	}
	for i, first := 0, part[0].at; i < len(part); i++ {
		part[i].at -= first
	}
	return part
}

// hasten runs a trace faster, its answers too.
func hasten(calls []call, times int) []call {
	fast := make([]call, len(calls))
	for i, c := range calls {
		fast[i] = call{c.at / time.Duration(times), c.function, c.takes / time.Duration(times)}
	}
	return fast
}
