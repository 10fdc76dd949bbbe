package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// newsEvery is how often frames are made while somebody looks.
	newsEvery = 150 * time.Millisecond
	// newsEvents bounds the events of a frame, and newsWakes its cold starts:
	// nobody reads more. The newest are kept.
	newsEvents = 50
	newsWakes  = 50
	// newsPast is how much of the past a new viewer gets.
	newsPast = 100
	// newsBehind is how many frames a slow viewer may be behind before it
	// gets the whole anew.
	newsBehind = 32
)

// A Frame is what has changed since the frame before, in one message of GET
// /api/v1/live. The first has everything.
type Frame struct {
	At time.Time `json:"at"`
	// Whole says that what is not in it is gone.
	Whole     bool              `json:"whole,omitempty"`
	Workloads []json.RawMessage `json:"workloads,omitempty"` // each a Workload
	Gone      []string          `json:"gone,omitempty"`
	// Problems are all there are; null: as before.
	Problems json.RawMessage `json:"problems,omitempty"`
	Wakes    []Wake          `json:"wakes,omitempty"`
	Events   []Event         `json:"events,omitempty"`
	// Missed is how many events were left out.
	Missed int `json:"missed,omitempty"`
}

// News are the frames, made once for all who look, and only while somebody
// does.
type news struct {
	backend Backend

	mu      sync.Mutex
	viewers int
	cancel  context.CancelFunc
	frames  [][]byte // the last ones, the oldest first; guarded by mu
	next    int      // number of the next frame; guarded by mu
	more    chan struct{}
	known   board   // what the frames so far have told; guarded by mu
	heard   []Event // since the last frame; guarded by mu
	missed  int     // guarded by mu
}

// A board is the present as it was told.
type board struct {
	workloads map[string]json.RawMessage
	order     []string
	problems  json.RawMessage
}

func newNews(b Backend) *news { return &news{backend: b} }

// join begins to look: everything there is, and the number of the first frame
// behind it.
func (n *news) join(ctx context.Context) (whole []byte, next int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.viewers == 0 {
		if err := n.begin(ctx); err != nil {
			return nil, 0, err
		}
	}
	n.viewers++
	return n.whole(), n.next, nil
}

// begin looks for the first viewer. Under the lock.
func (n *news) begin(ctx context.Context) error {
	n.frames, n.known, n.heard, n.missed = nil, board{workloads: map[string]json.RawMessage{}}, nil, 0
	n.more = make(chan struct{})
	if _, err := n.compare(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel = cancel
	go n.listen(ctx)
	go n.run(ctx)
	return nil
}

// leave looks no more.
func (n *news) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.viewers--; n.viewers == 0 {
		n.cancel()
	}
}

// listen takes in the events; of those that come faster than anybody reads,
// the newest.
func (n *news) listen(ctx context.Context) {
	_ = n.backend.Events(ctx, EventQuery{Follow: true}, func(e Event) error { // it ends with ctx
		n.mu.Lock()
		defer n.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n.heard = append(n.heard, e); len(n.heard) > 2*newsEvents {
			n.missed += newsEvents
			n.heard = slices.Clone(n.heard[newsEvents:])
		}
		return nil
	})
}

func (n *news) run(ctx context.Context) {
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.frame(ctx)
		}
	}
}

// frame makes one if anything has changed.
func (n *news) frame(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return // others look by now, or nobody
	}
	f, err := n.compare(ctx)
	if err != nil {
		return // the next may come about
	}
	f.Events, f.Missed = n.heard, n.missed
	n.heard, n.missed = nil, 0
	if over := len(f.Events) - newsEvents; over > 0 {
		f.Events, f.Missed = f.Events[over:], f.Missed+over
	}
	f.Wakes = n.wakesOf(ctx, f.Events)
	f.Events = brief(f.Events)
	if f.Workloads == nil && f.Gone == nil && f.Problems == nil && f.Events == nil {
		return
	}
	n.publish(f)
}

// brief leaves the cold starts out, which the frame has for themselves.
func brief(events []Event) []Event {
	for i := range events {
		if w := events[i].Wake; w != nil {
			events[i].Wake = &Wake{ID: w.ID, Workload: w.Workload, Trigger: w.Trigger, Phases: []WakePhase{}}
		}
	}
	return events
}

