package events

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// checkEvery is how often a follower looks whether it has missed
	// anything: one request. It mends what nobody told it of.
	checkEvery = 15 * time.Second
	// checkAgain is how soon it looks again when it could not.
	checkAgain = 250 * time.Millisecond
	// catchUpTries bounds how often a replica that lags is asked again.
	catchUpTries = 5
	catchUpPause = 20 * time.Millisecond
	// shrunkMost is how often in a row a stream must be shorter than what it
	// gave before it counts as replaced: a new leader may need a moment.
	shrunkMost = 3
	// settleAfter is how long changes may be put together.
	settleAfter = 25 * time.Millisecond
)

// A feed follows one stream whose writes the server re-publishes: live
// messages come by a core subscription, which no restart breaks, and whatever
// they left out is read from the stream. Sequences have no gaps, so a gap
// tells that something is missing.
//
// A feed belongs to the goroutine that runs it.
type feed struct {
	bus    *Bus
	stream string
	source string // the stream's subjects
	live   string // where the server re-publishes them
	kind   string // for the lag
	// ordered: no record twice and none before an earlier one. Without it a
	// record that arrives while the stream cannot be read is not held back.
	ordered bool
	// take gets each record.
	take func(record)
	// reset is told that the stream was made anew: sequences begin again, and
	// all of it follows. nil ignores it.
	reset func()
	// settled is told that the records taken since are all for now: after
	// each complete reading, and settleAfter after the first live one. nil
	// ignores it.
	settled func()
	// idle is called after each look at the stream. nil ignores it.
	idle func()

	after    uint64    // all up to here was taken
	newest   time.Time // of the records taken
	created  time.Time // of the stream; zero before the first reading
	shrunk   int       // how often in a row it was shorter than after
	troubled bool      // the last reading failed
	upTo     int64     // the connection that the last complete reading began on
	settle   <-chan time.Time
}

// run blocks until ctx ends. It returns ErrDenied and ErrClosed; all else it
// tries again.
func (f *feed) run(ctx context.Context) error {
	ctx, done := f.bus.guards.guard(ctx, f.live)
	defer done()
	again, stop := f.bus.resync.listen()
	defer stop()
	heard, err := f.bus.listen("", f.live)
	if err != nil {
		return err
	}
	defer heard.stop()
	check := time.NewTimer(0) // the first reading is due now
	defer check.Stop()
	for {
		stale := true
		select {
		case msg := <-heard.messages:
			r, err := f.liveRecord(msg)
			if err != nil {
				f.bus.skip(f.kind, msg.Subject, err)
			}
			stale = err == nil && f.hear(r)
		case <-f.settle:
			f.settleNow()
			stale = false
		case <-again:
		case <-check.C:
		case <-ctx.Done():
		case <-f.bus.closed:
		}
		if over, err := f.bus.over(ctx); over {
			return err
		}
		if stale {
			check.Reset(f.read(ctx, heard))
		}
	}
}

// liveRecord reads what was re-published. Only the server does that; who
// sends something else there is not believed.
func (f *feed) liveRecord(msg *nats.Msg) (record, error) {
	r, err := newRecord(msg)
	if err != nil {
		return r, err
	}
	source, live := strings.TrimSuffix(f.source, ">"), strings.TrimSuffix(f.live, ">")
	name, ok := strings.CutPrefix(r.subject, source)
	if !ok || live+name != msg.Subject || serverHeader(msg.Header, "Nats-Stream") != f.stream {
		return r, fmt.Errorf("%w: it is about %q", ErrMalformed, cut(r.subject, tellWidth))
	}
	return r, nil
}

// hear takes a live record, and reports whether the stream has to be read.
func (f *feed) hear(r record) (stale bool) {
	switch {
	case r.seq == f.after+1:
		f.after = r.seq
	case r.seq <= f.after:
		// Known already; or the first of a stream that was made anew.
		return r.at.After(f.newest)
	case f.ordered:
		return !f.troubled
	default:
		stale = !f.troubled // in trouble it is read again soon anyway
	}
	f.bus.metrics.heard(f.kind, r.header)
	r.heard = time.Now()
	f.accept(r)
	if f.settle == nil && f.settled != nil {
		f.settle = time.After(settleAfter)
	}
	return stale
}

func (f *feed) accept(r record) {
	if r.at.After(f.newest) {
		f.newest = r.at
	}
	f.take(r)
}

func (f *feed) settleNow() {
	f.settle = nil
	if f.settled != nil {
		f.settled()
	}
}

// read catches up with the stream, and says when to do so again.
func (f *feed) read(ctx context.Context, heard *listener) time.Duration {
	connection := f.bus.connections.Load()
	err := f.catchUp(ctx, heard)
	if err == nil {
		f.upTo = connection
		if f.troubled {
			f.bus.log.Info("followed stream is readable again", "stream", f.stream)
		}
		f.troubled = false
		if f.idle != nil {
			f.idle()
		}
		return checkEvery
	}
	if errors.Is(err, ErrNoStream) {
		f.bus.mend(ctx)
	}
	if !f.troubled && ctx.Err() == nil {
		f.bus.log.Warn("followed stream is not readable", "stream", f.stream, "error", err)
	}
	f.troubled = true
	return checkAgain
}

var errShrunk = errors.New("stream is shorter than it was")

func (f *feed) catchUp(ctx context.Context, heard *listener) error {
	info, err := f.bus.info(ctx, f.stream)
	if err != nil {
		return err
	}
	first := f.created.IsZero()
	if err := f.recognize(info, heard); err != nil {
		return err
	}
	if info.State.LastSeq <= f.after && !first {
		return nil
	}
	if err := f.readTo(ctx, info); err != nil {
		return err
	}
	f.settleNow()
	return nil
}

// recognize begins anew when this is not the stream that was followed.
func (f *feed) recognize(info streamInfo, heard *listener) error {
	same := f.created.IsZero() || info.Created.Equal(f.created)
	if same && info.State.LastSeq >= f.after {
		f.created, f.shrunk = info.Created, 0
		return nil
	}
	if f.shrunk++; same && f.shrunk < shrunkMost {
		return errShrunk
	}
	f.bus.log.Warn("followed stream was made anew", "stream", f.stream)
	// What waits is of the old one, or will be read: in either case a high
	// sequence from it must not come after the reset.
	heard.forget()
	f.created, f.shrunk, f.after, f.newest = info.Created, 0, 0, time.Time{}
	if f.reset != nil {
		f.reset()
	}
	return nil
}

// readTo reads what the leader says there is. The replica that answers may be
// behind it, and is given time.
func (f *feed) readTo(ctx context.Context, info streamInfo) error {
	target, now := info.State.LastSeq, time.Now()
	for try := 0; f.after < target && info.State.Messages > 0; try++ {
		err := f.bus.read(ctx, window{stream: f.stream, subject: f.source, from: f.after + 1, to: target}, func(r record) {
			f.after = r.seq
			r.heard = now.Add(-max(0, info.Now.Sub(r.at)))
			f.accept(r)
		})
		if err != nil {
			return err
		}
		if f.after < target && (try == catchUpTries || !sleep(ctx, catchUpPause)) {
			break // the last one may have been removed by hand
		}
	}
	f.after = max(f.after, target)
	return nil
}
