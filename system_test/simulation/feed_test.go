package simulation

import (
	"cmp"
	"context"
	"slices"
	"time"
)

const (
	checkEvery = 15 * time.Second
	checkAgain = 250 * time.Millisecond
)

// A feed follows a stream as events/feed.go does: news as it comes, and the
// stream itself where the sequence shows that something is missing, after
// each reconnect, and every 15 s.
type feed struct {
	conn   *conn
	stream *stream
	inbox  chan record
	again  chan struct{}
	take   func(r record, at time.Time)
	reset  func() // may be nil

	after    uint64
	newest   time.Time
	created  int
	upTo     int  // the connection that the last complete reading began on; guarded by world.mu
	troubled bool // the last reading failed
}

// newFeed subscribes; under no lock. The feed ends its subscription when run
// returns.
func newFeed(c *conn, s *stream, take func(record, time.Time), reset func()) *feed {
	f := &feed{conn: c, stream: s, inbox: make(chan record, 4096), again: make(chan struct{}, 1), take: take, reset: reset}
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	s.feeds = append(s.feeds, f)
	c.again = append(c.again, f.again)
	return f
}

func (f *feed) put(r record) {
	select {
	case f.inbox <- r:
	default: // a slow consumer loses, and finds the gap
	}
}

func (f *feed) run(ctx context.Context) {
	defer f.leave()
	check := time.NewTimer(f.conn.w.dice.between(about{"first reading", f.conn.name, f.stream.name}, 0, time.Millisecond))
	defer check.Stop()
	for {
		stale := true
		select {
		case r := <-f.inbox:
			stale = f.hear(r)
		case <-f.again:
		case <-check.C:
		case <-ctx.Done():
			return
		}
		if stale {
			check.Reset(f.read(ctx))
		}
	}
}

func (f *feed) leave() {
	f.conn.w.mu.Lock()
	defer f.conn.w.mu.Unlock()
	for i, other := range f.stream.feeds {
		if other == f {
			f.stream.feeds = append(f.stream.feeds[:i:i], f.stream.feeds[i+1:]...)
			return
		}
	}
}

// hear takes a live record, and reports whether the stream has to be read.
func (f *feed) hear(r record) (stale bool) {
	switch {
	case f.blind():
		f.after = max(f.after, r.seq)
	case r.seq == f.after+1:
		f.after = r.seq
	case r.seq <= f.after:
		return r.at.After(f.newest)
	default:
		stale = !f.troubled
	}
	f.accept(r, time.Now())
	return stale
}

// blind is what a mutant is to what it has missed.
func (f *feed) blind() bool { return f.conn.w.mutant.blindFeed && f.reset != nil }

func (f *feed) accept(r record, at time.Time) {
	if r.at.After(f.newest) {
		f.newest = r.at
	}
	f.take(r, at)
}

// A page is what a stream says when it is read.
type page struct {
	created int
	last    uint64
	now     time.Time
	records []record
}

// read catches up with the stream, and says when to do so again.
func (f *feed) read(ctx context.Context) time.Duration {
	w := f.conn.w
	w.mu.Lock()
	connection := f.conn.number
	w.mu.Unlock()
	p, err := call(ctx, f.conn, about{"read " + f.stream.name, f.conn.name, ""}, f.stream.read)
	if f.troubled = err != nil; f.troubled {
		return checkAgain + w.dice.between(about{"read again", f.conn.name, f.stream.name}, 0, time.Millisecond)
	}
	if f.blind() && f.created != 0 {
		return checkEvery
	}
	f.turn(p)
	w.mu.Lock()
	f.upTo = connection
	w.mu.Unlock()
	return checkEvery
}

func (s *stream) read() (page, error) {
	p := page{s.created, s.last, time.Now(), nil}
	for _, r := range s.latest {
		p.records = append(p.records, r)
	}
	slices.SortFunc(p.records, func(a, b record) int { return cmp.Compare(a.seq, b.seq) })
	return p, nil
}

// turn takes in what was read.
func (f *feed) turn(p page) {
	if f.created != 0 && f.created != p.created {
		for len(f.inbox) > 0 {
			<-f.inbox
		}
		f.after, f.newest = 0, time.Time{}
		if f.reset != nil {
			f.reset()
		}
	}
	f.created = p.created
	now := time.Now()
	for _, r := range p.records {
		if r.seq > f.after {
			f.accept(r, now.Add(-p.now.Sub(r.at)))
		}
	}
	f.after = max(f.after, p.last)
}
