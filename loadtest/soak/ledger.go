//go:build linux

package soak

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An account is what the ledgers of all workloads say together.
type account struct {
	begun, ended []uint64 // ids of requests, in order
	foreign      []string // ids of requests that are none of ours
	starts       []time.Time
}

// readLedgers adds up the files; one that is not there is of a workload that
// never ran.
func readLedgers(paths []string) (account, error) {
	var a account
	for _, path := range paths {
		if err := a.read(path); err != nil && !os.IsNotExist(err) {
			return a, fmt.Errorf("ledger: %w", err)
		}
	}
	slices.Sort(a.begun)
	slices.Sort(a.ended)
	return a, nil
}

func (a *account) read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if err := a.line(lines.Text()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

func (a *account) line(line string) error {
	what, value, _ := strings.Cut(line, " ")
	switch what {
	case "start":
		ns, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return err
		}
		a.starts = append(a.starts, time.Unix(0, ns))
	case "begin", "end":
		id, err := strconv.ParseUint(value, 16, 64)
		switch {
		case err != nil && what == "begin":
			a.foreign = append(a.foreign, value)
		case err != nil:
		case what == "begin":
			a.begun = append(a.begun, id)
		default:
			a.ended = append(a.ended, id)
		}
	}
	return nil
}

// Books are the counts of a soak: what was sent, against what the workloads
// have seen.
type Books struct {
	// Answered requests had the right answer, with their own id in it, and
	// their whole body or all messages.
	Answered int64 `json:"answered"`
	// Aborted requests were given up by their client; a workload may have
	// seen them or not.
	Aborted int64 `json:"aborted"`
	// Lost had no right answer.
	Lost int64 `json:"lost"`
	// Seen is how many requests came to a workload, AbortedSeen how many of
	// them were aborted ones.
	Seen        int64 `json:"seen"`
	AbortedSeen int64 `json:"aborted_seen"`
	// Twice came more than once; Strange were sent by nobody here.
	Twice   int64 `json:"twice"`
	Strange int64 `json:"strange"`
	// Strangers are the first ids of those, where they are not even of the form.
	Strangers []string `json:"strangers,omitempty"`
	// Unended came to a handler that did not return.
	Unended int64 `json:"unended"`
}

// mostStrangers is how many of their ids are kept.
const mostStrangers = 8

// balance holds the requests of the clients against the account. Sent
// has the ids of those that were answered and are known by number, aborted
// those given up; the rest of the answered are known by their count.
func (a *account) balance(answered, lost int64, sent, aborted []uint64) Books {
	b := Books{Answered: answered, Lost: lost, Aborted: int64(len(aborted)), Strange: int64(len(a.foreign))}
	b.Strangers = a.foreign[:min(len(a.foreign), mostStrangers)]
	slices.Sort(aborted)
	slices.Sort(sent)
	seen := slices.Compact(slices.Clone(a.begun))
	b.Seen = int64(len(seen))
	b.Twice = int64(len(a.begun) - len(seen))
	b.Unended = int64(len(a.begun) - len(a.ended))
	for _, id := range seen {
		if _, given := slices.BinarySearch(aborted, id); given {
			b.AbortedSeen++
		}
	}
	for _, id := range sent {
		if _, found := slices.BinarySearch(seen, id); !found {
			b.Lost++ // answered by somebody else
		}
	}
	b.Strange += max(0, b.Seen-b.AbortedSeen-answered-lost)
	return b
}

// faults say what does not add up.
func (b Books) faults() []string {
	var faults []string
	no := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	no(b.Lost > 0, "%d requests had no right answer", b.Lost)
	no(b.Twice > 0, "%d requests came to a workload twice", b.Twice)
	no(b.Strange > 0, "%d requests came to a workload that nobody had sent %q", b.Strange, b.Strangers)
	no(b.Unended != 0, "%d requests came to a handler that did not return", b.Unended)
	no(b.Lost == 0 && b.Seen-b.AbortedSeen != b.Answered, "%d answers, but %d requests that were seen by a workload",
		b.Answered, b.Seen-b.AbortedSeen)
	no(b.Answered == 0, "nothing was answered")
	return faults
}
