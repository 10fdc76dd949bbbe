//go:build linux

package soak

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

// A visit is one session, or one request that is given up.
type visit struct {
	host   string
	id     uint64
	random *rand.Rand
}

func (v visit) header() string {
	id := http1.NewID(v.id)
	return string(id[:])
}

// A kind of session: it gives how many messages went, and an error if not
// all did; errAborted if it was given up as it was to be.
type kind func(ctx context.Context, v visit) (messages int64, err error)

var errAborted = errors.New("given up on purpose")

// sessions lets so many workers have one session after the other. A session
// that has begun is ended as it should be, after the soak's time if need be.
func (s *soak) sessions(workers int, hold kind) func(context.Context) (LaneReport, error) {
	return func(ctx context.Context) (LaneReport, error) {
		var all LaneReport
		var mu sync.Mutex
		var wait sync.WaitGroup
		for w := range workers {
			wait.Go(func() {
				one := s.worker(ctx, rand.New(rand.NewPCG(s.cfg.Seed, uint64(w))), hold)
				mu.Lock()
				defer mu.Unlock()
				all.merge(one)
			})
		}
		wait.Wait()
		return all, nil
	}
}

func (s *soak) worker(ctx context.Context, random *rand.Rand, hold kind) LaneReport {
	var report LaneReport
	end := time.After(s.cfg.Duration)
	for {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(s.cfg.Pause)))):
		case <-end:
			return report
		case <-ctx.Done():
			return report
		}
		s.visit(ctx, &report, visit{s.host(random), s.ids.Add(1), random}, hold)
	}
}

// seldom is how many sessions, or uploads, there are for each that goes to a
// workload that sleeps in between: more would keep it awake.
const seldom = 20

func (s *soak) host(random *rand.Rand) string {
	if n := len(s.cfg.Sleepers); n > 0 && random.IntN(seldom) == 0 {
		return s.cfg.Sleepers[random.IntN(n)]
	}
	return s.cfg.Steady
}

func (s *soak) visit(ctx context.Context, report *LaneReport, v visit, hold kind) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer cancel()
	report.Begun++
	messages, err := hold(ctx, v)
	report.Messages += messages
	switch {
	case errors.Is(err, errAborted):
		report.Aborted++
		s.note(&s.aborted, v.id)
	case err != nil:
		report.fault(err.Error(), 1)
	default:
		report.Right++
		s.answers.Add(1)
		s.note(&s.sent, v.id)
	}
}

// ask asks once, as a session without a message.
func (s *soak) ask(ctx context.Context, v visit) (int64, error) {
	answer, err := s.get(ctx, v, "/")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && !bytes.Contains(body, []byte(v.header())) {
		err = errors.New("another request's answer")
	}
	return 0, err
}

func (s *soak) get(ctx context.Context, v visit, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.cfg.Address+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = v.host
	request.Header.Set("X-Request-ID", v.header())
	answer, err := s.client.Do(request)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d", answer.StatusCode)
		_ = answer.Body.Close() // the status is the failure
	}
	return answer, err
}

// webSocket exchanges messages of any size, in order, and closes properly.
func (s *soak) webSocket(ctx context.Context, v visit) (int64, error) {
	conn, answer, err := websocket.Dial(ctx, "ws://"+s.cfg.Address+"/ws", &websocket.DialOptions{
		HTTPClient: s.client, Host: v.host, HTTPHeader: http.Header{"X-Request-ID": {v.header()}},
	})
	if err != nil {
		if answer != nil {
			return 0, fmt.Errorf("websocket: status %d", answer.StatusCode)
		}
		return 0, fmt.Errorf("websocket: %w", err)
	}
	defer func() { _ = conn.CloseNow() }() // closed already, if all was well
	conn.SetReadLimit(1 << 20)
	messages := int64(1 + v.random.IntN(20))
	for n := range messages {
		message := bytes.Repeat([]byte(v.header()), 1+v.random.IntN(256))
		if err := conn.Write(ctx, websocket.MessageBinary, message); err != nil {
			return n, fmt.Errorf("websocket: write: %w", cause(err))
		}
		_, echo, err := conn.Read(ctx)
		if err != nil {
			return n, fmt.Errorf("websocket: read: %w", cause(err))
		}
		if !bytes.Equal(message, echo) {
			return n, errors.New("websocket: another message came back")
		}
		if !pause(ctx, time.Duration(v.random.Int64N(int64(s.cfg.Pause)))) {
			return n, context.Cause(ctx)
		}
	}
	if err := conn.Close(websocket.StatusNormalClosure, ""); err != nil {
		return messages, fmt.Errorf("websocket: close: %w", cause(err))
	}
	return messages, nil
}

// cause leaves out the addresses of a network error, which differ each time.
func cause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// events reads a stream of numbered events to its end.
func (s *soak) events(ctx context.Context, v visit) (int64, error) {
	want := int64(1 + v.random.IntN(20))
	answer, err := s.get(ctx, v, fmt.Sprintf("/sse?every=%s&n=%d", s.cfg.Pause/4, want))
	if err != nil {
		return 0, fmt.Errorf("sse: %w", cause(err))
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	got := int64(0)
	for lines.Scan() {
		id, found := strings.CutPrefix(lines.Text(), "id: ")
		if !found {
			continue
		}
		if got++; id != fmt.Sprint(got) {
			return got, fmt.Errorf("sse: event %s in place of %d", id, got)
		}
	}
	if err := lines.Err(); err != nil {
		return got, fmt.Errorf("sse: %w", cause(err))
	}
	if got != want {
		return got, errors.New("sse: the stream ended early")
	}
	return got, nil
}

// abort begins a request and gives it up: before its workload wakes, within
// the body of its request, or within that of its answer.
func (s *soak) abort(ctx context.Context, v visit) (int64, error) {
	const body = 1 << 20
	heads := []string{
		"GET / HTTP/1.1\r\n%s\r\n",
		"GET /hang HTTP/1.1\r\n%s\r\n",
		"GET /bytes/50000000 HTTP/1.1\r\n%s\r\n",
		"POST /echo HTTP/1.1\r\nContent-Length: " + fmt.Sprint(body) + "\r\n%s\r\n" + strings.Repeat("a", body/4),
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return 0, fmt.Errorf("abort: %w", cause(err))
	}
	defer conn.Close()
	if v.random.IntN(2) == 0 {
		_ = conn.(*net.TCPConn).SetLinger(0) // it leaves with a reset
	}
	_ = conn.SetDeadline(time.Now().Add(time.Duration(1 + v.random.Int64N(int64(s.cfg.Pause)))))
	head := fmt.Sprintf("Host: %s\r\nX-Request-ID: %s\r\n", v.host, v.header())
	if _, err := fmt.Fprintf(conn, heads[v.random.IntN(len(heads))], head); err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 1<<20)) // whatever comes by then
	}
	return 0, errAborted
}

// pause waits, and reports that ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
