package system_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A book is what the ledger of one workload says.
type book struct {
	starts int
	begins map[string]int // request ID -> times
	terms  int            // times it was asked to end
	inUse  int            // of these, with requests in flight
}

func (r *round) book(workload string) book {
	r.t.Helper()
	file, err := os.Open(filepath.Join(r.dir, workload))
	require.NoError(r.t, err)
	defer file.Close()
	b := book{begins: map[string]int{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		what, value, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "start":
			b.starts++
		case "begin":
			b.begins[value]++
		case "term":
			b.terms++
			if n, err := strconv.Atoi(value); err != nil || n > 0 {
				b.inUse++
			}
		}
	}
	require.NoError(r.t, lines.Err())
	return b
}

// A tally is what a round came to.
type tally struct {
	Fault    string         `json:"fault"`
	Began    time.Time      `json:"began"`
	Sent     int            `json:"sent"`
	Answered int            `json:"answered"`
	Refused  int            `json:"refused"` // those that GatewayGone counts included
	Gone     int            `json:"gateway_gone"`
	Lost     int            `json:"lost"`
	Astray   int            `json:"astray"` // executed by another workload, or answered without having been
	Twice    int            `json:"twice"`
	Again    int            `json:"sent_again"` // safe requests, after the replica they were at had ended
	InUse    int            `json:"stopped_in_use"`
	Starts   int            `json:"starts"`
	Woken    int            `json:"woken"` // generations
	Others   int            `json:"started_by_others"`
	Recovery time.Duration  `json:"recovery_ns"`
	Reasons  map[string]int `json:"reasons"`         // of refusals -> times
	Wrong    []string       `json:"wrong,omitempty"` // some of what is lost, twice or astray
}

// count compares what was sent with what came back and with the ledgers. The
// load has ended.
func (r *round) count() *tally {
	r.t.Helper()
	done := r.sender.done
	c := &tally{Fault: r.fault, Began: r.began, Sent: len(done), Others: r.policy, Reasons: map[string]int{}}
	books := map[string]book{} // workload -> book
	for _, x := range r.targets {
		b := r.book(x.workload)
		books[x.workload] = b
		c.Starts += b.starts
		c.Woken += int(r.sender.woken.sum[x.workload])
		c.InUse += b.inUse
		c.Recovery = max(c.Recovery, recovery(done, x, r.injected))
	}
	c.InUse = max(0, c.InUse-r.hands)
	for i := range done {
		c.ended(&done[i])
		c.executed(&done[i], books, r.hands > 0)
	}
	return c
}

func (c *tally) ended(s *sent) {
	switch {
	case s.outcome == wasAnswered:
		c.Answered++
	case s.outcome == wasRefused:
		c.Refused++
		c.Reasons[s.what]++
	case s.outcome == wasOrphaned:
		c.Refused++
		c.Gone++
		c.Reasons[s.what]++
	default:
		c.Lost++
		c.wrong("lost", s)
	}
}

// executed compares the request with the ledgers. Where a replica was ended by
// hand, a GET that was at it may have been asked again: RFC 9110, 9.2.2.
func (c *tally) executed(s *sent, books map[string]book, mayRepeat bool) {
	own := books[s.target.workload].begins[s.id]
	for name, b := range books {
		if name != s.target.workload && b.begins[s.id] > 0 {
			c.Astray++
			c.wrong("at "+name, s)
		}
	}
	switch {
	case own == 0 && s.outcome == wasAnswered:
		c.Astray++
		c.wrong("answered by nobody", s)
	case own > 1 && s.method == http.MethodGet && mayRepeat:
		c.Again += own - 1
	case own > 1:
		c.Twice++
		c.wrong("twice", s)
	}
}

func (c *tally) wrong(how string, s *sent) {
	if len(c.Wrong) < 20 {
		c.Wrong = append(c.Wrong, strings.Join([]string{how, s.id, s.method, s.at.Format("15:04:05.000"), "after", s.end.Sub(s.at).String(), s.what}, " "))
	}
}

// recovery is the longest time from a request that was sent after the fault
// until some request that was sent no earlier was answered: what somebody
// waited who asked over and over.
func recovery(done []sent, x *target, fault time.Time) time.Duration {
	var after []*sent
	for i := range done {
		if s := &done[i]; s.target == x && !s.at.Before(fault) && !s.open {
			after = append(after, s)
		}
	}
	slices.SortFunc(after, func(a, b *sent) int { return b.at.Compare(a.at) })
	var next time.Time // the first answer to any that was sent later
	longest := time.Duration(0)
	for _, s := range after {
		if s.outcome == wasAnswered && (next.IsZero() || s.end.Before(next)) {
			next = s.end
		}
		if !next.IsZero() {
			longest = max(longest, next.Sub(s.at))
		}
	}
	return longest
}

// check is what every round has to come to.
func (c *tally) check(t *testing.T) {
	t.Helper()
	t.Logf("sent %d = answered %d + refused %d (%d: gateway gone) + lost %d; twice %d, sent again %d, astray %d, stopped in use %d, starts %d for %d cold ones + %d by others; recovered in %s; %v",
		c.Sent, c.Answered, c.Refused, c.Gone, c.Lost, c.Twice, c.Again, c.Astray, c.InUse, c.Starts, c.Woken, c.Others, c.Recovery.Round(time.Millisecond), c.Reasons)
	assert.Positive(t, c.Answered)
	assert.Equal(t, c.Sent, c.Answered+c.Refused, "every request is answered or refused with a reason")
	assert.Zero(t, c.Lost, "lost")
	assert.Zero(t, c.Twice, "executed twice")
	assert.Zero(t, c.Astray, "executed by another workload, or by none")
	assert.Zero(t, c.InUse, "stopped in use")
	assert.Positive(t, c.Starts)
	assert.LessOrEqual(t, c.Starts, c.Woken+c.Others, "a start for each cold start")
	if t.Failed() {
		t.Log(strings.Join(c.Wrong, "\n"))
	}
}
