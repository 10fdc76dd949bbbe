package events

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rouse-dev/rouse/workload"
)

// advisoryRoot begins the subjects on which the server tells of itself.
const advisoryRoot = "$JS.EVENT.ADVISORY."

// advisories are those that tell of trouble or of its end. Not all that there
// are: while anybody hears those about the API, the server writes one for each
// request.
var advisories = []string{
	advisoryRoot + "STREAM.QUORUM_LOST.*",
	advisoryRoot + "STREAM.LEADER_ELECTED.*",
	advisoryRoot + "STREAM.DELETED.*",
	advisoryRoot + "CONSUMER.QUORUM_LOST.*.*",
	advisoryRoot + "CONSUMER.LEADER_ELECTED.*.*",
	advisoryRoot + "CONSUMER.MAX_DELIVERIES.*.*",
	advisoryRoot + "CONSUMER.MSG_TERMINATED.*.*",
}

// An advisory is what the server tells of a stream of Rouse's, or of one of
// its consumers.
type advisory struct {
	kind             string // as in the subject, in lower case
	stream, consumer string // the consumer is empty if it is about the stream
	detail           string
}

// FollowAdvisories takes in what the server tells of Rouse's streams and
// consumers; Trouble has what is wrong by it. What is told while nobody hears
// is lost. It blocks until ctx ends and returns nil, or ErrDenied where this
// role may not hear it, which is no fault of its health, or ErrClosed.
func (b *Bus) FollowAdvisories(ctx context.Context) error {
	ctx, done := b.guards.guard(ctx, advisoryRoot+">")
	defer done()
	heard, err := b.listen("", advisories...)
	if err != nil {
		return err
	}
	defer heard.stop()
	for {
		select {
		case msg := <-heard.messages:
			b.advise(msg)
		case <-ctx.Done():
		case <-b.closed:
		}
		if over, err := b.over(ctx); over {
			return err
		}
	}
}

// advise takes in one advisory.
func (b *Bus) advise(msg *nats.Msg) {
	a, err := decodeAdvisory(msg)
	if err != nil {
		b.skip("advisory", msg.Subject, err)
		return
	}
	if !slices.Contains(streamNames, a.stream) {
		return // of another application in this account
	}
	b.metrics.advised(a).Inc()
	if b.trouble.hear(a, time.Now()) {
		b.log.Warn("nats server tells of trouble", "kind", a.kind, "stream", a.stream, "consumer", a.consumer, "detail", a.detail)
	}
}

// decodeAdvisory reads one; the subject says what it is about.
func decodeAdvisory(msg *nats.Msg) (advisory, error) {
	a := advisoryOf(msg.Subject)
	if a.kind == "" {
		return advisory{}, fmt.Errorf("%w subject %q", ErrMalformed, cut(msg.Subject, tellWidth))
	}
	var body struct {
		Type       string `json:"type"`
		Leader     string `json:"leader"`
		Deliveries uint64 `json:"deliveries"`
	}
	if err := json.Unmarshal(msg.Data, &body); err != nil {
		return advisory{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if !strings.HasPrefix(body.Type, "io.nats.jetstream.advisory.") {
		return advisory{}, fmt.Errorf("%w: no advisory", ErrMalformed)
	}
	switch a.kind {
	case leaderElected:
		a.detail = cut(body.Leader, tellWidth)
	case maxDeliveries:
		a.detail = fmt.Sprint(body.Deliveries)
	}
	return a, nil
}

// advisoryOf reads a subject, which is not one of an advisory if the kind is
// empty.
func advisoryOf(subject string) (a advisory) {
	rest, ok := strings.CutPrefix(subject, advisoryRoot)
	tokens := strings.Split(rest, ".")
	if !ok || len(tokens) < 3 || len(tokens) > 4 {
		return advisory{}
	}
	a = advisory{kind: strings.ToLower(tokens[1]), stream: tokens[2]}
	if len(tokens) == 4 {
		a.consumer = tokens[3]
	}
	return a
}

// Trouble is what the server told of within the last 15 minutes and has not
// taken back, the newest first, at most twenty, for whoever shows problems.
// Empty without FollowAdvisories.
func (b *Bus) Trouble() []workload.Problem { return b.trouble.problems(time.Now()) }
