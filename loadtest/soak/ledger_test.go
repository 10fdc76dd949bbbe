//go:build linux

package soak

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func accountOf(t *testing.T, ledgers ...string) account {
	t.Helper()
	var paths []string
	for _, text := range ledgers {
		path := filepath.Join(t.TempDir(), "ledger")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		paths = append(paths, path)
	}
	a, err := readLedgers(append(paths, "/nowhere"))
	require.NoError(t, err)
	return a
}

func TestTheBooksBalanceOrSayWhatDoesNot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what           string
		ledgers        []string
		answered, lost int64
		sent, aborted  []uint64
		faults         []string
	}{
		{
			what:     "all well: two by number, one by count, one given up and seen, one not",
			ledgers:  []string{"start 1\nbegin 0a\nbegin 0b\nend 0b\nend 0a\nterm 0\n", "start 2\nbegin 0c\nend 0c\nbegin 0d\nend 0d\n"},
			answered: 3, sent: []uint64{10, 11}, aborted: []uint64{13, 14},
		},
		{
			what: "one was executed twice", ledgers: []string{"begin 0a\nend 0a\n", "begin 0a\nend 0a\n"},
			answered: 1, faults: []string{"1 requests came to a workload twice"},
		},
		{
			what: "an answer that no workload gave", ledgers: []string{"begin 0a\nend 0a\n"},
			answered: 2, sent: []uint64{10, 11},
			faults: []string{"1 requests had no right answer"},
		},
		{
			what: "counts differ", ledgers: []string{"begin 0a\nend 0a\n"},
			answered: 2, faults: []string{"2 answers, but 1 requests that were seen by a workload"},
		},
		{
			what: "one that nobody had sent, and one without an id", ledgers: []string{"begin 0a\nend 0a\nbegin 0b\nend 0b\nbegin \nend \n"},
			answered: 1, faults: []string{`2 requests came to a workload that nobody had sent [""]`, "1 answers, but 2 requests that were seen by a workload"},
		},
		{
			what: "a handler that hangs", ledgers: []string{"begin 0a\n"},
			answered: 1, faults: []string{"1 requests came to a handler that did not return"},
		},
		{
			what: "one is lost", ledgers: []string{"begin 0a\nend 0a\n"},
			answered: 1, lost: 1, faults: []string{"1 requests had no right answer"},
		},
	} {
		a := accountOf(t, c.ledgers...)
		books := a.balance(c.answered, c.lost, c.sent, c.aborted)
		assert.Equal(t, c.faults, books.faults(), c.what)
	}
}

func TestALedgerThatIsDamagedIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	require.NoError(t, os.WriteFile(path, []byte("start soon\n"), 0o600))
	_, err := readLedgers([]string{path})
	require.ErrorContains(t, err, path)
}

func TestAReportSaysAllThatWentWrong(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	r := Report{
		Loaded: began, Seconds: 100, Books: Books{Answered: 2, Seen: 2},
		Lanes:  []LaneReport{{Name: "sse", Begun: 3, Right: 2, Errors: map[string]int64{"status 503": 1}}},
		Before: map[string]float64{Goroutines: 100, Files: 20}, After: map[string]float64{Goroutines: 111, Files: 30},
		series: map[string][]Point{Memory: memory(1, 4), History: memory(1, 50)},
	}
	var starts []time.Time
	for tenth := range 9 {
		starts = append(starts, began.Add(time.Duration(10*tenth+5)*time.Second))
	}
	r.conclude(append(starts, began.Add(-time.Second), began.Add(time.Hour)))
	require.False(t, r.Passed())
	require.Len(t, r.Faults, 4)
	for i, want := range []string{
		"sse: 1 times: status 503", "workloads did not wake all along: [1 1 1 1 1 1 1 1 1 0]",
		"resident_bytes grows by", "goroutines: 11 more at rest than before, 10 allowed",
	} {
		assert.Contains(t, r.Faults[i], want)
	}
	var text strings.Builder
	require.NoError(t, r.Text(&text))
	for _, fault := range r.Faults {
		assert.Contains(t, text.String(), "FAILED: "+fault)
	}
}
