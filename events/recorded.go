package events

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rouse-dev/rouse/workload"
)

// queueLife is how long the server remembers how far a queue of events has
// come when nobody serves it: as long as the history itself.
const queueLife = historyLife

// queueIDMost bounds the length of an event's ID, in bytes.
const queueIDMost = 64

// A Recorded is an event of the history as a queue hands it out.
type Recorded struct {
	workload.Event
	// ID is unique over all events, and the same each time the event is
	// handed out: letters, digits, '-' and '_'.
	ID string
	// At is when it was stored, by the server's clock.
	At time.Time
}

// An EventQueue chooses from the history what one outlet gets.
type EventQueue struct {
	// Name is what the server remembers by how far it has come: the same over
	// restarts, and in all processes that serve it.
	Name string
	// Workloads takes those of some workloads only; empty takes all.
	Workloads []string
	// Kinds takes some kinds only; empty takes all.
	Kinds []workload.EventKind
	// From is what a queue that is new begins at; all that was recorded
	// before is left out.
	From time.Time
}

// ServeEvents hands the events of a queue to h, in order and one after the
// other over all processes that serve it: each again, here or in another,
// until h says Done or Permanent. What h had done when its process died it may
// be asked to do twice. While h works the event stays its own, however long.
// It blocks and returns as ServeWakes does.
func (b *Bus) ServeEvents(ctx context.Context, q EventQueue, h func(context.Context, Recorded) Verdict) error {
	return b.serve(ctx, streamEvents, jetstream.ConsumerConfig{
		Durable:           "queue-" + encodeToken(q.Name),
		FilterSubjects:    q.subjects(),
		MaxAckPending:     1,
		DeliverPolicy:     jetstream.DeliverByStartTimePolicy,
		OptStartTime:      &q.From,
		InactiveThreshold: queueLife,
	}, func(ctx context.Context, msg jetstream.Msg) Verdict {
		e, err := decodeRecorded(msg)
		if err != nil {
			b.skip("event", msg.Subject(), err)
			return unreadable
		}
		return h(ctx, e)
	})
}

// subjects are those of each workload with each kind.
func (q EventQueue) subjects() []string {
	workloads, kinds := []string{"*"}, []string{"*"}
	if len(q.Workloads) > 0 {
		workloads = encodeTokens(q.Workloads)
	}
	if len(q.Kinds) > 0 {
		kinds = encodeTokens(q.Kinds)
	}
	var all []string
	for _, name := range workloads {
		for _, kind := range kinds {
			all = append(all, subjectEvent+"."+name+"."+kind)
		}
	}
	return all
}

func encodeTokens[S ~string](names []S) []string {
	tokens := make([]string, len(names))
	for i, name := range names {
		tokens[i] = encodeToken(string(name))
	}
	return tokens
}

// decodeRecorded reads an event that a consumer delivered. The server tells of
// its place apart from the headers: what has them was answered before, and
// sent on.
func decodeRecorded(msg jetstream.Msg) (Recorded, error) {
	if header(msg.Headers(), headerSequence) != "" {
		return Recorded{}, fmt.Errorf("%w: %w", ErrMalformed, errDelivered)
	}
	e, err := decodeEvent(record{subject: msg.Subject(), header: msg.Headers(), data: msg.Data()})
	if err != nil {
		return Recorded{}, err
	}
	place, err := msg.Metadata()
	if err != nil {
		return Recorded{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	id := header(msg.Headers(), headerID)
	if !plainID(id) {
		return Recorded{}, fmt.Errorf("%w: its id is %q", ErrMalformed, cut(id, queueIDMost))
	}
	return Recorded{Event: e, ID: id, At: place.Timestamp}, nil
}

func plainID(id string) bool {
	return id != "" && len(id) <= queueIDMost &&
		strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
