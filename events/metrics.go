package events

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	connected  prometheus.Gauge
	lag        *prometheus.HistogramVec // subject: the kind of message
	errors     *prometheus.CounterVec   // kind
	advisories *prometheus.CounterVec   // kind, stream_name
	census     *census
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rouse_nats_connected",
			Help: "1 while there is a connection to a NATS server.",
		}),
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rouse_event_lag_seconds",
			Help:    "From the writing of a message to its arrival here, by kind of message.",
			Buckets: prometheus.ExponentialBuckets(50e-6, 4, 11), // 50 µs to 52 s
		}, []string{"subject"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rouse_nats_errors_total",
			Help: "Errors that the NATS connection was told of (denied, slow_consumer, other), and messages skipped (malformed, version).",
		}, []string{"kind"}),
		advisories: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rouse_nats_advisories_total",
			Help: "What the NATS server told of Rouse's streams and their consumers, by kind.",
		}, []string{"kind", "stream_name"}),
		census: newCensus(),
	}
	for _, stream := range streamNames {
		for _, subject := range advisories {
			a := advisoryOf(subject)
			a.stream = stream
			m.advised(a) // from 0 on, so that the first one is an increase
		}
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(register(r, &m.connected), register(r, &m.lag), register(r, &m.errors), register(r, &m.advisories), register(r, &m.census))
}

// register shares a collector that another Bus has registered before.
func register[C prometheus.Collector](r prometheus.Registerer, c *C) error {
	err := r.Register(*c)
	var again prometheus.AlreadyRegisteredError
	if errors.As(err, &again) {
		if existing, ok := again.ExistingCollector.(C); ok {
			*c = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// advised gives the count of a kind of advisory.
func (m *metrics) advised(a advisory) prometheus.Counter {
	scope := "stream_"
	if a.consumer != "" {
		scope = "consumer_"
	}
	return m.advisories.WithLabelValues(scope+a.kind, a.stream)
}

// heard records how old a message is. The clocks of two machines may differ:
// a message from the future counts as 0.
func (m *metrics) heard(kind string, h nats.Header) {
	at, err := time.Parse(time.RFC3339Nano, header(h, headerTime))
	if err != nil {
		return
	}
	m.lag.WithLabelValues(kind).Observe(max(0, time.Since(at).Seconds()))
}
