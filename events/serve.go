package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rouse-dev/rouse/workload"
)

// The pull settings decide how long a consumer stands still after trouble
// that it was not told of: twice the heartbeat.
const (
	pullExpiry    = 5 * time.Second
	pullHeartbeat = time.Second
	pullMost      = 8 // few: a message that lies in a client's buffer waits for nothing
	rebindFirst   = 50 * time.Millisecond
	rebindMost    = time.Second
)

// A worker hands the messages of a durable consumer to a handler, each in a
// goroutine of its own, and again after a while, perhaps to another process,
// where this one died before the handler was done.
type worker struct {
	bus    *Bus
	stream string
	want   jetstream.ConsumerConfig // as the consumer should be
	take   func(context.Context, jetstream.Msg) Verdict
	freed  time.Time // of the message that was freed last; belongs to run

	mu      sync.Mutex
	ended   bool           // nothing new is begun; guarded by mu
	running sync.WaitGroup // handlers; Add only under mu
}

// ServeWakes hands each wake of a node to h, at most parallel of them at once
// over all scalers of the node, each in its own goroutine, and again after a
// while if this process dies before h returns. While h works the wake stays
// its own, however long. ServeWakes blocks until ctx ends, waits for the
// handlers, whose ctx has ended too, gives what they say Later to back at
// once, and returns nil. It returns ErrDenied where the role may not consume,
// and ErrClosed; all else it mends itself.
func (b *Bus) ServeWakes(ctx context.Context, node string, parallel int, h func(context.Context, workload.Wake) Verdict) error {
	return b.serve(ctx, streamWakes, jetstream.ConsumerConfig{
		Durable:        consumerOf(node),
		FilterSubjects: []string{subject(subjectWake, node) + ".*"},
		MaxAckPending:  max(1, parallel),
	}, func(ctx context.Context, msg jetstream.Msg) Verdict {
		w, err := decodeWake(msg.Subject(), msg.Headers(), msg.Data())
		if err != nil {
			b.skip("wake", msg.Subject(), err)
			return unreadable // else it would be in the way of the next
		}
		b.metrics.heard("wake", msg.Headers())
		return h(ctx, w)
	})
}

// unreadable ends a message that no handler was given.
var unreadable = Permanent("cannot be read")

// serve works on the messages of a consumer until ctx ends; its name, filter
// and bound are the caller's.
func (b *Bus) serve(ctx context.Context, stream string, want jetstream.ConsumerConfig, take func(context.Context, jetstream.Msg) Verdict) error {
	want.AckPolicy, want.AckWait = jetstream.AckExplicitPolicy, b.ackWait
	want.MaxDeliver = -1 // a bound would leave the message behind, in the way of the next
	w := &worker{bus: b, stream: stream, want: want, take: take}
	name := stream + "." + want.Durable
	ctx, done := b.guards.guard(ctx, apiConsumerInfo+name, apiConsumerCreate+name, apiConsumerCreate+name+".>",
		apiConsumerNext+name, "$JS.ACK."+name+".>")
	defer done()
	err := w.run(ctx)
	w.end()
	return err
}

// run binds to the consumer again whenever there was trouble with it.
func (w *worker) run(ctx context.Context) error {
	again, stop := w.bus.resync.listen()
	defer stop()
	pause := rebindFirst
	for {
		begun := time.Now()
		err := w.consume(ctx)
		if over, err := w.bus.over(ctx); over {
			return err
		}
		if time.Since(begun) > rebindMost {
			pause = rebindFirst
		}
		w.bus.log.Warn("consumer interrupted", "consumer", w.want.Durable, "error", err)
		select {
		case <-ctx.Done():
		case <-again:
		case <-time.After(pause):
		}
		pause = min(2*pause, rebindMost)
	}
}

// over reports whether a loop has to end, and with what.
func (b *Bus) over(ctx context.Context) (bool, error) {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrDenied) {
			return true, cause
		}
		return true, nil
	}
	select {
	case <-b.closed:
		return true, ErrClosed
	default:
		return false, nil
	}
}

