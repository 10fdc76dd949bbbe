package router

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// An outcome is how a request ended, for metrics and the access log.
type outcome uint8

const (
	outcomeWarm     outcome = iota // forwarded at once
	outcomeHeld                    // held, then forwarded
	outcomePage                    // answered with the waiting page
	outcomeShed                    // refused: too many wait already
	outcomeTimeout                 // held for as long as it may be
	outcomeNoWake                  // asleep, and not allowed to wake
	outcomeError                   // not answered by the workload, or not to its end
	outcomeCanceled                // the client left
	outcomeDenied                  // refused by the authentication service
	outcomeCount
)

var outcomeNames = [outcomeCount]string{"warm", "held", "page", "shed", "timeout", "nowake", "error", "canceled", "denied"}

func (o outcome) String() string { return outcomeNames[o] }

// addedBuckets go from 25 µs to 60 s: a warm hop and a long cold start are
// both to be seen in them.
var addedBuckets = []float64{
	25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3,
	50e-3, 100e-3, 250e-3, 500e-3, 1, 2.5, 5, 10, 30, 60,
}

// meters are the metrics of the router over all workloads.
type meters struct {
	requests *prometheus.CounterVec
	added    *prometheus.HistogramVec
}

// A meter is the metrics of one workload, resolved once so that a request
// looks up no label. It is safe for concurrent use.
type meter struct {
	requests   [outcomeCount]prometheus.Counter
	warm, cold prometheus.Observer // what Rouse added, in seconds
}

// newMeters makes the metrics and registers them; nil registers nowhere.
func newMeters(registerer prometheus.Registerer) (*meters, error) {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rouse_requests_total",
			Help: "Requests by how they ended.",
		}, []string{"workload", "outcome"}),
		added: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rouse_added_latency_seconds",
			Help:    "Time to first byte that Rouse added, without the wait for the workload to start.",
			Buckets: addedBuckets,
		}, []string{"workload", "path"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.added} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// of resolves the metrics of one workload; the empty name is the requests
// that no workload serves.
func (m *meters) of(workload string) *meter {
	r := &meter{
		warm: m.added.WithLabelValues(workload, "warm"),
		cold: m.added.WithLabelValues(workload, "cold"),
	}
	for o := range outcomeCount {
		r.requests[o] = m.requests.WithLabelValues(workload, o.String())
	}
	return r
}

// forget drops the series of a workload that is gone.
func (m *meters) forget(workload string) {
	labels := prometheus.Labels{"workload": workload}
	m.requests.DeletePartialMatch(labels)
	m.added.DeletePartialMatch(labels)
}

// observe records what Rouse added to a forwarded request.
func (m *meter) observe(cold bool, added time.Duration) {
	if cold {
		m.cold.Observe(added.Seconds())
		return
	}
	m.warm.Observe(added.Seconds())
}
