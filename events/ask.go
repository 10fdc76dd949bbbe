package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rouse-dev/rouse/workload"
)

const (
	// asksAtOnce bounds the requests that one server works on.
	asksAtOnce = 32
	// askLimit bounds a request whose asker named no end.
	askLimit = time.Minute
	// maxLogs bounds the lines in one answer, in bytes.
	maxLogs = 128 << 10
)

// An AskError is what a scaler said instead of an answer. A handler returns
// one (wrapped or not) to have its Code told to the asker; any other error
// arrives with an empty Code.
type AskError struct {
	Code    string // one word that a program can act on: "in_use", "not_found"
	Message string
}

func (e *AskError) Error() string { return e.Message }

// codeBusy: the scaler works on too many requests.
const codeBusy = "busy"

type askBody struct {
	Lines int `json:"lines,omitempty"`
	// KeepMS is for how long a workload is to be kept awake.
	KeepMS int64 `json:"keep_ms,omitempty"`
	// WithinMS is how long the asker waits: the two clocks need not agree.
	WithinMS int64 `json:"within_ms,omitempty"`
}

type askAnswer struct {
	Error string   `json:"error,omitempty"`
	Code  string   `json:"code,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// KeptUntil is until when a workload is kept awake.
	KeptUntil time.Time `json:"kept_until,omitzero"`
}

// AskSleep asks the node's scaler to put a workload to sleep and waits until
// it has, ctx ends or a minute has passed. ErrNoScaler comes at once; what the scaler says is an
// *AskError.
func (b *Bus) AskSleep(ctx context.Context, node, name string) error {
	if _, err := b.ask(ctx, subject(subjectSleep, node, name), askBody{}); err != nil {
		return fmt.Errorf("sleep %s: %w", name, err)
	}
	return nil
}

// ServeSleep answers AskSleep for a node with what h returns. One of several
// scalers of a node gets each. h's ctx ends when the asker stops waiting; calls
// of h run at once. ServeSleep blocks until ctx ends and every h has returned;
// it returns nil, or ErrDenied, or ErrClosed.
func (b *Bus) ServeSleep(ctx context.Context, node string, h func(ctx context.Context, name string) error) error {
	return b.serveAsks(ctx, subjectSleep, node, func(ctx context.Context, name string, _ askBody) (askAnswer, error) {
		return askAnswer{}, h(ctx, name)
	})
}

// AskKeep asks the node's scaler to keep a workload awake for span from now on,
// 0 no longer, and returns until when. Errors are those of AskSleep.
func (b *Bus) AskKeep(ctx context.Context, node, name string, span time.Duration) (time.Time, error) {
	answer, err := b.ask(ctx, subject(subjectKeep, node, name), askBody{KeepMS: span.Milliseconds()})
	if err != nil {
		return time.Time{}, fmt.Errorf("keep %s: %w", name, err)
	}
	return answer.KeptUntil, nil
}

// ServeKeep answers AskKeep for a node; see ServeSleep.
func (b *Bus) ServeKeep(ctx context.Context, node string, h func(ctx context.Context, name string, span time.Duration) (time.Time, error)) error {
	return b.serveAsks(ctx, subjectKeep, node, func(ctx context.Context, name string, ask askBody) (askAnswer, error) {
		const most = int64(workload.MaxKeep / time.Millisecond)
		until, err := h(ctx, name, time.Duration(min(max(ask.KeepMS, 0), most))*time.Millisecond)
		return askAnswer{KeptUntil: until}, err
	})
}

// AskLogs asks the node's scaler for the last lines that a workload wrote,
// oldest first. Errors are those of AskSleep.
func (b *Bus) AskLogs(ctx context.Context, node, name string, lines int) ([]string, error) {
	answer, err := b.ask(ctx, subject(subjectLogs, node, name), askBody{Lines: lines})
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", name, err)
	}
	return answer.Lines, nil
}

// ServeLogs answers AskLogs for a node; see ServeSleep. Of very many lines
// only the last 128 KiB are sent.
func (b *Bus) ServeLogs(ctx context.Context, node string, h func(ctx context.Context, name string, lines int) ([]string, error)) error {
	return b.serveAsks(ctx, subjectLogs, node, func(ctx context.Context, name string, ask askBody) (askAnswer, error) {
		lines, err := h(ctx, name, ask.Lines)
		return askAnswer{Lines: lastLines(lines, maxLogs)}, err
	})
}

// ask sends one request and waits as long as ctx does.
func (b *Bus) ask(ctx context.Context, subject string, body askBody) (askAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	end, _ := ctx.Deadline()
	body.WithinMS = answerWithin(time.Until(end)).Milliseconds()
	msg, err := b.message(subject, envelope{kind: "ask"}, body)
	if err != nil {
		return askAnswer{}, err
	}
	ctx, done := b.guards.guard(ctx, subject)
	defer done()
	reply, err := b.nc.RequestMsgWithContext(ctx, msg)
	if errors.Is(err, nats.ErrNoResponders) {
		return askAnswer{}, ErrNoScaler
	}
	if err != nil {
		return askAnswer{}, b.explain(ctx, err)
	}
	var answer askAnswer
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return askAnswer{}, fmt.Errorf("answer to %s: %w: %w", subject, ErrMalformed, err)
	}
	if answer.Error != "" {
		return askAnswer{}, &AskError{Code: answer.Code, Message: answer.Error}
	}
	return answer, nil
}

// answerWithin leaves the scaler's reason for a failure time to come back.
func answerWithin(wait time.Duration) time.Duration {
	return max(time.Millisecond, wait-min(wait/10, 250*time.Millisecond))
}

type askHandler func(ctx context.Context, name string, ask askBody) (askAnswer, error)

// serveAsks answers the requests for one node, each in a goroutine.
func (b *Bus) serveAsks(ctx context.Context, base, node string, h askHandler) error {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, asksAtOnce)
	return b.each(ctx, subject(base, node)+".*", "scaler", func(ctx context.Context, msg *nats.Msg) {
		select {
		case places <- struct{}{}:
			running.Go(func() {
				defer func() { <-places }()
				b.answer(msg, b.handleAsk(ctx, base, msg, h))
			})
		default:
			b.answer(msg, askAnswer{Code: codeBusy, Error: "the scaler works on too many requests"})
		}
	})
}

func (b *Bus) handleAsk(ctx context.Context, base string, msg *nats.Msg, h askHandler) askAnswer {
	name, ask, err := decodeAsk(base, msg)
	if err != nil {
		b.skip("ask", msg.Subject, err)
		return askAnswer{Code: "malformed", Error: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, ask.within())
	defer cancel()
	answer, err := h(ctx, name, ask)
	if err == nil {
		return answer
	}
	var coded *AskError
	if errors.As(err, &coded) {
		return askAnswer{Code: coded.Code, Error: err.Error()}
	}
	return askAnswer{Error: err.Error()}
}

// within is how long the answer is waited for.
func (a askBody) within() time.Duration {
	if a.WithinMS <= 0 || a.WithinMS > askLimit.Milliseconds() {
		return askLimit
	}
	return time.Duration(a.WithinMS) * time.Millisecond
}

func decodeAsk(base string, msg *nats.Msg) (name string, ask askBody, err error) {
	names, err := parseSubject(base, msg.Subject, 2)
	if err != nil {
		return "", askBody{}, err
	}
	if err := decode("ask", names[1], msg.Header, msg.Data, &ask); err != nil {
		return "", askBody{}, err
	}
	if ask.Lines < 0 {
		return "", askBody{}, fmt.Errorf("ask of %s: %w: %d lines", names[1], ErrMalformed, ask.Lines)
	}
	return names[1], ask, nil
}
