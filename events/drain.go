package events

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// drainGrace is how long gateways that nobody named may still answer.
	drainGrace = 100 * time.Millisecond
	// drainAgain is after how long those who did not answer are asked again.
	drainAgain = 250 * time.Millisecond
)

// drainAsk is the body of a drain.
type drainAsk struct {
	Revision uint64 `json:"revision"`
}

// Drain asks every gateway to close its gate of a workload whose Draining was
// written as that revision, and returns what each said: once all of gateways have answered
// and 100 ms more have passed for others, sorted by gateway. When ctx ends
// first, the error names who is missing, and the answers so far come with it.
// Who does not answer is asked again each 250 ms; of two answers the last
// counts.
func (b *Bus) Drain(ctx context.Context, name string, revision uint64, gateways []string) ([]workload.Drained, error) {
	msg, err := b.message(subject(subjectDrain, name), envelope{kind: "drain", about: name}, drainAsk{revision})
	if err != nil {
		return nil, err
	}
	msg.Reply = b.nc.NewInbox()
	ctx, done := b.guards.guard(ctx, msg.Subject, msg.Reply)
	defer done()
	answers, err := b.listen("", msg.Reply)
	if err != nil {
		return nil, fmt.Errorf("drain %s: %w", name, err)
	}
	defer answers.stop()
	d := drain{bus: b, ask: msg, missing: map[string]struct{}{}, answers: map[string]workload.Drained{}}
	for _, g := range gateways {
		d.missing[g] = struct{}{}
	}
	if err := d.run(ctx, answers.messages); err != nil {
		return d.result(), fmt.Errorf("drain %s: %w", name, err)
	}
	return d.result(), nil
}

// A drain is one round of questions and answers.
type drain struct {
	bus     *Bus
	ask     *nats.Msg
	missing map[string]struct{}         // named gateways that have not answered
	answers map[string]workload.Drained // gateway -> its last answer
}

func (d *drain) run(ctx context.Context, answers <-chan *nats.Msg) error {
	again := time.NewTicker(drainAgain)
	defer again.Stop()
	err := d.publish(ctx)
	var grace <-chan time.Time
	for err == nil {
		if len(d.missing) == 0 && grace == nil {
			grace = time.After(drainGrace)
		}
		select {
		case msg := <-answers:
			d.take(msg)
		case <-grace:
			return nil
		case <-again.C:
			if len(d.missing) > 0 {
				err = d.publish(ctx)
			}
		case <-ctx.Done():
			err = d.unanswered(ctx)
		}
	}
	return err
}

func (d *drain) publish(ctx context.Context) error {
	return d.bus.explain(ctx, d.bus.nc.PublishMsg(d.ask))
}

// take notes an answer. What is not one leaves the gateway missing.
func (d *drain) take(msg *nats.Msg) {
	if status(msg.Header) != "" {
		return // nobody listens
	}
	var a workload.Drained
	if err := json.Unmarshal(msg.Data, &a); err != nil || a.Gateway == "" || a.InFlight < 0 || a.Queued < 0 {
		d.bus.skip("drained", d.ask.Subject, fmt.Errorf("%w answer to a drain", ErrMalformed))
		return
	}
	d.answers[a.Gateway] = a
	delete(d.missing, a.Gateway)
}

func (d *drain) unanswered(ctx context.Context) error {
	if len(d.missing) == 0 {
		return context.Cause(ctx)
	}
	names := slices.Sorted(maps.Keys(d.missing))
	return fmt.Errorf("no answer from %s: %w", strings.Join(names, ", "), context.Cause(ctx))
}

func (d *drain) result() []workload.Drained {
	return slices.SortedFunc(maps.Values(d.answers), func(a, b workload.Drained) int {
		return strings.Compare(a.Gateway, b.Gateway)
	})
}

// ServeDrain answers drains in the name of a gateway with what h says; h must
// return at once, since it is called by one goroutine. It blocks until ctx
// ends and returns nil, or ErrDenied, or ErrClosed.
func (b *Bus) ServeDrain(ctx context.Context, gateway string, h func(name string, revision uint64) workload.Drained) error {
	return b.each(ctx, subjectDrain+".*", "", func(_ context.Context, msg *nats.Msg) {
		name, ask, err := decodeDrain(msg)
		if err != nil {
			b.skip("drain", msg.Subject, err)
			return
		}
		b.metrics.heard("drain", msg.Header)
		answer := h(name, ask.Revision)
		answer.Gateway = gateway
		b.answer(msg, answer)
	})
}

func decodeDrain(msg *nats.Msg) (name string, ask drainAsk, err error) {
	if name, err = parseName(subjectDrain, msg.Subject); err != nil {
		return "", drainAsk{}, err
	}
	if serverHeader(msg.Header, headerSequence) != "" {
		return "", drainAsk{}, fmt.Errorf("drain of %s: %w: %w", name, ErrMalformed, errDelivered)
	}
	if err = decode("drain", name, msg.Header, msg.Data, &ask); err != nil {
		return "", drainAsk{}, err
	}
	return name, ask, nil
}

// answer replies to a request. An answer that does not leave is missed by
// the asker, who asks again. It goes to inboxes only: this role may have rights
// that the asker has not.
func (b *Bus) answer(msg *nats.Msg, body any) {
	data, err := json.Marshal(body)
	switch {
	case err != nil || msg.Reply == "":
	case strings.HasPrefix(msg.Reply, "_INBOX"):
		err = msg.Respond(data)
	default:
		err = fmt.Errorf("%w: the answer should go to %q", ErrMalformed, cut(msg.Reply, tellWidth))
	}
	if err != nil {
		b.warn("other", "request not answered", msg.Subject, err)
	}
}
