package series

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels, each list with those before it.
var (
	ofServer   = []string{"server_id", "server_name", "cluster", "domain", "meta_leader", "is_meta_leader"}
	ofAccount  = append(ofServer[:len(ofServer):len(ofServer)], "account", "account_name", "account_id")
	ofStream   = append(ofAccount[:len(ofAccount):len(ofAccount)], "stream_name", "stream_leader", "is_stream_leader", "stream_raft_group")
	ofConsumer = append(ofStream[:len(ofStream):len(ofStream)], "consumer_name", "consumer_leader", "is_consumer_leader", "consumer_desc")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	healthStatus = desc("gnatsd_healthz_status", "0 while the server says that it is well, else 1.", "server_id")
	healthValue  = desc("gnatsd_healthz_status_value", "1 while the server says that it is well; value is its word.", "server_id", "value")

	serverDisabled   = desc("jetstream_server_jetstream_disabled", "1 while JetStream is off.", ofServer...)
	serverStreams    = desc("jetstream_server_total_streams", "Streams.", ofServer...)
	serverConsumers  = desc("jetstream_server_total_consumers", "Consumers of all streams.", ofServer...)
	serverMessages   = desc("jetstream_server_total_messages", "Messages in all streams.", ofServer...)
	serverBytes      = desc("jetstream_server_total_message_bytes", "Bytes in all streams.", ofServer...)
	serverMaxMemory  = desc("jetstream_server_max_memory", "Bytes that streams in memory may take; -1 is no limit.", ofServer...)
	serverMaxStorage = desc("jetstream_server_max_storage", "Bytes that streams on the disk may take; -1 is no limit.", ofServer...)

	accountMemory     = desc("jetstream_account_memory_used", "Bytes that an account's streams take in memory.", ofAccount...)
	accountStorage    = desc("jetstream_account_storage_used", "Bytes that an account's streams take on the disk.", ofAccount...)
	accountMaxMemory  = desc("jetstream_account_max_memory", "Bytes of memory that an account may use; -1 is no limit.", ofAccount...)
	accountMaxStorage = desc("jetstream_account_max_storage", "Bytes of the disk that an account may use; -1 is no limit.", ofAccount...)

	streamMessages      = desc("jetstream_stream_total_messages", "Messages in a stream.", ofStream...)
	streamBytes         = desc("jetstream_stream_total_bytes", "Bytes in a stream.", ofStream...)
	streamFirst         = desc("jetstream_stream_first_seq", "Sequence of the oldest message in a stream.", ofStream...)
	streamLast          = desc("jetstream_stream_last_seq", "Sequence of the newest message of a stream.", ofStream...)
	streamConsumers     = desc("jetstream_stream_consumer_count", "Consumers of a stream.", ofStream...)
	streamSubjects      = desc("jetstream_stream_subject_count", "Subjects that a stream has messages of.", ofStream...)
	streamLimitMessages = desc("jetstream_stream_limit_messages", "Messages that a stream may have; -1 is no limit.", ofStream...)
	streamLimitBytes    = desc("jetstream_stream_limit_bytes", "Bytes that a stream may have; -1 is no limit.", ofStream...)

	consumerDelivered       = desc("jetstream_consumer_delivered_consumer_seq", "Deliveries by a consumer, the repeated ones included.", ofConsumer...)
	consumerDeliveredStream = desc("jetstream_consumer_delivered_stream_seq", "Sequence of the newest message that a consumer delivered.", ofConsumer...)
	consumerFloor           = desc("jetstream_consumer_ack_floor_consumer_seq", "The delivery up to which all are acknowledged.", ofConsumer...)
	consumerFloorStream     = desc("jetstream_consumer_ack_floor_stream_seq", "Sequence of the message up to which all are acknowledged.", ofConsumer...)
	consumerPending         = desc("jetstream_consumer_num_pending", "Messages that a consumer has not delivered yet: its lag.", ofConsumer...)
	consumerAckPending      = desc("jetstream_consumer_num_ack_pending", "Messages delivered and not acknowledged yet.", ofConsumer...)
	consumerRedelivered     = desc("jetstream_consumer_num_redelivered", "Of those not acknowledged, the ones that were delivered more than once.", ofConsumer...)
	consumerWaiting         = desc("jetstream_consumer_num_waiting", "Open asks for messages; 0 is that nobody asks.", ofConsumer...)
	consumerSinceDelivery   = desc("jetstream_consumer_last_delivery_seconds", "How long ago a consumer last delivered.", ofConsumer...)
	consumerSinceAck        = desc("jetstream_consumer_last_ack_seconds", "How long ago a message of a consumer was last acknowledged.", ofConsumer...)

	// What the exporter has no name for.
	streamAge        = desc("rouse_nats_stream_last_message_age_seconds", "How long ago a stream's newest message was stored.", "server_id", "stream_name")
	streamSilent     = desc("rouse_nats_stream_silent", "1 for a stream that should be there and does not answer: it is missing, has no leader, or the server is away.", "server_id", "stream_name")
	consumerMostAcks = desc("rouse_nats_consumer_max_ack_pending", "Messages that a consumer may have in delivery at a time; -1 is any number.", "server_id", "stream_name", "consumer_name")
)

