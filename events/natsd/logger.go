package natsd

import (
	"fmt"
	"log/slog"
)

// logger hands the server's log to slog. The server's notices are its banner
// and its listeners, of no interest to whoever runs Rouse: they are debug.
type logger struct {
	log    *slog.Logger
	fatal  chan string   // the first reason to give up; buffered, later ones are only logged
	failed chan struct{} // a stream could not be written; buffered 1
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, fatal: make(chan string, 1), failed: make(chan struct{}, 1)}
}

func (l *logger) Noticef(format string, v ...any) { l.log.Debug("nats", "says", text(format, v)) }
func (l *logger) Debugf(format string, v ...any)  { l.log.Debug("nats", "says", text(format, v)) }
func (l *logger) Tracef(format string, v ...any)  { l.log.Debug("nats", "says", text(format, v)) }
func (l *logger) Warnf(format string, v ...any)   { l.log.Warn("nats", "says", text(format, v)) }

func (l *logger) Errorf(format string, v ...any) {
	l.log.Error("nats", "says", text(format, v))
	if writeFailed(format) {
		select {
		case l.failed <- struct{}{}:
		default:
		}
	}
}

// Fatalf does not end the process: the server returns from its start after
// it, and Start turns the reason into an error.
func (l *logger) Fatalf(format string, v ...any) {
	reason := text(format, v)
	select {
	case l.fatal <- reason:
	default:
		l.log.Error("nats", "says", reason)
	}
}

func text(format string, v []any) string { return fmt.Sprintf(format, v...) }
