package system_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// A crowd is many clients, each with a connection of its own that is open
// before the first request is sent, so that all are sent within moments.
type crowd struct {
	t       *testing.T
	members []*member
	first   chan struct{} // closed with the first 200
	done    chan struct{} // closed when all are answered
	refused chan struct{} // one for each 503
}

// A member is one client, and the answer it got.
type member struct {
	workload string
	conn     net.Conn
	reader   *bufio.Reader

	id     string
	status int
	header http.Header
	body   string
	ended  time.Time
	err    error
}

// gather connects the clients to the node.
func gather(t *testing.T, n *node, workloads, each int) *crowd {
	t.Helper()
	allowDescriptors(t, workloads*each+1000)
	c := &crowd{t: t}
	t.Cleanup(c.disperse)
	for i := range workloads * each {
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.traffic, "http://"))
		require.NoError(t, err)
		c.members = append(c.members, &member{workload: heldName(i % workloads), conn: conn, reader: bufio.NewReaderSize(conn, 1024)})
	}
	return c
}

// disperse closes the connections, for good and at once: their ports are free
// for the next crowd.
func (c *crowd) disperse() {
	for _, m := range c.members {
		_ = m.conn.(*net.TCPConn).SetLinger(0)
		_ = m.conn.Close()
	}
}

// allowDescriptors raises the limit of open files of this program and of those
// it starts from now on; where that is not allowed, the test is skipped.
func allowDescriptors(t *testing.T, n int) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if limit.Cur >= uint64(n) {
		return
	}
	limit.Cur = uint64(n)
	limit.Max = max(limit.Max, limit.Cur)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skipf("%d connections need as many open files, and the limit (ulimit -Hn) cannot be raised: %v", n, err)
	}
}

// send sends one request by each client. No answer is read before all are
// sent.
func (c *crowd) send(round int) {
	c.t.Helper()
	c.first, c.done, c.refused = make(chan struct{}), make(chan struct{}), make(chan struct{}, len(c.members))
	for i, m := range c.members {
		m.id = fmt.Sprintf("held-%d-%d", round, i)
		_, err := fmt.Fprintf(m.conn, "GET /held HTTP/1.1\r\nHost: %s.localhost\r\nX-Request-Id: %s\r\n\r\n", m.workload, m.id)
		require.NoError(c.t, err)
	}
	var first sync.Once
	var reading sync.WaitGroup
	for _, m := range c.members {
		reading.Go(func() {
			m.read()
			switch m.status {
			case http.StatusOK:
				first.Do(func() { close(c.first) })
			case http.StatusServiceUnavailable:
				c.refused <- struct{}{}
			}
		})
	}
	go func() {
		reading.Wait()
		close(c.done)
	}()
}

// read takes the one answer in.
func (m *member) read() {
	m.status, m.header, m.body = 0, nil, ""
	if m.err = m.conn.SetReadDeadline(time.Now().Add(2 * patience)); m.err != nil {
		return
	}
	resp, err := http.ReadResponse(m.reader, nil)
	m.ended, m.err = time.Now(), err
	if err != nil {
		return
	}
	body, err := io.ReadAll(resp.Body)
	m.status, m.header, m.body, m.ended = resp.StatusCode, resp.Header, string(body), time.Now()
	m.err = errors.Join(err, resp.Body.Close())
}

func (c *crowd) waitFirst() { c.wait("the first request is let go", c.first) }

func (c *crowd) waitAll() { c.wait("all are answered", c.done) }

// waitRefused waits until so many were refused.
func (c *crowd) waitRefused(n int) {
	c.t.Helper()
	for range n {
		c.wait("the surplus is refused", c.refused)
	}
}

func (c *crowd) wait(what string, happened <-chan struct{}) {
	c.t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		c.t.Fatalf("waited %s in vain: %s", patience, what)
	}
}

// statuses counts the answers; a client without one fails the test.
func (c *crowd) statuses() map[int]int {
	c.t.Helper()
	of := map[int]int{}
	for _, m := range c.members {
		require.NoError(c.t, m.err, "%s to %s", m.id, m.workload)
		of[m.status]++
	}
	return of
}

// released is the time from the first answer to the last.
func (c *crowd) released() time.Duration {
	var first, last time.Time
	for _, m := range c.members {
		if first.IsZero() || m.ended.Before(first) {
			first = m.ended
		}
		if m.ended.After(last) {
			last = m.ended
		}
	}
	return last.Sub(first)
}

// assertExecutedOnce checks that every answer is of the request that it
// answers, and that the workloads, asked without Rouse in between, have
// executed as many requests as were answered.
func (c *crowd) assertExecutedOnce(n *node) {
	c.t.Helper()
	answers := map[string]int64{} // workload -> how many
	for _, m := range c.members {
		if m.status == http.StatusOK {
			report := reportOf(c.t, m.body)
			require.Equal(c.t, m.id, report.Headers.Get("X-Request-Id"))
			require.Equal(c.t, m.workload+".localhost", report.Host)
			answers[m.workload]++
		}
	}
	for name, count := range answers {
		v, err := n.view(name)
		require.NoError(c.t, err)
		resp, err := client.Get("http://" + v.Replicas[0].Address + "/")
		require.NoError(c.t, err)
		assert.Equal(c.t, count, reportOf(c.t, drainAll(resp)).Served-1, "executed by %s, this look at it not counted", name)
	}
}

func reportOf(t *testing.T, body string) mimic.Report {
	t.Helper()
	var report mimic.Report
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	return report
}

// assertRefusals checks that every refusal says why and when to come back.
func (c *crowd) assertRefusals(code string) {
	c.t.Helper()
	for _, m := range c.members {
		if m.status != http.StatusServiceUnavailable {
			continue
		}
		require.Contains(c.t, m.body, "urn:rouse:problem:"+code)
		after, err := strconv.Atoi(m.header.Get("Retry-After"))
		require.NoError(c.t, err)
		require.Positive(c.t, after)
	}
}
