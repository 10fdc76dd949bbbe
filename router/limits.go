package router

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

var (
	errNoHead  = errors.New("no answer began within response_timeout")
	errTooLong = errors.New("not done within request_timeout")
	errSilent  = errors.New("nothing was said for silence_timeout")
)

// limits are the times that a workload is given for one request, each counted
// on its own: the head of the answer once the request has been sent, silence
// once the answer has begun, and all of it. The time that a request was held
// is in none of them. A nil limits has none.
type limits struct {
	of     *workload.Workload
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	head     *time.Timer // guarded by mu; nil: not yet, or no more
	whole    *time.Timer // nil: none
	silence  *time.Timer // nil: none, or the answer has not begun
	began    time.Time   // of the whole, or of what is left of it
	left     time.Duration
	answered bool  // guarded by mu
	over     error // the limit that ended the request; guarded by mu
}

// limitsOf gives those of a request, and the context that they end.
func limitsOf(ctx context.Context, w *workload.Workload) (context.Context, *limits) {
	if w.ResponseTimeout <= 0 && w.RequestTimeout <= 0 && w.SilenceTimeout <= 0 {
		return ctx, nil
	}
	l := &limits{of: w, left: w.RequestTimeout}
	ctx, l.cancel = context.WithCancelCause(ctx)
	l.resume()
	return ctx, l
}

// after ends the request with err when d has passed.
func (l *limits) after(d time.Duration, err error) *time.Timer {
	return time.AfterFunc(d, func() {
		l.mu.Lock()
		if l.over == nil {
			l.over = err
		}
		l.mu.Unlock()
		l.cancel(err)
	})
}

// pause and resume keep the time in which a request is held again out of the
// whole.
func (l *limits) pause() {
	if l != nil && l.whole != nil {
		l.whole.Stop()
		l.left = max(time.Nanosecond, l.left-time.Since(l.began))
	}
}

func (l *limits) resume() {
	if l != nil && l.of.RequestTimeout > 0 {
		l.began = time.Now()
		l.whole = l.after(l.left, errTooLong)
	}
}

// sent says that the request has gone out whole; it may come late, or again.
func (l *limits) sent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered || l.of.ResponseTimeout <= 0 {
		return
	}
	if l.head != nil {
		l.head.Stop()
	}
	l.head = l.after(l.of.ResponseTimeout, errNoHead)
}

// headCame says that the answer has begun.
func (l *limits) headCame() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
	if l.head != nil {
		l.head.Stop()
	}
	if l.of.SilenceTimeout > 0 {
		l.silence = l.after(l.of.SilenceTimeout, errSilent)
	}
}

// heard says that there was something to carry, in either direction.
func (l *limits) heard() {
	if l == nil || l.of.SilenceTimeout <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silence != nil && l.silence.Stop() { // else it has run out
		l.silence.Reset(l.of.SilenceTimeout)
	}
}

// tunnelled takes the whole back: a tunnel lasts for as long as it is used.
func (l *limits) tunnelled() {
	if l != nil && l.whole != nil {
		l.whole.Stop()
	}
}

// end is the end of the request.
func (l *limits) end() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered = true
	for _, t := range []*time.Timer{l.head, l.whole, l.silence} {
		if t != nil {
			t.Stop()
		}
	}
	l.cancel(nil)
}

// overrun gives the limit that ended the request, nil if none did.
func (l *limits) overrun() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}
