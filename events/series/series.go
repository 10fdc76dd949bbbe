// Package series shows what a NATS server tells of itself as metrics, under
// the names and labels of prometheus-nats-exporter (v0.20), so that dashboards
// and alerts which were made for that fit: gnatsd_varz_*, gnatsd_healthz_*
// and jetstream_*. What the exporter has no name for is called rouse_nats_*.
//
// It knows no server and no client: who has the numbers fills in a Snapshot,
// all of it or in part. What is not known has no series; nothing is made up.
package series

import "time"

// A Snapshot is what was known at one moment.
type Snapshot struct {
	// Server is whom the labels of every series name.
	Server Server
	// Varz is the server's own account of itself, as its /varz has it in JSON;
	// nil is not known.
	Varz map[string]any
	// Health is "ok" or what else the server says of it; empty is not known.
	Health string
	// Totals are those of the server, or of as much of it as may be seen; nil
	// is not known.
	Totals   *Totals
	Accounts []Account
	Streams  []Stream
	// Silent are the names of streams that should be there and did not answer.
	Silent []string
}

// A Server is told apart from others by these. They are labels: each of them
// has few values over the life of an installation.
type Server struct {
	ID, Name, Cluster, Domain string
	// MetaLeader is the name of the server that leads the cluster, IsMetaLeader
	// "true" or "false"; both are empty where that is not known.
	MetaLeader, IsMetaLeader string
}

// Totals count what there is. Limits are bytes; -1 is none. Messages of -1 are
// not known.
type Totals struct {
	Disabled              bool
	Streams, Consumers    int
	Messages              int64
	Bytes                 uint64
	MaxMemory, MaxStorage int64
}

// An Account has a share of the store. Used and Max are bytes; a Max of -1 is
// no limit.
type Account struct {
	Name, ID                string
	MemoryUsed, StorageUsed uint64
	MaxMemory, MaxStorage   int64
}

// A Stream is one stream as one server sees it.
type Stream struct {
	Account, AccountID, Name string
	// Leader is the server that leads it, empty outside of a cluster; Leads
	// says that it is the one that told.
	Leader, RaftGroup string
	Leads             bool

	Messages, Bytes     uint64
	FirstSeq, LastSeq   uint64
	Subjects, Consumers int
	// Limits of -1 are none.
	LimitMessages, LimitBytes int64
	// Age is how long ago the last message was stored; Ever says that there
	// was one.
	Age  time.Duration
	Ever bool

	Readers []Consumer
}

// A Consumer is one reader of a stream.
type Consumer struct {
	Name, Leader, Description string
	Leads                     bool

	DeliveredConsumer, DeliveredStream uint64
	FloorConsumer, FloorStream         uint64
	// Pending is what it was not given yet, AckPending what it was given and
	// has not answered, of MostAckPending (-1: any number), Redelivered what
	// of that was given more than once; Waiting is how many asks of clients
	// are open.
	Pending                    uint64
	AckPending, MostAckPending int
	Redelivered, Waiting       int
	// SinceDelivery and SinceAck are how long ago those were last; negative
	// for never.
	SinceDelivery, SinceAck time.Duration
}

// Since is how long before now at was, and -1 if it never was. What lies ahead
// was just now: two clocks may differ.
func Since(now time.Time, at *time.Time) time.Duration {
	if at == nil || at.IsZero() {
		return -1
	}
	return max(0, now.Sub(*at))
}