// consume binds, takes messages until ctx ends or there is trouble, and says
// which. The library goes on by itself after some troubles and stands still
// for long after others; all are treated alike, since to bind costs one
// request.
func (w *worker) consume(ctx context.Context) error {
	consumer, err := w.bind(ctx)
	if err != nil {
		return err
	}
	trouble := make(chan error, 1)
	pull, err := consumer.Consume(func(msg jetstream.Msg) { w.begin(ctx, msg) },
		jetstream.PullMaxMessages(min(w.want.MaxAckPending, pullMost)),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case trouble <- err:
			default:
			}
		}))
	if err != nil {
		return w.bus.explain(ctx, err)
	}
	// Not Stop: what the server has sent already would be lost until AckWait.
	defer pull.Drain()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		w.free(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.bus.closed:
			return ErrClosed
		case err := <-trouble:
			return err
		case <-check.C:
		}
	}
}

// bind finds the consumer or makes it, and the stream where that is missing.
func (w *worker) bind(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := w.bus.guards.brief(ctx)
	defer done()
	want := w.want
	consumer, err := w.bus.js.Consumer(ctx, w.stream, want.Durable)
	if err == nil {
		have := consumer.CachedInfo().Config
		if sameConsumer(have, want) {
			return consumer, nil
		}
		want.DeliverPolicy, want.OptStartTime = have.DeliverPolicy, have.OptStartTime // where it began stays
	}
	consumer, err = w.bus.js.CreateOrUpdateConsumer(ctx, w.stream, want)
	if err = w.bus.explain(ctx, err); errors.Is(err, ErrNoStream) {
		w.bus.mend(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", want.Durable, err)
	}
	return consumer, nil
}

func sameConsumer(have, want jetstream.ConsumerConfig) bool {
	return slices.Equal(filters(have), filters(want)) && have.AckWait == want.AckWait &&
		have.MaxDeliver == want.MaxDeliver && have.MaxAckPending == want.MaxAckPending &&
		have.InactiveThreshold == want.InactiveThreshold
}

// filters gives the subjects of a consumer, sorted: the server keeps a single
// one apart.
func filters(c jetstream.ConsumerConfig) []string {
	all := slices.Clone(c.FilterSubjects)
	if c.FilterSubject != "" {
		all = append(all, c.FilterSubject)
	}
	slices.Sort(all)
	return all
}

// begin gives the message a goroutine; the callback that delivers must not wait.
func (w *worker) begin(ctx context.Context, msg jetstream.Msg) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || ctx.Err() != nil {
		// The server did not know yet that we leave. A moment later it does,
		// and gives the message to another.
		w.tell(msg.NakWithDelay(retryPause))
		return
	}
	w.running.Go(func() { w.handle(ctx, msg) })
}

func (w *worker) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.running.Wait()
}

func (w *worker) handle(ctx context.Context, msg jetstream.Msg) {
	verdict := w.work(ctx, msg)
	switch {
	case verdict.kind == verdictPermanent:
		w.tell(msg.TermWithReason(verdict.reason))
	case verdict.kind == verdictDone:
		w.tell(msg.Ack())
	case ctx.Err() != nil:
		w.tell(msg.Nak()) // another process need not wait
	default:
		w.tell(msg.NakWithDelay(verdict.delay))
	}
}

// work runs the handler and tells the server that it still does.
func (w *worker) work(ctx context.Context, msg jetstream.Msg) Verdict {
	verdict := make(chan Verdict, 1)
	w.running.Go(func() { verdict <- w.take(ctx, msg) })
	alive := time.NewTicker(w.bus.ackWait / 3)
	defer alive.Stop()
	for {
		select {
		case v := <-verdict:
			return v
		case <-alive.C:
			w.tell(msg.InProgress())
		}
	}
}

// tell notes that an answer to the server did not leave: the message
// comes again, which is harmless.
func (w *worker) tell(err error) {
	if err != nil {
		w.bus.log.Debug("message not answered", "consumer", w.want.Durable, "error", err)
	}
}
