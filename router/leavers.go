package router

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// leaveCheck is how often held clients are looked at.
	leaveCheck = 100 * time.Millisecond
	// leaveLooks is at how many of them: a look is a call of the system, and
	// open waiting pages may be thousands. Where there are more, it takes
	// longer until each has had its turn.
	leaveLooks = 1024
)

var errLeft = errors.New("the client closed its connection")

// leavers finds clients that leave while they are held. net/http notices it
// only once a request's body has been read, and the body of a held request is
// left in the socket; so the sockets of those are looked at here, all by one
// goroutine. Of net/http's, requests without a body, and all of HTTP/2, need
// none of it; a plain one that is served without net/http always does.
// While there is nobody to look at, it sleeps.
type leavers struct {
	some chan struct{} // 1: there is somebody

	mu   sync.Mutex
	held []*held // guarded by mu
	turn int     // index of who is looked at next; guarded by mu
}

type held struct {
	conn   net.Conn
	cancel context.CancelCauseFunc
	at     int // its index; -1: it is not looked at any more
}

func newLeavers() *leavers {
	return &leavers{some: make(chan struct{}, 1)}
}

// connKey is the context key of the net.Conn that a request came over.
type connKey struct{}

// withConn is an http.Server's ConnContext.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// watch gives the context to hold a request by, which ends when its client
// leaves. stop must be called when the hold is over. unseen: nobody else sees it
// leave, whatever there is of a body.
func (l *leavers) watch(r *http.Request, unseen bool) (ctx context.Context, stop func()) {
	ctx = r.Context()
	if !unseen && (r.ProtoMajor != 1 || r.ContentLength == 0) {
		return ctx, func() {}
	}
	conn, ok := ctx.Value(connKey{}).(net.Conn)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h := &held{conn: conn, cancel: cancel}
	l.mu.Lock()
	h.at = len(l.held)
	l.held = append(l.held, h)
	l.mu.Unlock()
	nudge(l.some)
	return ctx, func() {
		l.mu.Lock()
		l.drop(h)
		l.mu.Unlock()
		cancel(nil)
	}
}

// drop looks at one no more; the last takes its place. Under the lock.
func (l *leavers) drop(h *held) {
	if h.at < 0 {
		return
	}
	last := len(l.held) - 1
	l.held[h.at] = l.held[last]
	l.held[h.at].at = h.at
	l.held[last] = nil
	l.held, h.at = l.held[:last], -1
}

func (l *leavers) run(ctx context.Context) {
	var next <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.some:
			if next == nil {
				next = time.After(leaveCheck)
			}
		case <-next:
			if next = nil; l.check() {
				next = time.After(leaveCheck)
			}
		}
	}
}

// nudge puts a value into a channel with room for one, unless it has it.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// check ends the hold of clients that have left, and reports whether any are
// held still.
func (l *leavers) check() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range min(len(l.held), leaveLooks) {
		if l.turn >= len(l.held) {
			l.turn = 0
		}
		h := l.held[l.turn]
		if !left(h.conn) {
			l.turn++
			continue
		}
		h.cancel(errLeft)
		l.drop(h)
	}
	return len(l.held) > 0
}