// A Collector shows snapshots. It is safe for concurrent use if take is.
type Collector struct{ take func() Snapshot }

// NewCollector shows what take gives, which is asked at each scrape and bounds
// how long that takes.
func NewCollector(take func() Snapshot) *Collector { return &Collector{take: take} }

// Describe tells nothing: which series there are depends on the server.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect takes a snapshot and shows it.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	s := c.take()
	g := gauges{to: to, labels: []string{s.Server.ID}}
	g.varz(s.Varz)
	g.health(s.Health)
	for _, name := range s.Silent {
		g.with(name).show(streamSilent, 1)
	}
	g.labels = []string{s.Server.ID, s.Server.Name, s.Server.Cluster, s.Server.Domain, s.Server.MetaLeader, s.Server.IsMetaLeader}
	if s.Totals != nil {
		g.totals(*s.Totals)
	}
	for _, a := range s.Accounts {
		g.with(a.Name, a.Name, a.ID).account(a)
	}
	for _, st := range s.Streams {
		g.stream(s.Server.ID, st)
	}
}

// gauges go to one scrape, with the labels so far.
type gauges struct {
	to     chan<- prometheus.Metric
	labels []string
}

// with adds labels.
func (g gauges) with(labels ...string) gauges {
	g.labels = append(g.labels[:len(g.labels):len(g.labels)], labels...)
	return g
}

func (g gauges) show(d *prometheus.Desc, value float64) {
	g.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, g.labels...)
}

func (g gauges) health(said string) {
	switch said {
	case "":
	case "ok":
		g.show(healthStatus, 0)
		g.with(said).show(healthValue, 1)
	default:
		g.show(healthStatus, 1)
		g.with(said).show(healthValue, 0)
	}
}

func (g gauges) totals(t Totals) {
	g.show(serverDisabled, oneIf(t.Disabled))
	g.show(serverStreams, float64(t.Streams))
	g.show(serverConsumers, float64(t.Consumers))
	if t.Messages >= 0 {
		g.show(serverMessages, float64(t.Messages))
	}
	g.show(serverBytes, float64(t.Bytes))
	g.show(serverMaxMemory, float64(t.MaxMemory))
	g.show(serverMaxStorage, float64(t.MaxStorage))
}

func (g gauges) account(a Account) {
	g.show(accountMemory, float64(a.MemoryUsed))
	g.show(accountStorage, float64(a.StorageUsed))
	g.show(accountMaxMemory, float64(a.MaxMemory))
	g.show(accountMaxStorage, float64(a.MaxStorage))
}

func (g gauges) stream(server string, s Stream) {
	own := gauges{to: g.to, labels: []string{server, s.Name}}
	own.show(streamSilent, 0)
	if s.Ever {
		own.show(streamAge, s.Age.Seconds())
	}
	g = g.with(s.Account, s.Account, s.AccountID, s.Name, s.Leader, strconv.FormatBool(s.Leads), s.RaftGroup)
	g.show(streamMessages, float64(s.Messages))
	g.show(streamBytes, float64(s.Bytes))
	g.show(streamFirst, float64(s.FirstSeq))
	g.show(streamLast, float64(s.LastSeq))
	g.show(streamConsumers, float64(s.Consumers))
	g.show(streamSubjects, float64(s.Subjects))
	g.show(streamLimitMessages, float64(s.LimitMessages))
	g.show(streamLimitBytes, float64(s.LimitBytes))
	for _, c := range s.Readers {
		own.with(c.Name).show(consumerMostAcks, float64(c.MostAckPending))
		g.with(c.Name, c.Leader, strconv.FormatBool(c.Leads), c.Description).consumer(c)
	}
}

func (g gauges) consumer(c Consumer) {
	g.show(consumerDelivered, float64(c.DeliveredConsumer))
	g.show(consumerDeliveredStream, float64(c.DeliveredStream))
	g.show(consumerFloor, float64(c.FloorConsumer))
	g.show(consumerFloorStream, float64(c.FloorStream))
	g.show(consumerPending, float64(c.Pending))
	g.show(consumerAckPending, float64(c.AckPending))
	g.show(consumerRedelivered, float64(c.Redelivered))
	g.show(consumerWaiting, float64(c.Waiting))
	if c.SinceDelivery >= 0 {
		g.show(consumerSinceDelivery, c.SinceDelivery.Seconds())
	}
	if c.SinceAck >= 0 {
		g.show(consumerSinceAck, c.SinceAck.Seconds())
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
