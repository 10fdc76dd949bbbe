package events

import (
	"context"
	"errors"
	"fmt"
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
	pullMost      = 8 // few: a wake that lies in a client's buffer waits for nothing
	rebindFirst   = 50 * time.Millisecond
	rebindMost    = time.Second
)

// A wakeServer hands the wakes of one node to a handler.
type wakeServer struct {
	bus      *Bus
	node     string
	consumer string // its name
	parallel int
	handle   func(context.Context, workload.Wake) Verdict
	freed    time.Time // of the wake that was freed last; belongs to run

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
	s := &wakeServer{
		bus: b, node: node, parallel: max(1, parallel), handle: h,
		consumer: consumerOf(node),
	}
	name := streamWakes + "." + s.consumer
	ctx, done := b.guards.guard(ctx, apiConsumerInfo+name, apiConsumerCreate+name+".>",
		apiConsumerNext+name, "$JS.ACK."+name+".>")
	defer done()
	err := s.run(ctx)
	s.end()
	return err
}

// run binds to the consumer again whenever there was trouble with it.
func (s *wakeServer) run(ctx context.Context) error {
	again, stop := s.bus.resync.listen()
	defer stop()
	pause := rebindFirst
	for {
		begun := time.Now()
		err := s.consume(ctx)
		if over, err := s.bus.over(ctx); over {
			return err
		}
		if time.Since(begun) > rebindMost {
			pause = rebindFirst
		}
		s.bus.log.Warn("wake consumer interrupted", "node", s.node, "error", err)
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

// consume binds, takes wakes until ctx ends or there is trouble, and says
// which. The library goes on by itself after some troubles and stands still
// for long after others; all are treated alike, since to bind costs one
// request.
func (s *wakeServer) consume(ctx context.Context) error {
	consumer, err := s.bind(ctx)
	if err != nil {
		return err
	}
	trouble := make(chan error, 1)
	pull, err := consumer.Consume(func(msg jetstream.Msg) { s.begin(ctx, msg) },
		jetstream.PullMaxMessages(min(s.parallel, pullMost)),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			select {
			case trouble <- err:
			default:
			}
		}))
	if err != nil {
		return s.bus.explain(ctx, err)
	}
	// Not Stop: what the server has sent already would be lost until AckWait.
	defer pull.Drain()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for {
		s.free(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.bus.closed:
			return ErrClosed
		case err := <-trouble:
			return err
		case <-check.C:
		}
	}
}

// bind finds the consumer or makes it, and the stream where that is missing.
func (s *wakeServer) bind(ctx context.Context) (jetstream.Consumer, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := s.bus.guards.brief(ctx)
	defer done()
	want := jetstream.ConsumerConfig{
		Durable:       s.consumer,
		FilterSubject: subject(subjectWake, s.node) + ".*",
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       s.bus.ackWait,
		MaxDeliver:    -1, // a bound would leave the message behind, in the way of the next wake
		MaxAckPending: s.parallel,
	}
	consumer, err := s.bus.js.Consumer(ctx, streamWakes, s.consumer)
	if err == nil && sameConsumer(consumer.CachedInfo().Config, want) {
		return consumer, nil
	}
	consumer, err = s.bus.js.CreateOrUpdateConsumer(ctx, streamWakes, want)
	if err = s.bus.explain(ctx, err); errors.Is(err, ErrNoStream) {
		s.bus.mend(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", s.consumer, err)
	}
	return consumer, nil
}

func sameConsumer(a, b jetstream.ConsumerConfig) bool {
	return a.FilterSubject == b.FilterSubject && a.AckWait == b.AckWait &&
		a.MaxDeliver == b.MaxDeliver && a.MaxAckPending == b.MaxAckPending
}

// begin gives the wake a goroutine; the callback that delivers must not wait.
func (s *wakeServer) begin(ctx context.Context, msg jetstream.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || ctx.Err() != nil {
		// The server did not know yet that we leave. A moment later it does,
		// and gives the wake to another.
		s.tell(msg.NakWithDelay(retryPause))
		return
	}
	s.running.Go(func() { s.serve(ctx, msg) })
}

func (s *wakeServer) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()
}

func (s *wakeServer) serve(ctx context.Context, msg jetstream.Msg) {
	w, err := decodeWake(msg.Subject(), msg.Headers(), msg.Data())
	if err != nil {
		s.bus.skip("wake", msg.Subject(), err)
		s.tell(msg.TermWithReason("cannot be read")) // else it would be in the way of the next
		return
	}
	s.bus.metrics.heard("wake", msg.Headers())
	verdict := s.work(ctx, w, msg)
	switch {
	case verdict.kind == verdictPermanent:
		s.tell(msg.TermWithReason(verdict.reason))
	case verdict.kind == verdictDone:
		s.tell(msg.Ack())
	case ctx.Err() != nil:
		s.tell(msg.Nak()) // another scaler need not wait
	default:
		s.tell(msg.NakWithDelay(verdict.delay))
	}
}

// work runs the handler and tells the server that it still does.
func (s *wakeServer) work(ctx context.Context, w workload.Wake, msg jetstream.Msg) Verdict {
	verdict := make(chan Verdict, 1)
	s.running.Go(func() { verdict <- s.handle(ctx, w) })
	alive := time.NewTicker(s.bus.ackWait / 3)
	defer alive.Stop()
	for {
		select {
		case v := <-verdict:
			return v
		case <-alive.C:
			s.tell(msg.InProgress())
		}
	}
}

// tell notes that an answer to the server did not leave: the wake comes
// again, which is harmless.
func (s *wakeServer) tell(err error) {
	if err != nil {
		s.bus.log.Debug("wake not answered", "node", s.node, "error", err)
	}
}
