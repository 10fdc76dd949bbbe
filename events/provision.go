package events

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of what one message may hold. A log that came with a reason is cut
// until the rest fits.
const (
	maxWake     = 8 << 10
	maxValue    = 64 << 10
	maxActivity = 512 << 10
)

// wakeLife is how long a wake waits for a scaler. Whoever still waits for the
// workload asks again each second.
const wakeLife = 2 * time.Minute

// historyLife is how long the history is kept.
const historyLife = 7 * 24 * time.Hour

// activityLife is how long the last words of a gateway are kept for a scaler
// that starts: well beyond what a silent one may be believed to be serving.
const activityLife = time.Hour

// activityMost bounds the memory for all of them: thousands of gateways.
const activityMost = 64 << 20

// activityParts is how many messages of a gateway are kept: the parts of one
// long activity. See loadsPerMessage.
const activityParts = 8

// streams are all of them, as they should be.
func streams() []jetstream.StreamConfig {
	return []jetstream.StreamConfig{
		{
			Name:        streamWakes,
			Description: "Wakes that no scaler has brought to an end yet, one for each workload",
			Subjects:    []string{subjectWake + ".*.*"},
			Retention:   jetstream.WorkQueuePolicy,
			// While one is pending or in work, a second one is refused.
			MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
			// No MaxBytes: with DiscardNew it acknowledges what it drops.
			MaxAge: wakeLife, MaxMsgs: 100_000, MaxMsgSize: maxWake,
		},
		bucket(bucketStates, "What each workload does, by compare and set", subjectState),
		bucket(bucketWorkloads, "The workloads that scalers found", subjectWorkload),
		bucket(bucketProblems, "What is wrong with other descriptions, by node", subjectProblems),
		{
			Name:        streamEvents,
			Description: "The history of every workload",
			Subjects:    []string{subjectEvent + ".*.*"},
			MaxAge:      historyLife, MaxMsgs: 100_000, MaxMsgsPerSubject: 1000, MaxMsgSize: maxValue,
			AllowDirect: true,
			RePublish:   &jetstream.RePublish{Source: subjectEvent + ".>", Destination: subjectRecorded + ".>"},
		},
		{
			Name:        streamActivity,
			Description: "What each gateway said last",
			Subjects:    []string{subjectActivity + ".*"},
			Storage:     jetstream.MemoryStorage, // written each second; worth nothing when all have restarted
			MaxBytes:    activityMost,            // a gateway may name itself as it likes
			MaxAge:      activityLife, MaxMsgsPerSubject: activityParts, MaxMsgSize: maxActivity,
			AllowDirect: true,
			RePublish:   &jetstream.RePublish{Source: subjectActivity + ".>", Destination: subjectHeard + ".>"},
		},
	}
}

// bucket is a key-value bucket whose writes the server re-publishes.
func bucket(name, description, live string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_" + name, Description: description, Subjects: []string{"$KV." + name + ".>"},
		MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, MaxMsgSize: maxValue,
		AllowRollup: true, DenyDelete: true, AllowDirect: true,
		RePublish: &jetstream.RePublish{Source: "$KV." + name + ".>", Destination: live + ".>"},
	}
}

// Provision makes the streams and buckets, or brings them up to date. Any
// number of processes may do so at once and at any time. A role that may not
// make them waits for one that may. It tries until ctx ends: a server that
// has just started needs a moment.
func (b *Bus) Provision(ctx context.Context) error {
	for _, want := range streams() {
		if err := b.ensure(ctx, want); err != nil {
			return fmt.Errorf("provision %s: %w", want.Name, err)
		}
	}
	b.provisions.Store(true)
	return nil
}

func (b *Bus) ensure(ctx context.Context, want jetstream.StreamConfig) error {
	p := provisioner{bus: b, want: want}
	for told := false; ; told = true {
		err := p.try(ctx)
		if err == nil || lasting(err) {
			return err
		}
		if !told {
			b.log.Warn("stream not provisioned yet", "stream", want.Name, "error", err)
		}
		if !sleep(ctx, 2*retryPause) {
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// A provisioner brings one stream about.
type provisioner struct {
	bus    *Bus
	want   jetstream.StreamConfig
	denied bool // this role may not; from then on it only looks
}

func (p *provisioner) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	ctx, done := p.bus.guards.brief(ctx, apiInfo+p.want.Name)
	defer done()
	stream, err := p.bus.js.Stream(ctx, p.want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return p.create(ctx)
	}
	if err != nil {
		return p.bus.explain(ctx, err)
	}
	return p.update(ctx, stream.CachedInfo().Config)
}

func (p *provisioner) create(ctx context.Context) error {
	if p.denied {
		return fmt.Errorf("%w and this role may not make it", ErrNoStream)
	}
	want := p.want
	want.Replicas = max(1, p.bus.cfg.Replicas)
	ctx, done := p.bus.guards.expect(ctx, apiCreate+want.Name)
	defer done()
	_, err := p.bus.js.CreateStream(ctx, want)
	switch err = p.bus.explain(ctx, err); {
	case errors.Is(err, ErrDenied):
		p.denied = true
		return fmt.Errorf("%w and this role may not make it", ErrNoStream)
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return fmt.Errorf("%w: another is making it", ErrNoStream) // look again
	}
	return err
}

func (p *provisioner) update(ctx context.Context, have jetstream.StreamConfig) error {
	merged := merge(have, p.want, p.bus.cfg.Replicas)
	if p.denied || reflect.DeepEqual(have, merged) {
		return nil
	}
	ctx, done := p.bus.guards.expect(ctx, apiUpdate+p.want.Name)
	defer done()
	_, err := p.bus.js.UpdateStream(ctx, merged)
	if err = p.bus.explain(ctx, err); errors.Is(err, ErrDenied) {
		p.bus.log.Warn("stream differs and this role may not change it", "stream", p.want.Name)
		return nil
	}
	return err
}

// merge is what the server has with our wishes in it: what we do not care
// about (placement, an operator's own limits) stays as it is.
func merge(have, want jetstream.StreamConfig, replicas int) jetstream.StreamConfig {
	merged := have
	merged.Description, merged.Subjects = want.Description, want.Subjects
	merged.Discard, merged.DiscardNewPerSubject = want.Discard, want.DiscardNewPerSubject
	merged.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	merged.MaxAge, merged.MaxMsgSize = want.MaxAge, want.MaxMsgSize
	merged.AllowDirect, merged.RePublish = want.AllowDirect, want.RePublish
	if want.MaxMsgs > 0 {
		merged.MaxMsgs = want.MaxMsgs
	}
	if replicas > 0 {
		merged.Replicas = replicas
	}
	return merged
}

// mend makes streams again that are missing. Only who provisioned them does
// so; all others wait for it.
func (b *Bus) mend(ctx context.Context) {
	if !b.provisions.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	if err := b.Provision(ctx); err != nil {
		b.log.Warn("missing streams not made again", "error", err)
	}
}
