package events

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// listenBuffer is how many messages may wait here for their handler; more
// are dropped, which is noticed and mended where it matters.
const listenBuffer = 4096

// A listener is a core subscription whose messages are taken by one goroutine.
type listener struct {
	messages chan *nats.Msg
	stop     func()
}

// listen subscribes. The subscription is at the server before anything that
// is sent after it.
func (b *Bus) listen(subject, queue string) (*listener, error) {
	l := &listener{messages: make(chan *nats.Msg, listenBuffer)}
	sub, err := b.nc.ChanQueueSubscribe(subject, queue, l.messages)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, b.explain(context.Background(), err))
	}
	l.stop = func() { _ = sub.Unsubscribe() } // fails only with the connection, which ends it too
	return l, nil
}

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
	l, err := b.listen(subject, queue)
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
