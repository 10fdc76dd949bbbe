package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rouse-dev/rouse/workload"
)

// PublishWake asks the scalers of a node for a workload and returns within
// about 500 ms. nil means that a wake is stored or that one already was: they
// are one. It sets w.PublishedAt. It may be called again at any time.
func (b *Bus) PublishWake(ctx context.Context, node string, w workload.Wake) error {
	w.PublishedAt = time.Now()
	msg, err := b.message(subject(subjectWake, node, w.Workload), envelope{
		kind: "wake", about: w.Workload, trace: w.Traceparent,
	}, w)
	if err != nil {
		return err
	}
	err = b.retry(ctx, publishLimit, func(ctx context.Context) error {
		_, err := b.store(ctx, msg)
		if pending(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("publish wake of %s: %w", w.Workload, err)
	}
	return nil
}

// pending reports the refusal of a second wake. Its code is shared by every
// bound of a stream; only the text tells which one was reached.
func pending(err error) bool {
	const storeFailed = 10077
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == storeFailed &&
		refused.Description == "maximum messages per subject exceeded"
}

// decodeWake reads a wake. The subject says which workload is meant: the
// server's permissions look at nothing else.
func decodeWake(subject string, h nats.Header, data []byte) (workload.Wake, error) {
	names, err := parseSubject(subjectWake, subject, 2)
	if err != nil {
		return workload.Wake{}, err
	}
	var w workload.Wake
	if err := decode("wake", names[1], h, data, &w); err != nil {
		return workload.Wake{}, err
	}
	w.Workload, w.Trigger = names[1], known(w.Trigger)
	if w.Traceparent == "" {
		w.Traceparent = header(h, headerTrace)
	}
	if !validTrace(w.Traceparent) {
		w.Traceparent = ""
	}
	return w, nil
}

// known takes a trigger of a later version for a request: the fullest service,
// and a bounded set of names.
func known(t workload.Trigger) workload.Trigger {
	switch t {
	case "", workload.TriggerRequest, workload.TriggerAPI, workload.TriggerKeepWarm, workload.TriggerDependency, workload.TriggerAdopted:
		return t
	}
	return workload.TriggerRequest
}

// A Verdict says what becomes of a wake that was handed out. The zero value
// is Done.
type Verdict struct {
	kind   verdictKind
	delay  time.Duration
	reason string
}

type verdictKind uint8

const (
	verdictDone verdictKind = iota
	verdictLater
	verdictPermanent
)

// Done: the workload is ready, failed, or needs nothing; the wake is over.
func Done() Verdict { return Verdict{} }

// Later: hand it out again after d; another may have it then.
func Later(d time.Duration) Verdict { return Verdict{kind: verdictLater, delay: max(0, d)} }

// Permanent: trying again is of no use; the reason goes to the server's
// advisories.
func Permanent(reason string) Verdict { return Verdict{kind: verdictPermanent, reason: reason} }
