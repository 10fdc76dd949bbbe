package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rouse-dev/rouse/workload"
)

const headerExpect = "Nats-Expected-Last-Subject-Sequence"

// State reads what a workload does, within about 500 ms. A workload that was
// never written is asleep, generation 0, revision 0. Of several servers the
// one that answers may be some milliseconds behind: PutState notices. With
// ErrMalformed comes the state to go on from where nobody can read what is
// stored: asleep, with the revision to write on and a generation that is above
// all former ones.
func (b *Bus) State(ctx context.Context, name string) (workload.State, error) {
	return b.state(ctx, name, func(ctx context.Context, subject string) (record, bool, error) {
		last, stored, err := b.readLast(ctx, streamStates, subject)
		if errors.Is(err, ErrMalformed) { // its headers are: the leader tells at least its sequence
			return b.stateOfLeader(ctx, subject)
		}
		return last, stored, err
	})
}

// Current is State from the server that leads, which has every write that was
// acknowledged before. Only scalers may ask it.
func (b *Bus) Current(ctx context.Context, name string) (workload.State, error) {
	return b.state(ctx, name, b.stateOfLeader)
}

func (b *Bus) stateOfLeader(ctx context.Context, subject string) (record, bool, error) {
	ctx, done := b.guards.expect(ctx, apiReadLeader+streamStates)
	defer done()
	return b.readLeader(ctx, streamStates, subject)
}

func (b *Bus) state(ctx context.Context, name string, read func(context.Context, string) (record, bool, error)) (workload.State, error) {
	var last record
	var stored bool
	err := b.retry(ctx, publishLimit, func(ctx context.Context) (err error) {
		last, stored, err = read(ctx, subject(keyStates, name))
		return err
	})
	s := workload.State{Workload: name}
	if err == nil && stored {
		if s, err = decodeState(last); err != nil {
			b.skip("state", last.subject, err)
		}
	}
	if err != nil {
		return s, fmt.Errorf("read state of %s: %w", name, err)
	}
	return s, nil
}

// decodeState reads a record of the bucket. A key that was deleted is a
// workload that never ran, with a revision to write the next one on.
func decodeState(r record) (workload.State, error) {
	name, err := parseName(keyStates, r.subject)
	if err != nil {
		return workload.State{}, err
	}
	if r.deleted() {
		return workload.State{Workload: name, Revision: r.seq}, nil
	}
	var body stateBody
	err = decode("state", name, r.header, r.data, &body)
	if err == nil {
		err = body.check(name)
	}
	switch {
	case errors.Is(err, ErrMalformed):
		// Each generation is a write, so that none is above the sequence.
		return workload.State{Workload: name, Generation: r.seq, Revision: r.seq}, err
	case err != nil:
		return workload.State{}, err
	}
	s := body.State
	s.Workload, s.Phase, s.Revision = name, *body.Phase, r.seq
	return s, nil
}

// A stateBody is a state as it is stored: without a phase it is none.
type stateBody struct {
	workload.State
	Phase *workload.Phase `json:"phase"`
}

// maxGeneration is the largest number that every reader of JSON keeps as it
// is.
const maxGeneration = 1 << 53

// maxBackOff is far longer than a scaler lets a failed workload wait: longer
// is for ever.
const maxBackOff = 24 * time.Hour

func (b *stateBody) check(name string) error {
	switch {
	case b.Phase == nil:
		return fmt.Errorf("state of %s: %w: without a phase", name, ErrMalformed)
	case b.Generation > maxGeneration || b.Failures < 0 || b.RetryAt.Sub(b.Since) > maxBackOff && !b.RetryAt.IsZero():
		return fmt.Errorf("state of %s: %w: numbers that cannot be", name, ErrMalformed)
	}
	return nil
}

// PutState writes s if the store still has s.Revision (0: nothing yet), and
// returns it with its new revision. ErrConflict: somebody else wrote; read
// and decide again. An answer that was lost is read back, and the write
// repeated, until it is known what happened, ctx ends or 3 s have passed: then
// ErrUnconfirmed (it may be stored) or the reason why it surely is not.
func (b *Bus) PutState(ctx context.Context, s workload.State) (workload.State, error) {
	s.Reason = trimReason(s.Reason)
	e := envelope{kind: "state", about: s.Workload}
	if s.Wake != nil {
		e.trace = s.Wake.Traceparent
	}
	msg, err := b.message(subject(keyStates, s.Workload), e, s)
	if err != nil {
		return workload.State{}, err
	}
	w := write{bus: b, stream: streamStates, msg: msg, expect: s.Revision}
	if s.Revision, err = w.run(ctx); err != nil {
		return workload.State{}, fmt.Errorf("write state of %s: %w", s.Workload, err)
	}
	return s, nil
}

// A write is one compare and set, brought to a certain end.
type write struct {
	bus    *Bus
	stream string
	msg    *nats.Msg
	expect uint64
	unsure bool // an earlier try may have been stored, or may yet be
}

func (w *write) run(ctx context.Context) (uint64, error) {
	w.msg.Header.Set(headerExpect, strconv.FormatUint(w.expect, 10))
	ctx, cancel := context.WithTimeout(ctx, confirmLimit)
	defer cancel()
	var reason error
	for {
		revision, err := w.try(ctx)
		if err == nil || errors.Is(err, ErrConflict) {
			return revision, err
		}
		if lasting(err) {
			return 0, w.undecided(err)
		}
		reason = telling(ctx, reason, err)
		if errors.Is(err, ErrNoStream) {
			w.bus.mend(ctx)
		}
		if !sleep(ctx, retryPause) {
			return 0, w.undecided(reason)
		}
	}
}

func (w *write) undecided(reason error) error {
	if w.unsure {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, reason)
	}
	return reason
}

// try writes once. The same message is written again after a lost answer: the
// two expect the same revision, so that at most one of them is ever stored.
func (w *write) try(ctx context.Context) (uint64, error) {
	revision, err := w.bus.store(ctx, w.msg)
	switch {
	case err == nil:
		return revision, nil
	case mismatch(err) && !w.unsure:
		return 0, ErrConflict
	case mismatch(err):
		return w.readBack(ctx)
	case neverSent(err):
		return 0, err
	}
	w.unsure = true
	if revision, readErr := w.readBack(ctx); readErr == nil || errors.Is(readErr, ErrConflict) {
		return revision, readErr
	}
	return 0, err
}

func mismatch(err error) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && (refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// readBack asks the leader whether our write is the one that counts. Only
// what the leader says is told apart from "not yet": errPending.
func (w *write) readBack(ctx context.Context) (uint64, error) {
	r, ok, err := w.bus.readLeader(ctx, w.stream, w.msg.Subject)
	switch {
	case err != nil:
		return 0, err
	case ok && header(r.header, headerID) == header(w.msg.Header, headerID):
		return r.seq, nil
	case r.seq != w.expect: // 0 when there is none: the store may have been made anew
		return 0, ErrConflict
	}
	return 0, errPending
}

var errPending = errors.New("not stored yet")
