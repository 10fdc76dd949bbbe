package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A Survey is what the server tells somebody who looks for faults.
type Survey struct {
	// Offset is how far its clock is ahead of ours, give or take the time of one
	// request; Told says that it told its time.
	Offset time.Duration
	Told   bool
	// Store is what the account's streams take on the disk, of StoreMost
	// bytes; 0 is no bound.
	Store, StoreMost uint64
	Streams          []SurveyedStream
	// Peers are all gateways of the last hour and all scalers that described a
	// workload or told of an event, by their last message.
	Peers []SurveyedPeer
	// Nodes tells of each node that has workloads how many scalers ask for its
	// wakes. It is nil where there is none, or this role may not know.
	Nodes map[string]int
}

// A SurveyedStream is one of Rouse's streams.
type SurveyedStream struct {
	Name                   string
	Missing                bool
	Messages, MostMessages uint64 // a bound of 0 is none
	Bytes, MostBytes       uint64
	Refuses                bool // what is new, once it is full
	Headless               bool // no server of the cluster leads it
	Behind                 int  // copies that are away or not up to date
}

// A SurveyedPeer is who sent a message.
type SurveyedPeer struct {
	Role, Name string
	// Age is how long ago the server stored it, Offset how far the sender's
	// clock was ahead of the server's when it was made.
	Age, Offset time.Duration
	Left        bool // it said goodbye
}

// Survey asks the server. It needs no rights but those that every role has;
// what a role may not know is left out. Beside an error the survey has what was
// told before.
func (b *Bus) Survey(ctx context.Context) (Survey, error) {
	var s Survey
	account, err := b.surveyAccount(ctx)
	if err != nil {
		return s, fmt.Errorf("ask about the store: %w", err)
	}
	s.Store, s.StoreMost = account.Store, bound(account.Limits.MaxStore)
	for _, want := range streams() {
		stream, err := b.surveyStream(ctx, want.Name, &s)
		if err != nil {
			return s, fmt.Errorf("ask about %s: %w", want.Name, err)
		}
		s.Streams = append(s.Streams, stream)
	}
	now := time.Now().Add(s.Offset) // by the server's clock
	for _, w := range []window{
		{stream: streamActivity, subject: subjectActivity + ".>"},
		{stream: streamWorkloads, subject: keyWorkloads + ".>"},
		{stream: streamEvents, subject: subjectEvent + ".>", since: now.Add(-surveyedEvents)},
	} {
		if err := b.surveyPeers(ctx, w, now, &s); err != nil {
			return s, fmt.Errorf("ask who is there: %w", err)
		}
	}
	s.Nodes = b.surveyNodes(ctx)
	return s, nil
}

// surveyedEvents is how far back the history is read for who wrote it.
const surveyedEvents = 10 * time.Minute

// bound takes the server's -1 for none.
func bound(n int64) uint64 { return uint64(max(0, n)) }

// surveyAccount asks what the account has and may have.
func (b *Bus) surveyAccount(ctx context.Context) (jetstream.AccountInfo, error) {
	var account jetstream.AccountInfo
	return account, b.call(ctx, apiAccount, &account)
}

func (b *Bus) surveyStream(ctx context.Context, name string, s *Survey) (SurveyedStream, error) {
	one := SurveyedStream{Name: name}
	asked := time.Now()
	var body jetstream.StreamInfo
	err := b.call(ctx, apiInfo+name, &body)
	if one.Missing = errors.Is(err, jetstream.ErrStreamNotFound); one.Missing {
		return one, nil
	}
	if err != nil {
		return one, err
	}
	if now := body.TimeStamp; !now.IsZero() {
		s.Offset, s.Told = now.Sub(asked.Add(time.Since(asked)/2)), true
	}
	one.Messages, one.MostMessages = body.State.Msgs, bound(body.Config.MaxMsgs)
	one.Bytes, one.MostBytes = body.State.Bytes, bound(body.Config.MaxBytes)
	one.Refuses = body.Config.Discard == jetstream.DiscardNew
	if c := body.Cluster; c != nil && body.Config.Replicas > 1 {
		one.Headless = c.Leader == ""
		for _, r := range c.Replicas {
			if r.Offline || !r.Current {
				one.Behind++
			}
		}
	}
	return one, nil
}

// surveyPeers adds who wrote the messages of a stream, each by the last one.
func (b *Bus) surveyPeers(ctx context.Context, w window, now time.Time, s *Survey) error {
	known := map[string]int{} // role and name -> index
	for i, p := range s.Peers {
		known[p.Role+" "+p.Name] = i
	}
	err := b.read(ctx, w, func(r record) {
		p, ok := peerOf(r, now)
		if !ok {
			return
		}
		key := p.Role + " " + p.Name
		if i, seen := known[key]; seen {
			s.Peers[i] = p
			return
		}
		known[key] = len(s.Peers)
		s.Peers = append(s.Peers, p)
	})
	if errors.Is(err, ErrNoStream) {
		return nil // that is told already
	}
	return err
}

// peerOf reads who sent a message from what it says of itself.
func peerOf(r record, now time.Time) (SurveyedPeer, bool) {
	source, ok := strings.CutPrefix(header(r.header, "ce-source"), "/rouse/")
	role, name, ok2 := strings.Cut(source, "/")
	made, err := time.Parse(time.RFC3339Nano, header(r.header, headerTime))
	if !ok || !ok2 || err != nil {
		return SurveyedPeer{}, false
	}
	p := SurveyedPeer{Role: cut(role, tellWidth), Name: cut(name, tellWidth), Age: max(0, now.Sub(r.at)), Offset: made.Sub(r.at)}
	if gateway, err := parseName(subjectActivity, r.subject); err == nil {
		var a struct {
			Leaving bool `json:"leaving"`
		}
		p.Role, p.Name = "gateway", gateway
		p.Left = json.Unmarshal(r.data, &a) == nil && a.Leaving
	}
	return p, true
}

// surveyNodes asks how many scalers ask for the wakes of each node that has
// workloads; nil where there is none, or this role may not know.
func (b *Bus) surveyNodes(ctx context.Context) map[string]int {
	nodes := map[string]int{}
	err := b.read(ctx, window{stream: streamWorkloads, subject: keyWorkloads + ".>"}, func(r record) {
		var w struct {
			Node string `json:"node"`
		}
		if !r.deleted() && json.Unmarshal(r.data, &w) == nil && w.Node != "" {
			nodes[w.Node] = 0
		}
	})
	if err != nil || len(nodes) == 0 {
		return nil
	}
	for node := range nodes {
		asking, err := b.surveyConsumer(ctx, consumerOf(node))
		if err != nil {
			return nil
		}
		nodes[node] = asking
	}
	return nodes
}

func (b *Bus) surveyConsumer(ctx context.Context, name string) (asking int, err error) {
	var body jetstream.ConsumerInfo
	err = b.call(ctx, apiConsumerInfo+streamWakes+"."+name, &body)
	if err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, err
	}
	return body.NumWaiting, nil
}
