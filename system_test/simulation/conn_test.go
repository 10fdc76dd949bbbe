package simulation

import (
	"context"
	"errors"
	"time"
)

const (
	attemptLimit = 500 * time.Millisecond // one question to the bus
	publishLimit = 500 * time.Millisecond // a write that may be repeated, a reading
	retryPause   = 50 * time.Millisecond
)

var (
	errDisconnected = errors.New("not connected")
	errTimeout      = errors.New("no answer in time")
)

// A conn is the connection of one node to the bus. All of its fields are
// guarded by world.mu, but for those that never change.
type conn struct {
	w    *world
	name string // never changes; of the place, so that chance is the same for who comes later

	cut       bool // nothing passes, and neither side is told
	dead      bool // its process is gone: nothing leaves any more, nothing is taken in
	connected bool // as far as the client knows
	number    int  // of this connection; grows with each
	boot      int  // of the bus that it was made to

	again       []chan struct{} // rung after each reconnect
	onConnected []func()        // never changes once it connects
}

// connect begins to try, for as long as the node lives.
func (w *world) connect(c *conn) {
	w.bus.conns = append(w.bus.conns, c)
	c.tryLater(time.Millisecond)
}

func (c *conn) tryLater(most time.Duration) {
	time.AfterFunc(c.w.dice.between(about{"connect", c.name, ""}, most/4, most), c.try)
}

func (c *conn) try() {
	c.w.mu.Lock()
	switch {
	case c.dead || c.connected:
		c.w.mu.Unlock()
		return
	case c.cut || !c.w.bus.up:
		c.w.mu.Unlock()
		c.tryLater(250 * time.Millisecond)
		return
	}
	c.connected, c.boot = true, c.w.bus.boots
	c.number++
	again, told := c.again, c.onConnected
	c.w.mu.Unlock()
	c.w.note(c.name, "connected")
	for _, ring := range again {
		poke(ring)
	}
	for _, f := range told {
		f()
	}
}

// drop ends the connection as the client sees it. Under world.mu.
func (c *conn) drop() {
	if !c.connected || c.dead {
		return
	}
	c.connected = false
	c.w.note(c.name, "disconnected")
	c.tryLater(250 * time.Millisecond)
}

// part cuts the link; the client notices after a while. Under world.mu.
func (c *conn) part() {
	c.cut = true
	n := c.number
	time.AfterFunc(c.w.dice.between(about{"notice", c.name, ""}, 10*time.Millisecond, 4*time.Second), func() {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if c.cut && c.number == n {
			c.drop()
		}
	})
}

// mend makes the link whole again. Under world.mu.
func (c *conn) mend() {
	c.cut = false
	if !c.w.bus.up || c.boot != c.w.bus.boots {
		c.drop()
	}
}

// through reports whether what was sent over connection n passes now. Under
// world.mu.
func (c *conn) through(n int) bool {
	return !c.cut && c.w.bus.up && c.number == n && c.boot == c.w.bus.boots
}

// send takes a message to the bus; arrive runs under world.mu, or never.
func (c *conn) send(what, whom string, arrive func()) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.dead || !c.connected {
		return errDisconnected
	}
	n, a := c.number, about{what, c.name, whom}
	if detail {
		c.w.note(c.name, "sends %s %s", what, whom)
	}
	if c.w.lost(a) {
		return nil
	}
	time.AfterFunc(c.w.delay(a), func() {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		if c.through(n) {
			arrive()
		}
	})
	return nil
}

// deliver takes a message from the bus to the node; f runs under no lock, or
// never. Under world.mu.
func (c *conn) deliver(what, whom string, f func()) {
	n, a := c.number, about{what, c.name, whom}
	if !c.connected || !c.through(n) || c.w.lost(a) {
		return
	}
	c.w.later(c.w.delay(a), func() bool { return !c.dead && c.connected && c.through(n) }, f)
}

// later runs f after d, under no lock, if ok says so under world.mu.
func (w *world) later(d time.Duration, ok func() bool, f func()) {
	time.AfterFunc(d, func() {
		w.mu.Lock()
		still := ok()
		w.mu.Unlock()
		if still {
			f()
		}
	})
}

// call asks the bus and waits for the answer. serve runs under world.mu. An
// error that is not errDisconnected leaves open whether it ran.
func call[T any](ctx context.Context, c *conn, a about, serve func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	var none T
	answers := make(chan answer, 2)
	err := c.send(a.what, a.whom, func() {
		v, err := serve()
		c.deliver(a.what+" answer", a.whom, func() { answers <- answer{v, err} })
	})
	if err != nil {
		return none, err
	}
	limit := time.NewTimer(c.w.dice.between(about{a.what + " limit", c.name, a.whom}, attemptLimit, attemptLimit+time.Millisecond))
	defer limit.Stop()
	select {
	case got := <-answers:
		return got.value, got.err
	case <-limit.C:
		return none, errTimeout
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// retry calls until there is an answer, or the time is over.
func retry[T any](ctx context.Context, c *conn, a about, serve func() (T, error)) (T, error) {
	limit := c.w.dice.between(about{a.what + " budget", c.name, a.whom}, publishLimit, publishLimit+time.Millisecond)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		v, err := call(ctx, c, a, serve)
		if err == nil || !c.w.rest(ctx, about{a.what + " pause", c.name, a.whom}, retryPause) {
			return v, err
		}
	}
}

// rest waits about d, and reports whether ctx still stands.
func (w *world) rest(ctx context.Context, a about, d time.Duration) bool {
	return pause(ctx, w.dice.between(a, d, d+d/8))
}

// pause waits, and reports whether ctx still stands.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func poke(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}
