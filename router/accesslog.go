package router

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	logFlushEvery = 200 * time.Millisecond
	logFlushSize  = 64 << 10 // that much is written without waiting for the tick
	logLimit      = 4 << 20  // beyond it lines are dropped and counted: the writer is stuck
)

// An accessLog writes one JSON line per request. write never waits for the
// writer: lines gather in memory, and run, which must be running, writes them
// out each 200 ms or 64 KiB; while there are none it sleeps. A nil accessLog
// is off.
type accessLog struct {
	out  io.Writer
	some chan struct{} // 1: there is a line
	full chan struct{} // 1: enough has gathered

	mu      sync.Mutex
	lines   []byte // guarded by mu
	dropped uint64 // lines not taken since the last flush; guarded by mu
}

func newAccessLog(out io.Writer) *accessLog {
	if out == nil {
		return nil
	}
	return &accessLog{out: out, some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// write takes one line in; it copies it.
func (l *accessLog) write(line []byte) {
	l.mu.Lock()
	if len(l.lines)+len(line) > logLimit {
		l.dropped++
		l.mu.Unlock()
		return
	}
	first := len(l.lines) == 0
	l.lines = append(l.lines, line...)
	enough := len(l.lines) >= logFlushSize
	l.mu.Unlock()
	if first {
		nudge(l.some)
	}
	if enough {
		nudge(l.full)
	}
}

// run writes out what gathers until ctx ends, and then the rest. Lines that
// cannot be written are lost, requests are not; failed is told of the first
// error, and again of the first after a success.
func (l *accessLog) run(ctx context.Context, failed func(error)) {
	var spare []byte
	var broken bool
	var due <-chan time.Time
	for last := false; !last; {
		select {
		case <-l.some:
			if due == nil {
				due = time.After(logFlushEvery)
			}
			continue
		case <-due:
			due = nil
		case <-l.full:
		case <-ctx.Done():
			last = true
		}
		lines := l.take(spare)
		if spare = lines; len(lines) == 0 {
			continue
		}
		_, err := l.out.Write(lines)
		if err != nil && !broken {
			failed(err)
		}
		broken = err != nil
	}
}

// take gives what has gathered; room is the buffer to gather in next.
func (l *accessLog) take(room []byte) []byte {
	l.mu.Lock()
	lines, dropped := l.lines, l.dropped
	l.lines, l.dropped = room[:0], 0
	l.mu.Unlock()
	if dropped > 0 {
		lines = append(lines, `{"dropped":`...)
		lines = append(strconv.AppendUint(lines, dropped, 10), "}\n"...)
	}
	return lines
}

// A logLine builds one JSON object by hand: encoding/json and slog would cost
// more than the rest of the request's bookkeeping together.
type logLine []byte

func (b logLine) key(name string) logLine {
	if len(b) > 0 && b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, `":`...)
}

func (b logLine) text(name, value string) logLine { return appendJSON(b.key(name), value) }

func (b logLine) number(name string, n int64) logLine { return strconv.AppendInt(b.key(name), n, 10) }

func (b logLine) flag(name string, v bool) logLine { return strconv.AppendBool(b.key(name), v) }

func (b logLine) seconds(name string, d time.Duration) logLine {
	return strconv.AppendFloat(b.key(name), d.Seconds(), 'f', 6, 64)
}

func (b logLine) time(name string, t time.Time) logLine {
	b = append(b.key(name), '"')
	b = t.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	return append(b, '"')
}

// appendJSON writes a JSON string. What is not UTF-8 becomes the replacement
// character.
func appendJSON(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}
