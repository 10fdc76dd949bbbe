package system_test

import (
	"fmt"
	"slices"
	"time"
)

// replayed is what a replay came to, over all of its workloads.
type replayed struct {
	requests, starts, least, most int
	// Gaps less the idle timeout: the longest without a cold start after it,
	// and the shortest with one; 0 is none.
	warmest, coldest time.Duration
}

// look finds the gaps of one workload that came closest to its idle timeout.
func (s *replayed) look(requests []replayedCall, idle time.Duration) {
	ordered := slices.Clone(requests)
	slices.SortFunc(ordered, func(x, y replayedCall) int { return x.from.Compare(y.from) })
	lives := map[int64]bool{}
	var busy time.Time
	for i, c := range ordered {
		over := c.from.Sub(busy) - idle
		switch {
		case i == 0:
		case lives[c.life]:
			if over > -idle && (s.warmest == 0 || over > s.warmest) {
				s.warmest = over
			}
		case over > -idle && (s.coldest == 0 || over < s.coldest):
			s.coldest = over
		}
		lives[c.life] = true
		if c.to.After(busy) {
			busy = c.to
		}
	}
}

// near tells of the gaps that look found.
func (s *replayed) near() string {
	return over(s.warmest) + ", " + over(s.coldest)
}

func over(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return fmt.Sprintf("%+.2f s", d.Seconds())
}

// report adds the replay's row to the report, if one is asked for.
func (s replayed) report(r replay, on string) {
	stormsReport.row(sectionReplay, fmt.Sprintf("| %s | %s | %d | %s | %s | %d | %d | %d to %d | %s |",
		r.name, on, r.times, r.idle, took(r), s.requests, s.starts, s.least, s.most, s.near()))
}

func took(r replay) string {
	return fmt.Sprintf("%.0f s", r.calls[len(r.calls)-1].at.Seconds())
}
