package events

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// lostGrace is how long workloads are kept that were in a store which was
// made anew: its scalers need a moment to write them again, and a gateway
// that forgot them meanwhile would turn requests away.
const lostGrace = 30 * time.Second

// FollowWorkloads hands the whole list, sorted by name, to h: first what is
// stored (which may be nothing), then after every change; changes close in
// time come as one. It never misses the last list. When the store was made
// anew, workloads that were in the old one are kept for 30 s, within which
// their scalers write them again. h is called by one goroutine and must not
// change the list it gets. FollowWorkloads blocks until ctx ends and returns
// nil, or ErrDenied, or ErrClosed.
func (b *Bus) FollowWorkloads(ctx context.Context, h func([]workload.Workload)) error {
	c := &catalog{known: map[string]workload.Workload{}, tell: h, grace: b.lostGrace, changed: true}
	f := &feed{
		bus: b, stream: streamWorkloads, source: keyWorkloads + ".>", live: subjectWorkload + ".>", kind: "workload",
		reset:   c.lose,
		settled: c.settle,
		idle:    c.expire,
		take: func(r record) {
			if err := c.take(r); err != nil {
				b.skip("workload", r.subject, err)
			}
		},
	}
	return f.run(ctx)
}

// A catalog is the list as it grows. It belongs to its feed's goroutine.
type catalog struct {
	known   map[string]workload.Workload // name -> workload
	lost    map[string]struct{}          // names not seen again since the store was made anew
	until   time.Time                    // when the lost ones are given up
	grace   time.Duration
	changed bool
	tell    func([]workload.Workload)
}

func (c *catalog) take(r record) error {
	name, err := parseName(keyWorkloads, r.subject)
	if err != nil {
		return err
	}
	delete(c.lost, name)
	c.changed = true
	if r.deleted() {
		delete(c.known, name)
		return nil
	}
	w, err := decodeWorkload(r)
	if err != nil {
		return err
	}
	c.known[name] = w
	return nil
}

// lose begins the grace of all that is known.
func (c *catalog) lose() {
	c.lost = map[string]struct{}{}
	for name := range c.known {
		c.lost[name] = struct{}{}
	}
	c.until = time.Now().Add(c.grace)
}

// expire gives up what was not written again.
func (c *catalog) expire() {
	if len(c.lost) == 0 || time.Now().Before(c.until) {
		return
	}
	for name := range c.lost {
		delete(c.known, name)
	}
	c.lost, c.changed = nil, true
	c.settle()
}

func (c *catalog) settle() {
	if !c.changed {
		return
	}
	c.changed = false
	list := make([]workload.Workload, 0, len(c.known))
	for _, name := range slices.Sorted(maps.Keys(c.known)) {
		list = append(list, c.known[name])
	}
	c.tell(list)
}
