package events

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rouse-dev/rouse/workload"
)

// RecordEvent adds to the history, within about 500 ms. The history informs;
// an event that could not be recorded is lost.
func (b *Bus) RecordEvent(ctx context.Context, e workload.Event) error {
	e.Reason = trimReason(e.Reason)
	env := envelope{kind: "event", about: e.Workload}
	if e.Wake != nil {
		env.trace = e.Wake.Traceparent
	}
	msg, err := b.message(subject(subjectEvent, e.Workload, string(e.Kind)), env, e)
	if err == nil {
		// Tried again after a lost answer, it is recorded once.
		msg.Header.Set("Nats-Msg-Id", header(msg.Header, headerID))
		err = b.put(ctx, msg)
	}
	if err != nil {
		return fmt.Errorf("record %s of %s: %w", e.Kind, e.Workload, err)
	}
	return nil
}

// An EventFilter chooses from the history. The zero value is all of it.
type EventFilter struct {
	// Workload takes one workload only; empty takes all.
	Workload string
	// Kinds takes some kinds only; empty takes all.
	Kinds []workload.EventKind
	// Since takes what was recorded at or after it; zero takes all.
	Since time.Time
	// Last takes the newest of what is left; 0 takes all, a negative one
	// nothing of the past.
	Last int
}

// Events reads the history, oldest first.
func (b *Bus) Events(ctx context.Context, f EventFilter) ([]workload.Event, error) {
	events, _, err := b.past(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return events, nil
}

// FollowEvents hands the chosen past to h, then every event as it is
// recorded, each once and in order. h is called by one goroutine.
// FollowEvents blocks until ctx ends and returns nil, or an error when the
// past could not be read, or ErrDenied, or ErrClosed.
func (b *Bus) FollowEvents(ctx context.Context, f EventFilter, h func(workload.Event)) error {
	events, last, err := b.past(ctx, f)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	for _, e := range events {
		h(e)
	}
	feed := &feed{
		bus: b, stream: streamEvents, source: subjectEvent + ".>", live: subjectRecorded + ".>", kind: "event",
		ordered: true, after: last,
		take: func(r record) {
			e, err := decodeEvent(r)
			if err != nil {
				b.skip("event", r.subject, err)
			} else if f.takes(e) {
				h(e)
			}
		},
	}
	return feed.run(ctx)
}

// past reads what the filter chooses, and the sequence up to which it read.
func (b *Bus) past(ctx context.Context, f EventFilter) (events []workload.Event, last uint64, err error) {
	err = b.retry(ctx, pageLimit, func(ctx context.Context) error {
		info, err := b.info(ctx, streamEvents)
		if err != nil {
			return err
		}
		last = info.State.LastSeq
		events, err = b.newest(ctx, f, last)
		return err
	})
	return events, last, err
}

// newest reads back from the end in steps that grow, until there are enough
// or it has come to the beginning: the last few of many cost little.
func (b *Bus) newest(ctx context.Context, f EventFilter, last uint64) ([]workload.Event, error) {
	if f.Last < 0 || last == 0 {
		return nil, nil
	}
	for step := uint64(f.Last); ; step *= 8 {
		w := window{stream: streamEvents, subject: f.subject(), from: 1, to: last, since: f.Since}
		whole := f.Last == 0 || !f.Since.IsZero() || step >= last
		if !whole {
			w.from = last - step + 1
		}
		events, err := b.readEvents(ctx, f, w, last)
		if err != nil {
			return nil, err
		}
		if f.Last > 0 && len(events) >= f.Last {
			return slices.Clone(events[len(events)-f.Last:]), nil
		}
		if whole {
			return events, nil
		}
	}
}

func (b *Bus) readEvents(ctx context.Context, f EventFilter, w window, last uint64) ([]workload.Event, error) {
	var events []workload.Event
	err := b.read(ctx, w, func(r record) {
		e, err := decodeEvent(r)
		if err != nil {
			b.skip("event", r.subject, err)
		} else if r.seq <= last && f.takes(e) {
			events = append(events, e)
		}
	})
	return events, err
}

// subject is the narrowest that has all the filter takes.
func (f EventFilter) subject() string {
	workload, kind := "*", "*"
	if f.Workload != "" {
		workload = encodeToken(f.Workload)
	}
	if len(f.Kinds) == 1 {
		kind = encodeToken(string(f.Kinds[0]))
	}
	return subjectEvent + "." + workload + "." + kind
}

func (f EventFilter) takes(e workload.Event) bool {
	return (f.Workload == "" || e.Workload == f.Workload) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind))
}

// decodeEvent reads a record of the history; the subject says what it is.
func decodeEvent(r record) (workload.Event, error) {
	names, err := parseSubject(subjectEvent, r.subject, 2)
	if err != nil {
		return workload.Event{}, err
	}
	var e workload.Event
	if err := decode("event", names[0], r.header, r.data, &e); err != nil {
		return workload.Event{}, err
	}
	e.Workload, e.Kind = names[0], workload.EventKind(names[1])
	return e, nil
}
