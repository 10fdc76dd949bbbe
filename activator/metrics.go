package activator

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/workload"
)

// The reasons for which a request is turned away at a gate.
const (
	rejectedRequests = iota
	rejectedBytes
	rejectedTotal
	rejectedWakes
	rejectedFailed
	numRejections
)

var rejectionNames = [numRejections]string{"requests", "bytes", "total", "wakes", "failed"}

var (
	queueDesc = prometheus.NewDesc("rouse_queue_requests",
		"Requests held now.", []string{"workload"}, nil)
	rejectedDesc = prometheus.NewDesc("rouse_queue_rejected_total",
		"Requests that were not held.", []string{"workload", "reason"}, nil)
	inFlightDesc = prometheus.NewDesc("rouse_in_flight_requests",
		"Requests in flight now, as this gateway counts them.", []string{"workload"}, nil)
	phaseDesc = prometheus.NewDesc("rouse_workload_phase",
		"1 for the phase that this gateway knows the workload to be in.", []string{"workload", "phase"}, nil)
)

// A collector reads the gates when it is asked, so that counting costs a
// request nothing and a removed workload leaves nothing behind.
type collector struct{ activator *Activator }

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDesc, rejectedDesc, inFlightDesc, phaseDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	for _, v := range c.activator.Views() {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
		}
		gauge(queueDesc, float64(v.Queued), v.Name)
		gauge(inFlightDesc, float64(v.InFlight), v.Name)
		for _, p := range workload.Phases() {
			gauge(phaseDesc, boolean(p == v.State.Phase), v.Name, p.String())
		}
	}
	for name, g := range *c.activator.gates.Load() {
		collectRejected(metrics, name, &g.rejected)
	}
}

func collectRejected(metrics chan<- prometheus.Metric, name string, rejected *[numRejections]atomic.Uint64) {
	for i := range rejected {
		metrics <- prometheus.MustNewConstMetric(rejectedDesc, prometheus.CounterValue,
			float64(rejected[i].Load()), name, rejectionNames[i])
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
