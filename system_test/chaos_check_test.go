package system_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played is a round whose requests and ledgers are made up.
func played(t *testing.T, done []sent, ledgers map[string]string) *round {
	t.Helper()
	r := newRound(t, fault{name: "none"})
	for name, lines := range ledgers {
		require.NoError(t, os.WriteFile(r.ledger(name), []byte(lines), 0o600))
		r.targets = append(r.targets, &target{workload: name, host: name + ".localhost"})
		r.sender.woken.note(name, 1)
	}
	for i := range done {
		for _, x := range r.targets {
			if strings.HasPrefix(done[i].id, x.workload) {
				done[i].target = x
			}
		}
	}
	r.sender.done = done
	return r
}

// A harness that counts what cannot be wrong would prove nothing.
func TestARoundCountsWhatMustNotHappen(t *testing.T) {
	get := func(id string, o outcome) sent { return sent{id: id, method: http.MethodGet, outcome: o} }
	post := func(id string, o outcome) sent { return sent{id: id, method: http.MethodPost, outcome: o} }
	cases := map[string]struct {
		done   []sent
		a, b   string // ledgers, after the start
		others func(*round)
		want   tally
	}{
		"all is well":              {[]sent{get("a-1", wasAnswered), post("b-2", wasRefused)}, "begin a-1\nend a-1\nterm 0\n", "", nil, tally{Answered: 1, Refused: 1}},
		"no answer":                {[]sent{get("a-1", wasLost)}, "begin a-1\n", "", nil, tally{Lost: 1}},
		"gateway gone":             {[]sent{get("a-1", wasOrphaned)}, "", "", nil, tally{Refused: 1, Gone: 1}},
		"executed twice":           {[]sent{post("a-1", wasAnswered)}, "begin a-1\nbegin a-1\n", "", nil, tally{Answered: 1, Twice: 1}},
		"a GET executed twice":     {[]sent{get("a-1", wasAnswered)}, "begin a-1\nbegin a-1\n", "", nil, tally{Answered: 1, Twice: 1}},
		"a GET after a kill":       {[]sent{get("a-1", wasAnswered)}, "begin a-1\nbegin a-1\n", "", func(r *round) { r.byHand(1) }, tally{Answered: 1, Again: 1}},
		"a POST after a kill":      {[]sent{post("a-1", wasRefused)}, "begin a-1\nbegin a-1\n", "", func(r *round) { r.byHand(1) }, tally{Refused: 1, Twice: 1}},
		"answered by nobody":       {[]sent{get("a-1", wasAnswered)}, "", "", nil, tally{Answered: 1, Astray: 1}},
		"answered by another":      {[]sent{get("a-1", wasAnswered)}, "", "begin a-1\n", nil, tally{Answered: 1, Astray: 2}},
		"stopped in use":           {[]sent{get("a-1", wasAnswered)}, "begin a-1\nterm 1\n", "", nil, tally{Answered: 1, InUse: 1}},
		"stopped in use by hand":   {[]sent{get("a-1", wasAnswered)}, "begin a-1\nterm 1\n", "", func(r *round) { r.byHand(1) }, tally{Answered: 1}},
		"started twice at a wake":  {[]sent{get("a-1", wasAnswered)}, "begin a-1\nstart 2\n", "", nil, tally{Answered: 1, Starts: 1}},
		"started by somebody else": {[]sent{get("a-1", wasAnswered)}, "begin a-1\nstart 2\n", "", func(r *round) { r.startedByOthers(1) }, tally{Answered: 1, Starts: 1, Others: 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := played(t, c.done, map[string]string{"a": "start 1\n" + c.a, "b": "start 1\n" + c.b})
			if c.others != nil {
				c.others(r)
			}
			got := r.count()
			c.want.Sent, c.want.Starts, c.want.Woken = len(c.done), c.want.Starts+2, 2
			assert.Equal(t, fmt.Sprint(c.want.faults()), fmt.Sprint(got.faults()))
		})
	}
}

// faults are the counts without the rest.
func (c *tally) faults() []int {
	return []int{c.Sent, c.Answered, c.Refused, c.Gone, c.Lost, c.Astray, c.Twice, c.Again, c.InUse, c.Starts, c.Woken, c.Others}
}

