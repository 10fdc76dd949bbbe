package router

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	defaultBodyTimeout  = time.Minute
	defaultWriteTimeout = time.Minute
	// bodyStep is what a client has to send of a body within the body timeout,
	// as long as there is that much to come. The waits for a workload that
	// does not read are not the client's.
	bodyStep = 4 << 10
)

// A watch bounds how long a client may block one direction of its connection
// or stream. It costs the hot path no system call.
type watch struct {
	limit time.Duration
	cut   func() error // has the blocked call end in an error
	timer *time.Timer
	ran   atomic.Bool
}

func newWatch(limit time.Duration, cut func() error) *watch {
	w := &watch{limit: limit, cut: cut}
	w.timer = time.AfterFunc(limit, func() {
		w.ran.Store(true)
		_ = w.cut() // what cannot be cut off has ended
	})
	w.timer.Stop()
	return w
}

// A patience is what a client has left to send the next step of its body.
type patience struct {
	watch *watch
	spent time.Duration
	got   int
}

// newPatience is for bodies whose length was said: to send one of unknown
// length slowly may be its nature.
// cut ends a read that waits.
func newPatience(limit time.Duration, cut func() error) *patience {
	return &patience{watch: newWatch(limit, cut)}
}

// read reads within what is left.
func (p *patience) read(read func() (int, error)) (int, error) {
	began := time.Now()
	p.watch.timer.Reset(max(time.Nanosecond, p.watch.limit-p.spent))
	n, err := read()
	p.watch.timer.Stop()
	p.spent += time.Since(began)
	if p.got += n; p.got >= bodyStep {
		p.spent, p.got = 0, 0
	}
	return n, err
}

// tooSlow reports that it has run out.
func (p *patience) tooSlow() bool { return p != nil && p.watch.ran.Load() }

// unblocked writes to the client; over HTTP/2, where the connection may be
// fine and only this stream not read, no longer than the client may block.
// Connections are watched by their door.
func (x *exchange) unblocked(write func()) {
	if x.req.ProtoMajor != 2 {
		write()
		return
	}
	if x.stall == nil {
		flow := http.NewResponseController(x.w)
		x.stall = newWatch(x.router.writeTimeout, func() error { return flow.SetWriteDeadline(time.Unix(1, 0)) })
	}
	x.stall.timer.Reset(x.stall.limit)
	write()
	x.stall.timer.Stop()
}
