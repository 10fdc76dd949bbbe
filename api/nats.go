package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// NATS is the answer of GET /api/v1/nats: what this process shows of NATS in
// its metrics, put together for a person. A number that no metric has is 0.
type NATS struct {
	Connected bool `json:"connected"`
	// Reconnects, Dropped and SlowConsumers count since this process began:
	// connections made again, messages that it was too slow to take, and
	// clients that the embedded server hung up on.
	Reconnects    float64 `json:"reconnects"`
	Dropped       float64 `json:"dropped"`
	SlowConsumers float64 `json:"slow_consumers"`
	// StoreBytes is what all streams take, and FreeBytes what the disk of the
	// embedded server has left.
	StoreBytes float64        `json:"store_bytes"`
	FreeBytes  float64        `json:"free_bytes,omitempty"`
	Streams    []NATSStream   `json:"streams"`
	Consumers  []NATSConsumer `json:"consumers"`
}

// A NATSStream is one stream or bucket.
type NATSStream struct {
	Name     string  `json:"name"`
	Messages float64 `json:"messages"`
	Bytes    float64 `json:"bytes"`
	Leader   string  `json:"leader,omitempty"`
	// LastAgeSeconds is how old its last message is.
	LastAgeSeconds float64 `json:"last_age_seconds"`
	// Silent says that it does not answer.
	Silent bool `json:"silent,omitempty"`
}

// A NATSConsumer is one consumer of a stream.
type NATSConsumer struct {
	Stream string `json:"stream"`
	Name   string `json:"name"`
	// Pending are messages not yet handed out, AckPending those in work,
	// Redelivered those that were handed out more than once, and Waiting how
	// many asks for more are there: 0 means that nobody serves it.
	Pending     float64 `json:"pending"`
	AckPending  float64 `json:"ack_pending"`
	Redelivered float64 `json:"redelivered"`
	Waiting     float64 `json:"waiting"`
}

// natsView puts it together.
type natsView struct {
	NATS
	streams   map[string]*NATSStream
	consumers map[[2]string]*NATSConsumer
}

// nats tells of NATS.
func (s *server) nats(w http.ResponseWriter, r *http.Request) error {
	families, err := s.cfg.Gatherer.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	v := natsView{streams: map[string]*NATSStream{}, consumers: map[[2]string]*NATSConsumer{}}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			v.take(f.GetName(), m)
		}
	}
	v.Streams, v.Consumers = []NATSStream{}, []NATSConsumer{}
	for _, name := range slices.Sorted(maps.Keys(v.streams)) {
		v.Streams = append(v.Streams, *v.streams[name])
	}
	for _, c := range v.consumers {
		v.Consumers = append(v.Consumers, *c)
	}
	slices.SortFunc(v.Consumers, func(a, b NATSConsumer) int {
		return slices.Compare([]string{a.Stream, a.Name}, []string{b.Stream, b.Name})
	})
	return reply(w, http.StatusOK, v.NATS)
}

// take notes one number. Of several servers that show the same, the greatest
// counts.
func (v *natsView) take(name string, m *dto.Metric) {
	value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
	labels := labelsOf(m)
	switch name {
	case "rouse_nats_connected":
		v.Connected = value == 1
	case "rouse_nats_reconnects_total":
		v.Reconnects = value
	case "rouse_nats_dropped_messages_total":
		v.Dropped += value
	case "gnatsd_varz_slow_consumers":
		v.SlowConsumers = value
	case "rouse_nats_store_free_bytes":
		v.FreeBytes = value
	case "jetstream_stream_total_messages":
		raise(&v.stream(labels).Messages, value)
		v.stream(labels).Leader = labels["stream_leader"]
	case "jetstream_stream_total_bytes":
		s := v.stream(labels)
		before := s.Bytes
		raise(&s.Bytes, value)
		v.StoreBytes += s.Bytes - before
	case "rouse_nats_stream_last_message_age_seconds":
		raise(&v.stream(labels).LastAgeSeconds, value)
	case "rouse_nats_stream_silent":
		v.stream(labels).Silent = value == 1
	case "jetstream_consumer_num_pending":
		raise(&v.consumer(labels).Pending, value)
	case "jetstream_consumer_num_ack_pending":
		raise(&v.consumer(labels).AckPending, value)
	case "jetstream_consumer_num_redelivered":
		raise(&v.consumer(labels).Redelivered, value)
	case "jetstream_consumer_num_waiting":
		raise(&v.consumer(labels).Waiting, value)
	}
}

func raise(to *float64, value float64) { *to = max(*to, value) }

func (v *natsView) stream(labels map[string]string) *NATSStream {
	name := labels["stream_name"]
	if v.streams[name] == nil {
		v.streams[name] = &NATSStream{Name: name}
	}
	return v.streams[name]
}

func (v *natsView) consumer(labels map[string]string) *NATSConsumer {
	key := [2]string{labels["stream_name"], labels["consumer_name"]}
	if v.consumers[key] == nil {
		v.consumers[key] = &NATSConsumer{Stream: key[0], Name: key[1]}
	}
	return v.consumers[key]
}
