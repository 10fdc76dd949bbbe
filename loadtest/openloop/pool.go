//go:build linux

package openloop

import "time"

// A pool is the connections of a run. Which is taken goes round, so that all
// of them are in use at any rate, as those of many clients are.
type pool struct {
	conns []conn
	free  []int // slots that are idle, the longest so first: a ring
	first int
	count int
	empty []int // slots without a connection

	blocked bool          // the last request found no slot
	freedAt time.Duration // when that last came to an end
}

func newPool(size int) *pool {
	p := &pool{conns: make([]conn, size), free: make([]int, size), empty: make([]int, 0, size)}
	for i := range p.conns {
		p.conns[i].slot, p.conns[i].fd = i, -1
		p.empty = append(p.empty, i)
	}
	return p
}

// available tells whether take gives one.
func (p *pool) available() bool { return p.count > 0 || len(p.empty) > 0 }

// take gives a slot for a request: one that is connected, if there is one;
// nil if all are busy.
func (p *pool) take() *conn {
	switch {
	case p.count > 0:
		slot := p.free[p.first]
		p.first = (p.first + 1) % len(p.free)
		p.count--
		return &p.conns[slot]
	case len(p.empty) > 0:
		slot := p.empty[len(p.empty)-1]
		p.empty = p.empty[:len(p.empty)-1]
		return &p.conns[slot]
	default:
		p.blocked = true
		return nil
	}
}

// give back a slot that is idle or empty now.
func (p *pool) give(c *conn, now time.Duration) {
	if p.blocked {
		p.blocked, p.freedAt = false, now
	}
	if c.state == empty {
		p.empty = append(p.empty, c.slot)
		return
	}
	p.free[(p.first+p.count)%len(p.free)] = c.slot
	p.count++
}

// drop takes out an idle slot whose connection has ended.
func (p *pool) drop(c *conn) {
	kept := 0
	for i := range p.count {
		slot := p.free[(p.first+i)%len(p.free)]
		if slot != c.slot {
			p.free[(p.first+kept)%len(p.free)] = slot
			kept++
		}
	}
	p.count = kept
}
