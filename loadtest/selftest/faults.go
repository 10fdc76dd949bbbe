//go:build linux

package selftest

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// fault is a way to answer, and what it must be counted as.
type fault struct {
	name    string
	outcome openloop.Outcome
	behave  behaviour
}

func writes(text string, goesOn bool) behaviour {
	return func(conn net.Conn, _, id string) bool {
		_, err := conn.Write([]byte(strings.ReplaceAll(text, "{id}", id)))
		return err == nil && goesOn
	}
}

// Each body is 20 bytes long where it should be: the id and four more.
var allFaults = []fault{
	{"a right answer", openloop.OK, writes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{id}1234", true)},
	{"a right answer in chunks", openloop.OK, writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{id}1234\r\n0\r\n\r\n", true)},
	{"a wrong status", openloop.WrongStatus, writes("HTTP/1.1 503 Busy\r\nContent-Length: 20\r\n\r\n{id}1234", true)},
	{"a short answer", openloop.WrongLength, writes("HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{id}", true)},
	{"a long answer", openloop.WrongLength, writes("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n{id}12345", true)},
	{"another request's answer", openloop.WrongID, writes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n0123456789abcdef1234", true)},
	{"a connection cut before the answer", openloop.Cut, writes("", false)},
	{"a connection cut in the head", openloop.Cut, writes("HTTP/1.1 200 OK\r\nContent-", false)},
	{"a connection cut in the body", openloop.Cut, writes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{id}", false)},
	{"a connection cut in a chunk", openloop.Cut, writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{id}", false)},
	{"a connection cut before the last chunk", openloop.Cut, writes("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{id}1234\r\n", false)},
	{"a body that ends with the connection", openloop.Malformed, writes("HTTP/1.1 200 OK\r\n\r\n{id}1234", false)},
	{"two lengths", openloop.Malformed, writes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\nContent-Length: 20\r\n\r\n{id}1234", true)},
	{"bytes after the answer", openloop.Malformed, writes("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{id}1234more", true)},
	{"no answer", openloop.TimedOut, writes("", true)},
}

// faults has each request of a run meet the same fault.
func faults(ctx context.Context, _ Config) ([]Check, error) {
	var checks []Check
	for _, f := range allFaults {
		s, err := serve(f.behave)
		if err != nil {
			return checks, err
		}
		timeout := time.Minute
		if f.outcome == openloop.TimedOut {
			timeout = 100 * time.Millisecond
		}
		c, err := count(ctx, s, f, timeout)
		s.close()
		if err != nil {
			return checks, err
		}
		checks = append(checks, c)
	}
	gone, err := serve(writes("", false))
	if err != nil {
		return checks, err
	}
	gone.close()
	c, err := count(ctx, gone, fault{"nobody listens", openloop.Refused, nil}, time.Minute)
	return append(checks, c), err
}

func count(ctx context.Context, s *server, f fault, timeout time.Duration) (Check, error) {
	target := ask(s, "/")
	target.Expect.Length = 20
	r, err := openloop.Run(ctx, openloop.Config{
		Address: s.address(), Schedule: schedule.Constant(1000, 20*time.Millisecond), Conns: 4,
		Targets: []openloop.Target{target}, Timeout: timeout, Drain: time.Minute,
	})
	if err != nil {
		return Check{}, err
	}
	want := map[string]int64{f.outcome.String(): 20}
	return Check{
		Name: f.name, Want: fmt.Sprintf("20 %s", f.outcome), Got: inWords(r.Measured.Outcomes),
		OK: maps.Equal(want, r.Measured.Outcomes) && r.Measured.Conserved(),
	}, nil
}

func inWords(outcomes map[string]int64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		parts = append(parts, fmt.Sprintf("%d %s", outcomes[name], name))
	}
	return strings.Join(parts, ", ")
}