// wakesOf gives the records that the events tell of, the newest last.
func (n *news) wakesOf(ctx context.Context, events []Event) []Wake {
	var wakes []Wake
	seen := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if e.Wake == nil || seen[e.Wake.ID] || len(wakes) == newsWakes {
			continue
		}
		seen[e.Wake.ID] = true
		if w, err := n.backend.WakeByID(ctx, e.Wake.ID); err == nil {
			wakes = append(wakes, w)
		}
	}
	slices.Reverse(wakes)
	return wakes
}

// compare finds what has changed since it was called last. Under the lock.
func (n *news) compare(ctx context.Context) (Frame, error) {
	list, err := n.backend.Workloads(ctx)
	if err != nil {
		return Frame{}, err
	}
	problems := append([]workload.Problem{}, n.backend.Problems(ctx)...)
	f := Frame{At: time.Now()}
	n.known.order = n.known.order[:0]
	there := make(map[string]bool, len(list))
	for _, w := range list {
		w = complete(w, problems)
		w.LastRequestAt, w.SleepsAt = w.LastRequestAt.Truncate(time.Second), w.SleepsAt.Truncate(time.Second)
		text, err := json.Marshal(w)
		if err != nil {
			return Frame{}, fmt.Errorf("encode %s: %w", w.Name, err)
		}
		there[w.Name] = true
		n.known.order = append(n.known.order, w.Name)
		if !bytes.Equal(text, n.known.workloads[w.Name]) {
			n.known.workloads[w.Name] = text
			f.Workloads = append(f.Workloads, text)
		}
	}
	for name := range n.known.workloads {
		if !there[name] {
			delete(n.known.workloads, name)
			f.Gone = append(f.Gone, name)
		}
	}
	text, err := json.Marshal(problems)
	if err != nil {
		return Frame{}, fmt.Errorf("encode problems: %w", err)
	}
	if !bytes.Equal(text, n.known.problems) {
		n.known.problems, f.Problems = text, text
	}
	return f, nil
}

// publish hands a frame over to who looks. Under the lock.
func (n *news) publish(f Frame) {
	text, err := json.Marshal(f)
	if err != nil {
		return // what it is made of has been encoded before
	}
	n.frames = append(n.frames, text)
	if len(n.frames) > newsBehind {
		n.frames = slices.Clone(n.frames[1:])
	}
	n.next++
	close(n.more)
	n.more = make(chan struct{})
}

// whole is everything that was told so far, with some of the past. Under the
// lock.
func (n *news) whole() []byte {
	f := Frame{At: time.Now(), Whole: true, Problems: n.known.problems}
	for _, name := range n.known.order {
		f.Workloads = append(f.Workloads, n.known.workloads[name])
	}
	if wakes, err := n.backend.Wakes(context.Background()); err == nil {
		wakes = wakes[:min(len(wakes), newsPast)]
		f.Wakes = slices.Clone(wakes)
		slices.Reverse(f.Wakes)
	}
	_ = n.backend.Events(context.Background(), EventQuery{Last: newsPast}, func(e Event) error { // the past does not fail
		f.Events = append(f.Events, e)
		return nil
	})
	f.Events = brief(f.Events)
	text, _ := json.Marshal(f) // what it is made of has been encoded before
	return text
}

// from gives the frames from number next on, the number to go on with, and a
// channel that is closed once there are more. Who is too far behind gets the
// whole.
func (n *news) from(next int) (frames [][]byte, after int, more <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := n.next - len(n.frames)
	if next < first {
		return [][]byte{n.whole()}, n.next, n.more
	}
	return slices.Clone(n.frames[next-first:]), n.next, n.more
}

// live streams frames as server-sent events, until the viewer leaves.
func (s *server) live(w http.ResponseWriter, r *http.Request) error {
	if r.Method == http.MethodHead {
		beginStream(w)
		return nil
	}
	whole, next, err := s.news.join(r.Context())
	if err != nil {
		return fmt.Errorf("list workloads: %w", err)
	}
	defer s.news.leave()
	out := beginStream(w)
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for frames := [][]byte{whole}; ; {
		for _, f := range frames {
			if err := out.write(fmt.Sprintf("event: frame\ndata: %s\n\n", f)); err != nil {
				return nil // the viewer is gone
			}
		}
		var more <-chan struct{}
		frames, next, more = s.news.from(next)
		if len(frames) > 0 {
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			if err := out.write(": still here\n\n"); err != nil {
				return nil // the viewer is gone
			}
		case <-r.Context().Done():
			return nil
		}
	}
}
