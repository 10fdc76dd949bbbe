package events

import (
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

var (
	receivedMessages = prometheus.NewDesc("rouse_nats_received_messages_total", "Messages that came over the NATS connection.", nil, nil)
	receivedBytes    = prometheus.NewDesc("rouse_nats_received_bytes_total", "Bytes of the messages that came over the NATS connection.", nil, nil)
	sentMessages     = prometheus.NewDesc("rouse_nats_sent_messages_total", "Messages that left over the NATS connection.", nil, nil)
	sentBytes        = prometheus.NewDesc("rouse_nats_sent_bytes_total", "Bytes of the messages that left over the NATS connection.", nil, nil)
	reconnects       = prometheus.NewDesc("rouse_nats_reconnects_total", "How often the NATS connection was lost and came back.", nil, nil)
	droppedMessages  = prometheus.NewDesc("rouse_nats_dropped_messages_total",
		"Messages dropped here since this process took them too slowly, by kind; the server does not know of these.", []string{"subject"}, nil)
	waitingMessages = prometheus.NewDesc("rouse_nats_waiting_messages",
		"Messages that have come and wait for their handler, by kind; 4096 is full.", []string{"subject"}, nil)
)

// A census counts what the client library counts of connections and
// subscriptions, over all that there were. It is a prometheus.Collector, and
// safe for concurrent use.
type census struct {
	mu        sync.Mutex
	conns     map[*nats.Conn]struct{} // guarded by mu
	gone      nats.Statistics         // of those that have ended; guarded by mu
	listeners map[*listener]struct{}  // guarded by mu
	dropped   map[string]int          // kind -> by listeners that have ended; guarded by mu
}

func newCensus() *census {
	return &census{conns: map[*nats.Conn]struct{}{}, listeners: map[*listener]struct{}{}, dropped: map[string]int{}}
}

func (c *census) connect(nc *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[nc] = struct{}{}
}

// close keeps the numbers of a connection that has ended. One that never was
// connected is not known.
func (c *census) close(nc *nats.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.conns[nc]; known {
		delete(c.conns, nc)
		c.gone = sum(c.gone, nc.Stats())
	}
}

func (c *census) add(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners[l] = struct{}{}
}

func (c *census) remove(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, l)
	c.dropped[l.kind] += l.drops()
}

// Describe tells what Collect shows.
func (c *census) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{receivedMessages, receivedBytes, sentMessages, sentBytes, reconnects, droppedMessages, waitingMessages} {
		to <- d
	}
}

// Collect shows the counts.
func (c *census) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.gone
	for nc := range c.conns {
		all = sum(all, nc.Stats())
	}
	counted := func(d *prometheus.Desc, n uint64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	counted(receivedMessages, all.InMsgs)
	counted(receivedBytes, all.InBytes)
	counted(sentMessages, all.OutMsgs)
	counted(sentBytes, all.OutBytes)
	counted(reconnects, all.Reconnects)

	dropped, waiting := maps.Clone(c.dropped), map[string]int{}
	for l := range c.listeners {
		dropped[l.kind] += l.drops()
		waiting[l.kind] += len(l.messages)
	}
	for _, kind := range slices.Sorted(maps.Keys(dropped)) {
		to <- prometheus.MustNewConstMetric(droppedMessages, prometheus.CounterValue, float64(dropped[kind]), kind)
	}
	for _, kind := range slices.Sorted(maps.Keys(waiting)) {
		to <- prometheus.MustNewConstMetric(waitingMessages, prometheus.GaugeValue, float64(waiting[kind]), kind)
	}
}

// drops asks the library, which knows only as long as a subscription lives.
func (l *listener) drops() int {
	all := 0
	for i, sub := range l.subs {
		if n, err := sub.Dropped(); err == nil {
			l.dropped[i] = n
		}
		all += l.dropped[i]
	}
	return all
}

func sum(a, b nats.Statistics) nats.Statistics {
	return nats.Statistics{
		InMsgs: a.InMsgs + b.InMsgs, OutMsgs: a.OutMsgs + b.OutMsgs,
		InBytes: a.InBytes + b.InBytes, OutBytes: a.OutBytes + b.OutBytes,
		Reconnects: a.Reconnects + b.Reconnects,
	}
}
