package router

import (
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	logFlushEvery = 200 * time.Millisecond
	logFlushSize  = 64 << 10 // that much is written without waiting for the tick
	logLimit      = 4 << 20  // beyond it lines are dropped and counted: the writer is stuck
)

// A LogFormat is the form of the access log.
type LogFormat string

const (
	// LogJSON is one JSON object a line.
	LogJSON LogFormat = "json"
	// LogLogfmt has the same keys and values as KEY=VALUE.
	LogLogfmt LogFormat = "logfmt"
	// LogCLF is the Combined Log Format of Apache and nginx, without the query,
	// and behind it the workload, the outcome, and the seconds added by Rouse, in
	// the queue, and at the workload.
	LogCLF LogFormat = "clf"
)

// AccessLog says where each request is logged, and how. What neither wakes nor
// keeps awake is not. The zero value logs nothing.
type AccessLog struct {
	// To gets pieces of whole lines; nil turns the log off. A writer that
	// blocks costs lines, never a request.
	To io.Writer
	// Format is the form of a line; empty is LogJSON.
	Format LogFormat
	// Percent is how many of a hundred ordinary requests are logged, by chance: of
	// those to a workload that was awake whose status is below 400. All others
	// are. 0 is 100.
	Percent int
}

// An accessLog writes one line per request. write never waits for the
// writer: lines gather in memory, and run, which must be running, writes them
// out each 200 ms or 64 KiB; while there are none it sleeps. A nil accessLog
// is off.
type accessLog struct {
	out     io.Writer
	format  LogFormat
	percent int

	some chan struct{} // 1: there is a line
	full chan struct{} // 1: enough has gathered

	mu      sync.Mutex
	lines   []byte // guarded by mu
	dropped uint64 // lines not taken since the last flush; guarded by mu
}

func newAccessLog(cfg AccessLog) *accessLog {
	if cfg.To == nil {
		return nil
	}
	return &accessLog{
		out: cfg.To, format: cmp.Or(cfg.Format, LogJSON), percent: cmp.Or(cfg.Percent, 100),
		some: make(chan struct{}, 1), full: make(chan struct{}, 1),
	}
}

// takes reports whether a request is logged.
func (l *accessLog) takes(ordinary bool) bool {
	return !ordinary || l.percent >= 100 || rand.IntN(100) < l.percent
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
		lines = newLogLine(lines, l.format).number("dropped", int64(dropped)).end()
	}
	return lines
}
