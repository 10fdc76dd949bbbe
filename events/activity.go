package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rouse-dev/rouse/workload"
)

// loadsPerMessage keeps an activity far below the server's bound on messages
// (1 MB), whatever the number of workloads.
const loadsPerMessage = 1000

// ReportActivity tells what a gateway does, and returns once that is certain to
// be known by every scaler, whatever happens to the gateway from then on. It
// tries for about 500 ms.
func (b *Bus) ReportActivity(ctx context.Context, a workload.Activity) error {
	return b.sendActivity(a, func(msg *nats.Msg) error { return b.put(ctx, msg) })
}

// PublishActivity tells the scalers what a gateway does, without waiting for
// anything. A long one goes out in parts. What is lost is made good by the
// next one, so that an error is worth no more than a count.
func (b *Bus) PublishActivity(a workload.Activity) error {
	return b.sendActivity(a, b.nc.PublishMsg)
}

func (b *Bus) sendActivity(a workload.Activity, send func(*nats.Msg) error) error {
	loads := slices.Collect(slices.Chunk(a.Loads, loadsPerMessage))
	if len(loads) == 0 {
		loads = [][]workload.Load{nil} // a sign of life
	}
	for _, a.Loads = range loads {
		msg, err := b.message(subject(subjectActivity, a.Gateway), envelope{kind: "activity", about: a.Gateway}, a)
		if err == nil {
			err = b.explain(context.Background(), send(msg))
		}
		if err != nil {
			return fmt.Errorf("publish activity: %w", err)
		}
	}
	return nil
}

// FollowActivity hands the last words of every gateway and then each activity
// to h, with the moment of it, from one goroutine. It blocks until ctx ends
// and returns nil, or ErrDenied, or ErrClosed.
func (b *Bus) FollowActivity(ctx context.Context, h func(workload.Activity, time.Time)) error {
	f := &feed{
		bus: b, stream: streamActivity, source: subjectActivity + ".>", live: subjectHeard + ".>", kind: "activity",
		take: func(r record) {
			a, err := decodeActivity(r.subject, r.header, r.data)
			if err != nil {
				b.skip("activity", r.subject, err)
			}
			if err != nil && !errors.Is(err, ErrVersion) {
				return
			}
			h(a, r.heard)
		},
	}
	f.idle = func() { b.recalled.Store(f.upTo) }
	return f.run(ctx)
}

// HearsGateways reports that FollowActivity handed over the last words of
// every gateway since the connection stands, which it does now.
func (b *Bus) HearsGateways() bool {
	return b.Connected() && b.recalled.Load() == b.connections.Load()
}

// decodeActivity reads an activity; the subject says whose it is. With
// ErrVersion comes a sign of life: that gateway has to be asked before anything
// is stopped.
func decodeActivity(subject string, h nats.Header, data []byte) (workload.Activity, error) {
	gateway, err := parseName(subjectActivity, subject)
	if err != nil {
		return workload.Activity{}, err
	}
	var a workload.Activity
	if err := decode("activity", gateway, h, data, &a); err != nil {
		return workload.Activity{Gateway: gateway}, err
	}
	a.Gateway = gateway
	for _, l := range a.Loads {
		if l.InFlight < 0 || l.Queued < 0 || l.IdleMS < -1 || l.IdleMS > maxIdle || l.KeepMS < -maxIdle || l.KeepMS > maxIdle {
			return workload.Activity{}, fmt.Errorf("activity of %s: %w: numbers that cannot be", gateway, ErrMalformed)
		}
	}
	return a, nil
}

// maxIdle is a hundred years in milliseconds, which a Duration can hold.
const maxIdle = 100 * 365 * 24 * 3600 * 1000
