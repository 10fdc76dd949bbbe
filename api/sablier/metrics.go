package sablier

import "github.com/prometheus/client_golang/prometheus"

// A meter counts the calls of one strategy by how they were answered.
type meter struct{ ready, notReady, refused prometheus.Counter }

// newMeters registers nothing where reg is nil.
func newMeters(reg prometheus.Registerer) (blocking, dynamic meter) {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "rouse_sablier_calls_total",
		Help: "Calls of Sablier's API by strategy and answer: ready, not-ready (dynamic alone), or error.",
	}, []string{"strategy", "answer"})
	if reg != nil {
		reg.MustRegister(calls)
	}
	of := func(strategy string) meter {
		return meter{calls.WithLabelValues(strategy, "ready"), calls.WithLabelValues(strategy, "not-ready"), calls.WithLabelValues(strategy, "error")}
	}
	return of("blocking"), of("dynamic")
}
