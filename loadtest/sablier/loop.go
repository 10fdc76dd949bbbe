package sablier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/latency"
)

// A call is a request and what its answer must be.
type call struct {
	request  http1.Request
	template *http1.Template
	status   int
	mark     string // is in the answer, head or body
}

// A loop keeps connections busy: each sends its next call when the last one
// is answered.
type loop struct {
	address  string
	call     call
	conns    int
	calls    int           // in all; 0: for duration
	duration time.Duration // of a loop without a number of calls
}

// run records how long each call took.
func (l loop) run(ctx context.Context, times *latency.Histogram) error {
	conns := make([]*conn, l.conns)
	for i := range conns {
		c, err := dial(ctx, l.address, l.call)
		if err != nil {
			return err
		}
		defer c.close()
		conns[i] = c
	}
	defer context.AfterFunc(ctx, func() {
		for _, c := range conns {
			c.close()
		}
	})()
	left := l.left()
	var all sync.WaitGroup
	errs := make([]error, l.conns)
	for i, c := range conns {
		all.Go(func() { errs[i] = c.repeat(left) })
	}
	all.Wait()
	for _, c := range conns {
		times.Merge(c.times)
	}
	if ctx.Err() != nil {
		return errEnded
	}
	return errors.Join(errs...)
}

// left says whether there is one more call to make.
func (l loop) left() func() bool {
	if l.calls > 0 {
		var made atomic.Int64
		return func() bool { return made.Add(1) <= int64(l.calls) }
	}
	var made atomic.Int64
	end := time.Now().Add(l.duration)
	return func() bool { return made.Add(1) <= int64(l.conns) || time.Now().Before(end) } // one each at least
}

// A conn is one connection with one call at a time.
type conn struct {
	net.Conn
	call    call
	request []byte
	input   []byte
	answer  http1.Answer
	seen    bytes.Buffer // the answer as it came
	times   *latency.Histogram
	once    sync.Once
}

// maxRun bounds what one connection is used for, whatever is wrong with the
// server.
const maxRun = 15 * time.Minute

func dial(ctx context.Context, address string, what call) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := nc.SetDeadline(time.Now().Add(maxRun)); err != nil {
		return nil, err
	}
	return &conn{
		Conn: nc, call: what, request: what.template.Append(nil, http1.NewID(1)),
		input: make([]byte, 16<<10), times: latency.New(),
	}, nil
}

func (c *conn) close() { c.once.Do(func() { _ = c.Close() }) }

func (c *conn) repeat(left func() bool) error {
	for left() {
		took, err := c.ask()
		if err != nil {
			return err
		}
		c.times.Record(took)
	}
	return nil
}

// ask makes one call, whose answer has to be the right one.
func (c *conn) ask() (time.Duration, error) {
	began := time.Now()
	if _, err := c.Write(c.request); err != nil {
		return 0, err
	}
	c.answer.Reset(false)
	c.seen.Reset()
	for !c.answer.Done() {
		n, err := c.Read(c.input)
		if err != nil {
			return 0, noAnswer(err)
		}
		if _, err := c.answer.Feed(c.input[:n]); err != nil {
			return 0, err
		}
		c.seen.Write(c.input[:n])
	}
	took := time.Since(began)
	if c.answer.Status != c.call.status || !bytes.Contains(c.seen.Bytes(), []byte(c.call.mark)) {
		return 0, fmt.Errorf("not the answer of this scenario: %.500q", c.seen.Bytes())
	}
	return took, nil
}

func noAnswer(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the connection was closed instead of an answer")
	}
	return err
}
