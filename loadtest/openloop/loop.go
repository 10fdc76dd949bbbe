//go:build linux

package openloop

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

const (
	// batch is how many requests are sent, or events are seen to, before the
	// loop looks at the other.
	batch = 8
	// patrol is how often the loop looks for what has timed out, for a
	// second's end and for the end of ctx.
	patrol = 20 * time.Millisecond
	// prefetch bounds the time in which the connections are made before the
	// start.
	prefetch = 5 * time.Second
)

// A loop is a run over HTTP/1.1.
type loop struct {
	*book
	*pool
	poller  *poller
	address *net.TCPAddr
	targets []target
	fresh   bool

	sends    schedule.Next // reads the schedule as requests are sent
	due      schedule.Arrival
	left     bool
	number   uint64
	patrolAt time.Duration
	input    [64 << 10]byte
}

func runLoop(b *book, address *net.TCPAddr, targets []target) error {
	poller, err := newPoller()
	if err != nil {
		return err
	}
	defer poller.close()
	l := &loop{
		book: b, pool: newPool(b.cfg.Conns), poller: poller, address: address, targets: targets,
		fresh: b.cfg.Protocol == Fresh, number: firstID(),
	}
	defer l.closeAll()
	if b.cfg.Upstream != nil {
		if err := b.cfg.Upstream.attach(l); err != nil {
			return err
		}
		defer b.cfg.Upstream.closeAll()
	}
	b.began = time.Now() // for the clock; open sets it
	if !l.fresh {
		if err := l.connectAll(); err != nil {
			return err
		}
	}
	l.sends = b.cfg.Schedule.Arrivals()
	l.due, l.left = l.sends()
	b.open()
	return l.run()
}

// connectAll makes the connections; those that cannot be made are left to
// the requests, of which each then has a reason of its own.
func (l *loop) connectAll() error {
	for range l.cfg.Conns {
		l.connect(l.take())
	}
	for {
		waiting := 0
		for i := range l.conns {
			if l.conns[i].state == connecting {
				waiting++
			}
		}
		if waiting == 0 || l.now() > prefetch || l.stop.Load() {
			return nil
		}
		if err := l.see(patrol); err != nil {
			return err
		}
	}
}

func (l *loop) closeAll() {
	for i := range l.conns {
		c := &l.conns[i]
		if c.request {
			l.book.finish(c.send, end{outcome: Unfinished})
		}
		c.hangUp(l.fresh)
	}
}

func (l *loop) run() error {
	for l.left || l.inFlight > 0 {
		if err := l.see(l.sleep()); err != nil {
			return err
		}
		l.dispatch()
		if now := l.now(); now >= l.patrolAt {
			l.patrolAt = now + patrol
			l.look(now)
			l.tick(now)
			l.expire(now)
			if l.ended(now) {
				return nil
			}
		}
	}
	return nil
}

// sleep is how long there is nothing to do but for what comes.
func (l *loop) sleep() time.Duration {
	now := l.now()
	d := l.patrolAt - now
	if l.left && l.available() {
		d = min(d, l.due.At-now-l.cfg.Spin)
	}
	if u := l.cfg.Upstream; u != nil {
		if at, some := u.due(); some {
			d = min(d, at-now)
		}
	}
	return d
}

// see to what comes within d.
func (l *loop) see(d time.Duration) error {
	events, err := l.poller.wait(d)
	if err != nil {
		return err
	}
	for i, event := range events {
		l.event(event)
		if i%batch == batch-1 {
			l.dispatch()
		}
	}
	if l.cfg.Upstream != nil {
		l.cfg.Upstream.answer()
	}
	return nil
}

func (l *loop) event(event unix.EpollEvent) {
	if event.Fd < 0 {
		l.cfg.Upstream.handle(int(-1 - event.Fd))
		return
	}
	c := &l.conns[event.Fd]
	if c.generation == event.Pad && c.fd >= 0 {
		l.handle(c, event.Events)
	}
}

// dispatch sends what is due, but no more than a batch.
func (l *loop) dispatch() {
	for range batch {
		if !l.left {
			return
		}
		now := l.now()
		if l.due.At > now {
			return
		}
		l.look(now)
		c := l.take()
		if c == nil {
			return
		}
		l.begin(c, now)
		l.due, l.left = l.sends()
	}
}

// begin the request that is due, on a slot.
func (l *loop) begin(c *conn, now time.Duration) {
	l.number++
	c.request = true
	c.send = send{due: l.due.At, sent: now, own: now - max(l.due.At, l.freedAt)}
	c.load(&l.targets[l.due.Target%len(l.targets)], http1.NewID(l.number))
	l.book.start(c.send)
	if c.state == empty {
		l.connect(c)
		return
	}
	c.state = busy
	l.write(c)
}

func (l *loop) connect(c *conn) {
	l.result.DialsMeasured++
	c.state = connecting
	connected, err := c.dial(l.address)
	if err == nil {
		err = l.poller.watch(unix.EPOLL_CTL_ADD, c, toRead|toWrite)
	}
	switch {
	case err != nil:
		l.unconnected(c, err)
	case connected:
		l.connected(c)
	}
}

func (l *loop) unconnected(c *conn, err error) {
	outcome := Unreachable
	if errors.Is(err, unix.ECONNREFUSED) {
		outcome = Refused
	}
	l.fail(c, outcome, err)
}

func (l *loop) connected(c *conn) {
	if err := l.poller.watch(unix.EPOLL_CTL_MOD, c, toRead); err != nil {
		l.unconnected(c, err)
		return
	}
	if !c.request {
		c.state = idle
		l.give(c, l.now())
		return
	}
	c.state = busy
	l.write(c)
}

func (l *loop) write(c *conn) {
	err := c.write()
	if waits := c.unsent(); err == nil && waits != c.writing {
		events := uint32(toRead)
		if waits {
			events |= toWrite
		}
		c.writing = waits
		err = l.poller.watch(unix.EPOLL_CTL_MOD, c, events)
	}
	if err != nil {
		l.fail(c, Cut, err)
	}
}

func (l *loop) handle(c *conn, events uint32) {
	switch {
	case c.state == connecting:
		if err := c.refusal(); err != nil {
			l.unconnected(c, err)
			return
		}
		l.connected(c)
		return
	case c.state == idle:
		l.surprise(c)
		return
	case events&^toWrite != 0:
		l.read(c)
	}
	if c.state == busy && c.writing && events&toWrite != 0 {
		l.write(c)
	}
}