func TestAnAnswerIsTheWorkloadsOrARefusalWithAReason(t *testing.T) {
	problem := http.Header{"Content-Type": {"application/problem+json"}}
	cases := []struct {
		method string
		echo   echo
		want   outcome
	}{
		{http.MethodGet, echo{200, nil, []byte(`{"headers":{"X-Request-Id":["a-1"]}}`)}, wasAnswered},
		{http.MethodGet, echo{200, nil, []byte(`{"headers":{"X-Request-Id":["a-2"]}}`)}, wasLost},
		{http.MethodGet, echo{200, nil, []byte("<html>")}, wasLost},
		{http.MethodPost, echo{200, nil, []byte("body of a-1")}, wasAnswered},
		{http.MethodPost, echo{200, nil, []byte("body of")}, wasLost},
		{http.MethodPost, echo{500, nil, []byte("body of a-1")}, wasLost},
		{http.MethodPost, echo{502, problem, []byte(`{"title":"t","request_id":"a-1"}`)}, wasRefused},
		{http.MethodPost, echo{502, problem, []byte(`{"title":"t","request_id":"a-2"}`)}, wasLost},
		{http.MethodPost, echo{502, problem, []byte(`{"request_id":"a-1"}`)}, wasLost},
		{http.MethodPost, echo{200, problem, []byte(`{"title":"t","request_id":"a-1"}`)}, wasLost},
	}
	for _, c := range cases {
		got, what := judge(&c.echo, sent{id: "a-1", method: c.method, target: &target{workload: "a"}})
		assert.Equal(t, c.want, got, "%s %d %s: %s", c.method, c.echo.status, c.echo.body, what)
	}
}

func TestTheTimeToRecoverIsTheLongestWaitOfSomebodyWhoAsksAgain(t *testing.T) {
	x := &target{}
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	request := func(from, to int, o outcome) sent {
		return sent{target: x, method: http.MethodGet, at: at(from), end: at(to), outcome: o}
	}
	done := []sent{
		request(0, 900, wasAnswered), // before the fault
		request(100, 110, wasAnswered),
		request(200, 210, wasRefused),
		request(300, 310, wasLost),
		request(400, 700, wasAnswered),
		request(500, 650, wasAnswered),
		request(800, 810, wasAnswered),
	}
	assert.Equal(t, 450*time.Millisecond, recovery(done, x, at(100)))
	assert.Equal(t, 250*time.Millisecond, recovery(done, x, at(400)))
	assert.Zero(t, recovery(done, &target{}, at(100)))
}

func TestAFaultThatWasNotRunIsInTheTable(t *testing.T) {
	file := *chaosFile
	defer func() { *chaosFile = file }()
	*chaosFile = t.TempDir() + "/page.md"
	require.NoError(t, os.WriteFile(*chaosFile, []byte("before\n"+chaosBegin+"\nof another day\n"+chaosEnd+"\nafter\n"), 0o600))
	c := newChaosReport(t)
	t.Cleanup(func() { _ = os.Remove(c.rounds.Name()) })
	ran, failed, skipped := registered[0].name, registered[1].name, registered[2].name
	for i := range 3 {
		c.add(ran, &tally{Sent: 10, Answered: 9, Refused: 1, Starts: 2, Woken: 2, Recovery: time.Duration(i+1) * time.Second,
			Reasons: map[string]int{"502 exited": 1}}, true, false)
	}
	c.add(failed, nil, false, false)
	c.add(skipped, nil, true, true)
	c.close()
	page, err := os.ReadFile(*chaosFile)
	require.NoError(t, err)
	text := string(page)
	assert.NotContains(t, text, "of another day")
	assert.True(t, strings.HasPrefix(text, "before\n") && strings.HasSuffix(text, "after\n"))
	assert.Contains(t, text, "| "+ran+" | 3 | 30 | 27 | 3 | 0 | 0 | 0 | 6 / 6 + 0 | 2.0 s | 3.0 s | 502 exited: 3 |")
	assert.Contains(t, text, "| "+failed+" | 1 (**1 failed**) |")
	assert.Contains(t, text, "| "+skipped+" | not run: this machine cannot |")
	for _, f := range registered[3:] {
		assert.Contains(t, text, "| "+f.name+" | not run: no time was left |")
	}
}
