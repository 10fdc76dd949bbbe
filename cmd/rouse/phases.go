package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rouse-dev/rouse/workload"
)

// phaseBuckets are in seconds, and those of the scaler, whose metric it is too.
var phaseBuckets = []float64{.0001, .00025, .001, .0025, .01, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180}

// A phaseMeter has the phases of cold starts that only a gateway can tell:
// ready and release. The others are the scaler's, under the same name.
type phaseMeter struct{ seconds *prometheus.HistogramVec }

// newPhaseMeter registers the metric, or shares that of a scaler in the same
// process.
func newPhaseMeter(reg prometheus.Registerer) (*phaseMeter, error) {
	m := &phaseMeter{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "rouse_wake_phase_seconds", Buckets: phaseBuckets,
		Help: "One phase of a cold start.",
	}, []string{"workload", "phase"})}
	err := reg.Register(m.seconds)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		shared, ok := known.ExistingCollector.(*prometheus.HistogramVec)
		if !ok {
			return nil, fmt.Errorf("register wake phases: %w", err)
		}
		m.seconds, err = shared, nil
	}
	return m, err
}

func (m *phaseMeter) observe(w *workload.Wake) {
	for _, s := range w.Steps() {
		if s.Phase == workload.PhaseReady || s.Phase == workload.PhaseRelease {
			m.seconds.WithLabelValues(w.Workload, string(s.Phase)).Observe(s.Duration.Seconds())
		}
	}
}
