package events

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// listenBuffer is how many messages may wait here for their handler; more
// are dropped, which is noticed and mended where it matters.
const listenBuffer = 4096

// A listener is some core subscriptions whose messages are taken by one
// goroutine.
type listener struct {
	kind     string // of messages, for metrics
	messages chan *nats.Msg
	subs     []*nats.Subscription
	dropped  []int // of each, as far as is known; guarded by the census
	census   *census
}

// listen subscribes. The subscriptions are at the server before anything that
// is sent after it.
func (b *Bus) listen(queue string, subjects ...string) (*listener, error) {
	l := &listener{
		kind: kindOf(subjects[0]), messages: make(chan *nats.Msg, listenBuffer),
		dropped: make([]int, len(subjects)), census: b.metrics.census,
	}
	for _, subject := range subjects {
		sub, err := b.nc.ChanQueueSubscribe(subject, queue, l.messages)
		if err != nil {
			l.unsubscribe()
			return nil, fmt.Errorf("subscribe to %s: %w", subject, b.explain(context.Background(), err))
		}
		l.subs = append(l.subs, sub)
	}
	l.census.add(l)
	return l, nil
}

func (l *listener) stop() {
	l.census.remove(l)
	l.unsubscribe()
}

func (l *listener) unsubscribe() {
	for _, sub := range l.subs {
		_ = sub.Unsubscribe() // fails only with the connection, which ends it too
	}
}

// kindOf names the kind of messages on a subject, one of a few.
func kindOf(subject string) string {
	switch {
	case strings.HasPrefix(subject, subjectRoot):
		kind, _, _ := strings.Cut(strings.TrimPrefix(subject, subjectRoot), ".")
		return kind
	case strings.HasPrefix(subject, advisoryRoot):
		return "advisory"
	}
	return "answer"
}

// subjectRoot begins every subject of Rouse.
const subjectRoot = "rouse.v1."

// forget drops what waits.
func (l *listener) forget() {
	for {
		select {
		case <-l.messages:
		default:
			return
		}
	}
}

// each hands every message to h, one after the other, until ctx ends or the
// subscription is denied.
func (b *Bus) each(ctx context.Context, subject, queue string, h func(context.Context, *nats.Msg)) error {
	ctx, done := b.guards.guard(ctx, subject)
	defer done()
	l, err := b.listen(queue, subject)
	if err != nil {
		return err
	}
	defer l.stop()
	for {
		select {
		case msg := <-l.messages:
			h(ctx, msg)
		case <-ctx.Done():
		case <-b.closed:
		}
		if over, err := b.over(ctx); over {
			return err
		}
	}
}
