package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// request asks once and waits at most attemptLimit.
func (b *Bus) request(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	ctx, done := b.guards.brief(ctx, msg.Subject)
	defer done()
	answer, err := b.nc.RequestMsgWithContext(ctx, msg)
	return answer, b.explain(ctx, err)
}

// call asks JetStream's API once and reads the answer into to. What the server
// refuses is an error in which errors.As finds the *jetstream.APIError.
func (b *Bus) call(ctx context.Context, subject string, to any) error {
	answer, err := b.request(ctx, nats.NewMsg(subject))
	if err != nil {
		return err
	}
	var refused struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &refused); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	if refused.Error != nil {
		return b.explain(ctx, refused.Error)
	}
	if err := json.Unmarshal(answer.Data, to); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	return nil
}

// explain makes one of this package's errors of what the client library says.
func (b *Bus) explain(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(cause, ErrDenied), errors.Is(cause, errLost):
		return cause
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("%w: %w", ErrClosed, err)
	case !b.nc.IsConnected():
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return err
}

// neverSent reports the errors after which the server cannot have stored
// anything, now or later.
func neverSent(err error) bool {
	for _, e := range []error{ErrDenied, ErrNoStream, nats.ErrReconnectBufExceeded, nats.ErrMaxPayload, nats.ErrConnectionClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// lasting reports the errors that trying again does not mend.
func lasting(err error) bool {
	var refused *jetstream.APIError
	if errors.Is(err, ErrNoStream) {
		return false
	}
	return errors.Is(err, ErrDenied) || errors.Is(err, ErrClosed) || errors.Is(err, nats.ErrMaxPayload) ||
		errors.As(err, &refused) && refused.Code < 500
}

// retry tries until it succeeds, the error lasts, or the budget is spent. It
// is for what may be done twice.
func (b *Bus) retry(ctx context.Context, budget time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var reason error
	for {
		err := try(ctx)
		if err == nil || lasting(err) {
			return err
		}
		reason = telling(ctx, reason, err)
		if errors.Is(err, ErrNoStream) {
			b.mend(ctx)
		}
		if !sleep(ctx, retryPause) {
			return reason
		}
	}
}

// telling chooses between the errors of two tries: the last one, unless it
// only says that the budget ended in the middle of it.
func telling(ctx context.Context, before, last error) error {
	if before != nil && ctx.Err() != nil {
		return before
	}
	return last
}

// stored is the server's answer to a write into a stream.
type stored struct {
	Sequence uint64              `json:"seq"`
	Error    *jetstream.APIError `json:"error"`
}

// store writes a message into the stream that has its subject and returns its
// sequence. A refusal is a *jetstream.APIError.
func (b *Bus) store(ctx context.Context, msg *nats.Msg) (uint64, error) {
	answer, err := b.request(ctx, msg)
	if err != nil {
		return 0, err
	}
	var s stored
	if err := json.Unmarshal(answer.Data, &s); err != nil {
		return 0, fmt.Errorf("answer to %s: %w", msg.Subject, err)
	}
	if s.Error != nil {
		return 0, s.Error
	}
	return s.Sequence, nil
}

// put is store until it succeeds, for what may be written twice.
func (b *Bus) put(ctx context.Context, msg *nats.Msg) error {
	return b.retry(ctx, publishLimit, func(ctx context.Context) error {
		_, err := b.store(ctx, msg)
		return err
	})
}
