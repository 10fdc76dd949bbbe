package simulation

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

const (
	ackWait  = 5 * time.Second
	wakeLife = 2 * time.Minute
)

// wakes is the work queue: one message for each workload at most, pending or
// in work; a second is refused. It is guarded by world.mu.
type wakes struct {
	w       *world
	last    uint64
	queued  map[string]*wake // workload -> its message
	servers []*wakeServer    // who is bound
}

// A wake is one message.
type wake struct {
	seq    uint64
	body   workload.Wake
	stored time.Time
	turn   int  // grows with all that is done to it: what was planned before is void
	idle   bool // there was nobody to hand it to
}

func newWakes(w *world) *wakes { return &wakes{w: w, queued: map[string]*wake{}} }

func (q *wakes) renew() { clear(q.queued) }

// publish stores a wake, unless there is one.
func (q *wakes) publish(body workload.Wake) {
	if m := q.queued[body.Workload]; m != nil && time.Since(m.stored) < wakeLife {
		return
	}
	q.last++
	m := &wake{seq: q.last, body: body, stored: time.Now()}
	q.queued[body.Workload] = m
	q.hand(m)
}

func (q *wakes) about(what string, m *wake) about { return about{what, "bus", m.body.Workload} }

// hand gives a message to one of the servers, and again if nothing is heard.
func (q *wakes) hand(m *wake) {
	m.turn++
	var bound []*wakeServer
	for _, s := range q.servers {
		if s.conn.connected {
			bound = append(bound, s)
		}
	}
	slices.SortFunc(bound, func(a, b *wakeServer) int { return cmp.Compare(a.conn.name, b.conn.name) })
	if m.idle = len(bound) == 0 || !q.w.bus.up; !m.idle {
		s, body, seq := bound[q.w.dice.pick(q.about("server of wake", m), len(bound))], m.body, m.seq
		s.conn.deliver("wake", body.Workload, func() { s.begin(body, seq) })
	}
	q.again(m, ackWait)
}

// again plans the next delivery.
func (q *wakes) again(m *wake, after time.Duration) {
	turn := m.turn
	time.AfterFunc(after+q.w.dice.between(q.about("ack wait", m), 0, 10*time.Millisecond), func() {
		q.w.mu.Lock()
		defer q.w.mu.Unlock()
		if q.queued[m.body.Workload] != m || m.turn != turn {
			return
		}
		if q.w.mutant.noRedelivery && after == ackWait {
			return
		}
		q.hand(m)
	})
}

// resume hands out what is there: the server has started, or somebody bound.
func (q *wakes) resume() {
	for _, m := range q.queued {
		if m.idle {
			q.hand(m)
		}
	}
}

// told takes in what became of a message.
func (q *wakes) told(name string, seq uint64, what string, after time.Duration) {
	m := q.queued[name]
	if m == nil || m.seq != seq {
		return
	}
	m.turn++
	switch what {
	case "ack":
		delete(q.queued, name)
	case "nak":
		q.again(m, after)
	case "in progress":
		q.again(m, ackWait)
	}
}

// A wakeServer hands wakes to a scaler, as events/serve.go does.
type wakeServer struct {
	conn   *conn
	handle func(context.Context, workload.Wake) scaler.Verdict

	ctx     context.Context // of the handlers
	ended   bool            // guarded by world.mu
	running sync.WaitGroup  // handlers; Add only under world.mu
}

func (s *wakeServer) run(ctx context.Context) {
	w := s.conn.w
	w.mu.Lock()
	s.ctx = ctx
	w.bus.wakes.servers = append(w.bus.wakes.servers, s)
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	s.ended = true
	q := w.bus.wakes
	for i, other := range q.servers {
		if other == s {
			q.servers = append(q.servers[:i:i], q.servers[i+1:]...)
			break
		}
	}
	w.mu.Unlock()
	s.running.Wait()
}

func (s *wakeServer) begin(body workload.Wake, seq uint64) {
	s.conn.w.mu.Lock()
	ended := s.ended
	if !ended {
		s.running.Add(1)
	}
	s.conn.w.mu.Unlock()
	if ended {
		s.tell(body.Workload, seq, "nak", retryPause)
		return
	}
	defer s.running.Done()
	s.serve(body, seq)
}

func (s *wakeServer) serve(body workload.Wake, seq uint64) {
	verdict := make(chan scaler.Verdict, 1)
	s.running.Go(func() { verdict <- s.handle(s.ctx, body) })
	alive := time.NewTicker(ackWait / 3)
	defer alive.Stop()
	for {
		select {
		case v := <-verdict:
			s.answer(body.Workload, seq, v)
			return
		case <-alive.C:
			s.tell(body.Workload, seq, "in progress", 0)
		}
	}
}

func (s *wakeServer) answer(name string, seq uint64, v scaler.Verdict) {
	switch {
	case v.Kind != scaler.Later:
		s.tell(name, seq, "ack", 0)
	case s.ctx.Err() != nil:
		s.tell(name, seq, "nak", 0)
	default:
		s.tell(name, seq, "nak", v.After)
	}
}

// tell answers the queue; an answer that is lost makes the wake come again.
func (s *wakeServer) tell(name string, seq uint64, what string, after time.Duration) {
	w := s.conn.w
	w.note(s.conn.name, "wake %s of %s: %s %v", strconv.FormatUint(seq, 10), name, what, after)
	_ = s.conn.send("wake "+what, name, func() { w.bus.wakes.told(name, seq, what, after) })
}
