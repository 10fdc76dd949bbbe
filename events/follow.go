package events

import (
	"context"

	"github.com/rouse-dev/rouse/workload"
)

// FollowStates hands every state to h: first all that are stored, then each
// write as it happens. It never misses a last value; it may hand one over
// twice, or an older one after a newer one, and State.Revision tells. reset
// (which may be nil) is called when the store was made anew, so that
// revisions begin again; all states follow it. h and reset are called by one
// goroutine, which they hold up. FollowStates blocks until ctx ends and
// returns nil, or ErrDenied, or ErrClosed; all else it mends itself.
func (b *Bus) FollowStates(ctx context.Context, h func(workload.State), reset func()) error {
	f := &feed{
		bus: b, stream: streamStates, source: keyStates + ".>", live: subjectState + ".>", kind: "state",
		reset: reset,
		take: func(r record) {
			s, err := decodeState(r)
			if err != nil {
				b.skip("state", r.subject, err)
				return
			}
			h(s)
		},
	}
	return f.run(ctx)
}
