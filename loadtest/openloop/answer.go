//go:build linux

package openloop

import (
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

var errSurplus = fmt.Errorf("%w: bytes after its end", http1.ErrMalformed)

// read what has come of an answer.
func (l *loop) read(c *conn) {
	for {
		n, err := unix.Read(c.fd, l.input[:])
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			return
		case err != nil:
			l.fail(c, Cut, err)
			return
		case n == 0:
			l.fail(c, Cut, io.ErrUnexpectedEOF)
			return
		}
		took, err := c.answer.Feed(l.input[:n])
		if err == nil && took < n {
			err = errSurplus
		}
		switch {
		case err != nil:
			l.fail(c, Malformed, err)
			return
		case c.answer.Done():
			l.answered(c)
			return
		case n < len(l.input):
			return
		}
	}
}

func (l *loop) answered(c *conn) {
	e := end{
		outcome: c.check.judge(c.answer.Status, c.answer.RequestID),
		at:      l.now(), status: c.answer.Status, added: added(c.answer.ServerTiming),
	}
	l.finish(c, e, l.fresh || c.answer.Close || c.unsent())
}

// added is what the answer says that Rouse, or another proxy, added.
func added(header []byte) time.Duration {
	if len(header) > 0 {
		if d, found := http1.Timing(header, "added"); found {
			return d
		}
	}
	return -1
}

// fail ends the request of a connection, if it has one, and the connection.
func (l *loop) fail(c *conn, outcome Outcome, err error) {
	e := end{outcome: outcome, at: l.now(), reason: fmt.Sprintf("%s: %v", outcome, err)}
	if outcome == Cut && errors.Is(err, io.ErrUnexpectedEOF) && !c.answer.Begun() {
		e.reason = "cut: before the first byte of an answer"
	}
	if !c.request {
		l.fault(e.reason)
	}
	l.finish(c, e, true)
}

func (l *loop) finish(c *conn, e end, hangUp bool) {
	if c.request {
		l.book.finish(c.send, e)
		c.request = false
	}
	c.state = idle
	if hangUp {
		c.hangUp(l.fresh)
		c.state = empty
	}
	l.give(c, e.at)
}

// surprise is what comes on a connection without a request: mostly its end.
func (l *loop) surprise(c *conn) {
	n, err := unix.Read(c.fd, l.input[:])
	if err == unix.EAGAIN || err == unix.EINTR {
		return
	}
	if n > 0 {
		l.result.Unsolicited++
	}
	l.drop(c)
	c.hangUp(false)
	c.state = empty
	l.give(c, l.now())
}

// expire ends what has taken too long.
func (l *loop) expire(now time.Duration) {
	for i := range l.conns {
		c := &l.conns[i]
		if c.request && now-c.send.sent > l.cfg.Timeout {
			l.fail(c, TimedOut, fmt.Errorf("no answer within %v", l.cfg.Timeout))
		}
	}
}
