package events

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rouse-dev/rouse/events/series"
)

const (
	// monitorEvery is how long an answer is good for: more scrapes than that
	// cost nothing.
	monitorEvery = 5 * time.Second
	// monitoredNodes is the most nodes whose wake consumers are asked about.
	monitoredNodes = 20
)

// A Monitor tells of a server that somebody else runs what a client may ask
// it: about the account, Rouse's streams, and the consumers of its wakes. It
// is safe for concurrent use.
type Monitor struct {
	bus   *Bus
	id    string
	nodes func() []string

	mu         sync.Mutex
	taken      time.Time       // zero: never; guarded by mu
	last       series.Snapshot // guarded by mu
	denied     map[string]bool // subjects that this role may not ask at; guarded by mu
	connection int64           // that denied is of; guarded by mu
}

// Monitor makes one. id names who asks, in the labels; nodes gives the nodes
// that have workloads, first those that matter most. It is called by Snapshot.
func (b *Bus) Monitor(id string, nodes func() []string) *Monitor {
	return &Monitor{bus: b, id: id, nodes: nodes}
}

// Snapshot asks the server, unless it did so within the last 5 s: at most 27
// requests, all at once. It returns within about 500 ms, whatever the server
// does; callers at the same time wait for the same answers. What was not
// answered is left out, streams are then named silent.
func (m *Monitor) Snapshot() series.Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken.IsZero() || time.Since(m.taken) >= monitorEvery {
		m.last = m.ask()
		m.taken = time.Now()
	}
	s := m.last
	s.Streams = slices.Clone(s.Streams)
	for i := range s.Streams {
		s.Streams[i].Age += time.Since(m.taken)
	}
	return s
}

// answers has a place for each request.
type answers struct {
	account   *series.Totals
	limits    series.Account
	domain    string
	streams   []*series.Stream // as streamNames; nil: none came
	consumers []*series.Consumer
}

// ask is called with mu held.
func (m *Monitor) ask() series.Snapshot {
	if now := m.bus.connections.Load(); m.denied == nil || now != m.connection {
		m.denied, m.connection = map[string]bool{}, now
	}
	ctx, cancel := context.WithTimeout(context.Background(), attemptLimit)
	defer cancel()
	nodes := firstNodes(m.nodes())

	a := answers{streams: make([]*series.Stream, len(streamNames)), consumers: make([]*series.Consumer, len(nodes))}
	denied := make(chan string, 1+len(streamNames)+len(nodes))
	var asked sync.WaitGroup
	begin := func(subject string, to any, took func()) {
		if m.denied[subject] {
			return
		}
		asked.Go(func() {
			switch err := m.bus.tryCall(ctx, subject, to); {
			case err == nil:
				took()
			case errors.Is(err, ErrDenied):
				denied <- subject
			}
		})
	}
	var account jetstream.AccountInfo
	begin(apiAccount, &account, func() { a.account, a.limits, a.domain = totalsOf(account) })
	for i, name := range streamNames {
		info := &jetstream.StreamInfo{}
		begin(apiInfo+name, info, func() { a.streams[i] = streamOf(info) })
	}
	for i, node := range nodes {
		info := &jetstream.ConsumerInfo{}
		begin(apiConsumerInfo+streamWakes+"."+consumerOf(node), info, func() { a.consumers[i] = readerOf(info) })
	}
	asked.Wait()
	close(denied)
	for subject := range denied {
		m.denied[subject] = true
	}
	return m.put(a)
}

// firstNodes gives each once, and of very many the first.
func firstNodes(all []string) []string {
	var nodes []string
	for _, node := range all {
		if len(nodes) < monitoredNodes && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// put makes one snapshot of the answers.
func (m *Monitor) put(a answers) series.Snapshot {
	s := series.Snapshot{Totals: a.account, Server: series.Server{
		ID: m.id, Name: m.bus.nc.ConnectedServerName(), Cluster: m.bus.nc.ConnectedClusterName(), Domain: a.domain,
	}}
	if a.account != nil {
		s.Accounts = []series.Account{a.limits}
	}
	for i, stream := range a.streams {
		if stream == nil {
			s.Silent = append(s.Silent, streamNames[i])
			continue
		}
		if stream.Name == streamWakes {
			for _, c := range a.consumers {
				if c != nil {
					stream.Readers = append(stream.Readers, *c)
				}
			}
		}
		s.Streams = append(s.Streams, *stream)
	}
	return s
}

// tryCall is call where it is no fault to be denied.
func (b *Bus) tryCall(ctx context.Context, subject string, to any) error {
	ctx, done := b.guards.expect(ctx, subject)
	defer done()
	return b.call(ctx, subject, to)
}

// totalsOf is what may be seen of the server: the account.
func totalsOf(a jetstream.AccountInfo) (*series.Totals, series.Account, string) {
	t := &series.Totals{
		Streams: a.Streams, Consumers: a.Consumers, Messages: -1, Bytes: a.Memory + a.Store,
		MaxMemory: a.Limits.MaxMemory, MaxStorage: a.Limits.MaxStore,
	}
	limits := series.Account{
		MemoryUsed: a.Memory, StorageUsed: a.Store, MaxMemory: a.Limits.MaxMemory, MaxStorage: a.Limits.MaxStore,
	}
	return t, limits, a.Domain
}

// streamOf is nil for a stream without a leader, about which somebody else
// answered. Who answers leads it.
func streamOf(i *jetstream.StreamInfo) *series.Stream {
	s := &series.Stream{
		Name: i.Config.Name, Leads: true,
		Messages: i.State.Msgs, Bytes: i.State.Bytes, FirstSeq: i.State.FirstSeq, LastSeq: i.State.LastSeq,
		Subjects: int(i.State.NumSubjects), Consumers: i.State.Consumers, LimitMessages: i.Config.MaxMsgs, LimitBytes: i.Config.MaxBytes,
		Ever: !i.State.LastTime.IsZero(), Age: max(0, i.TimeStamp.Sub(i.State.LastTime)),
	}
	if c := i.Cluster; c != nil {
		s.Leader, s.RaftGroup = c.Leader, c.RaftGroup
		if c.Leader == "" && i.Config.Replicas > 1 {
			return nil
		}
	}
	return s
}

func readerOf(i *jetstream.ConsumerInfo) *series.Consumer {
	c := &series.Consumer{
		Name: i.Name, Description: i.Config.Description, Leads: true,
		DeliveredConsumer: i.Delivered.Consumer, DeliveredStream: i.Delivered.Stream,
		FloorConsumer: i.AckFloor.Consumer, FloorStream: i.AckFloor.Stream,
		Pending: i.NumPending, AckPending: i.NumAckPending, MostAckPending: i.Config.MaxAckPending,
		Redelivered: i.NumRedelivered, Waiting: i.NumWaiting,
		SinceDelivery: series.Since(i.TimeStamp, i.Delivered.Last), SinceAck: series.Since(i.TimeStamp, i.AckFloor.Last),
	}
	if i.Cluster != nil {
		c.Leader = i.Cluster.Leader
	}
	return c
}
