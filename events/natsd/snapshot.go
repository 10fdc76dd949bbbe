package natsd

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rouse-dev/rouse/events/series"
)

// Others may use the server too, and may make as many streams and consumers as
// they like: of very many the first are shown.
const (
	mostStreams   = 200
	mostConsumers = 50 // of one stream
)

// Snapshot tells how the server is, from calls within the process: no
// monitoring port is needed, and none is open. It takes well below a
// millisecond with a few streams. Of a server that has ended it is empty.
func (s *Server) Snapshot() series.Snapshot {
	if !s.inner.Running() {
		return series.Snapshot{}
	}
	varz, err := s.inner.Varz(nil)
	if err != nil {
		return series.Snapshot{}
	}
	// The name outlives a restart where it was given; the server's own ID never does.
	out := series.Snapshot{
		Server: series.Server{ID: varz.Name, Name: varz.Name, IsMetaLeader: "true"},
		Varz:   parts(varz), Health: s.inner.Healthz(nil).Status,
	}
	js, err := s.inner.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Consumer: true, Config: true, RaftGroups: true})
	if err != nil {
		return out
	}
	out.Server.Domain = js.Config.Domain
	if js.Meta != nil {
		out.Server.Cluster, out.Server.MetaLeader = js.Meta.Name, js.Meta.Leader
		out.Server.IsMetaLeader = yes(js.Meta.Leader == varz.Name)
	}
	out.Totals = &series.Totals{
		Disabled: js.Disabled, Streams: js.Streams, Consumers: js.Consumers, Messages: int64(js.Messages), Bytes: js.Bytes,
		MaxMemory: js.Config.MaxMemory, MaxStorage: js.Config.MaxStore,
	}
	for _, a := range js.AccountDetails {
		out.Accounts = append(out.Accounts, series.Account{
			Name: a.Name, ID: a.Id, MemoryUsed: a.Memory, StorageUsed: a.Store,
			MaxMemory: int64(a.ReservedMemory), MaxStorage: int64(a.ReservedStore),
		})
		for _, d := range a.Streams {
			out.Streams = append(out.Streams, streamOf(a, d, varz.Name, js.Now))
		}
	}
	slices.SortFunc(out.Streams, func(x, y series.Stream) int {
		return cmp.Or(cmp.Compare(x.Account, y.Account), cmp.Compare(x.Name, y.Name))
	})
	out.Streams = out.Streams[:min(len(out.Streams), mostStreams)]
	return out
}

// parts are a server's account of itself as its /varz would have it.
func parts(v *server.Varz) map[string]any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	var all map[string]any
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

func streamOf(a *server.AccountDetail, d server.StreamDetail, name string, now time.Time) series.Stream {
	out := series.Stream{
		Account: a.Name, AccountID: a.Id, Name: d.Name, RaftGroup: d.RaftGroup,
		Messages: d.State.Msgs, Bytes: d.State.Bytes, FirstSeq: d.State.FirstSeq, LastSeq: d.State.LastSeq,
		Subjects: d.State.NumSubjects, Consumers: d.State.Consumers, LimitMessages: -1, LimitBytes: -1,
		Ever: !d.State.LastTime.IsZero(), Age: max(0, now.Sub(d.State.LastTime)),
	}
	out.Leader, out.Leads = leads(d.Cluster, name)
	if d.Config != nil {
		out.LimitMessages, out.LimitBytes = d.Config.MaxMsgs, d.Config.MaxBytes
	}
	for _, c := range d.Consumer {
		out.Readers = append(out.Readers, consumerOf(c, name))
	}
	slices.SortFunc(out.Readers, func(x, y series.Consumer) int { return cmp.Compare(x.Name, y.Name) })
	out.Readers = out.Readers[:min(len(out.Readers), mostConsumers)]
	return out
}

func consumerOf(c *server.ConsumerInfo, name string) series.Consumer {
	out := series.Consumer{
		Name:              c.Name,
		DeliveredConsumer: c.Delivered.Consumer, DeliveredStream: c.Delivered.Stream,
		FloorConsumer: c.AckFloor.Consumer, FloorStream: c.AckFloor.Stream,
		Pending: c.NumPending, AckPending: c.NumAckPending, MostAckPending: -1,
		Redelivered: c.NumRedelivered, Waiting: c.NumWaiting,
		SinceDelivery: series.Since(c.TimeStamp, c.Delivered.Last), SinceAck: series.Since(c.TimeStamp, c.AckFloor.Last),
	}
	out.Leader, out.Leads = leads(c.Cluster, name)
	if c.Config != nil {
		out.Description, out.MostAckPending = c.Config.Description, c.Config.MaxAckPending
	}
	return out
}

// leads gives the leader's name and whether that is the one who tells. Without
// a cluster there is no other.
func leads(c *server.ClusterInfo, name string) (leader string, is bool) {
	if c == nil {
		return "", true
	}
	return c.Leader, c.Leader == name
}

func yes(is bool) string {
	if is {
		return "true"
	}
	return "false"
}
