package scaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/rouse-dev/rouse/workload"
)

var (
	wakeBuckets    = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25, 60, 180}
	phaseBuckets   = []float64{.0001, .00025, .001, .0025, .01, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 180}
	runtimeBuckets = []float64{.001, .0025, .01, .025, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

type metrics struct {
	wakes        *prometheus.CounterVec   // workload, trigger, result
	wakeDuration *prometheus.HistogramVec // workload
	wakePhase    *prometheus.HistogramVec // workload, phase
	calls        *prometheus.HistogramVec // runtime, op, result
}

func newMetrics(r prometheus.Registerer, eachLife func(func(*life))) *metrics {
	f := promauto.With(r)
	if r != nil {
		r.MustRegister(&timeSpent{eachLife})
	}
	return &metrics{
		wakes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "rouse_wakes_total",
			Help: "Starts by who asked and how they ended: ready, or the reason of the failure.",
		}, []string{"workload", "trigger", "result"}),
		wakeDuration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rouse_wake_duration_seconds", Buckets: wakeBuckets,
			Help: "From the first request held to readiness proved.",
		}, []string{"workload"}),
		wakePhase: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rouse_wake_phase_seconds", Buckets: phaseBuckets,
			Help: "One phase of a cold start.",
		}, []string{"workload", "phase"}),
		calls: f.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rouse_runtime_request_duration_seconds", Buckets: runtimeBuckets,
			Help: "Calls to a runtime.",
		}, []string{"runtime", "op", "result"}),
	}
}

// ready counts a wake that came to readiness.
func (m *metrics) ready(w *workload.Wake) {
	m.wakes.WithLabelValues(w.Workload, string(w.Trigger), "ready").Inc()
	m.wakeDuration.WithLabelValues(w.Workload).Observe(w.ReadyAt.Sub(earliest(w.RequestedAt, w.PublishedAt, w.ReceivedAt)).Seconds())
	for _, s := range w.Steps() {
		m.wakePhase.WithLabelValues(w.Workload, string(s.Phase)).Observe(s.Duration.Seconds())
	}
}

// failed counts a wake that did not.
func (m *metrics) failed(w *workload.Wake, code workload.ReasonCode) {
	m.wakes.WithLabelValues(w.Workload, string(w.Trigger), string(code)).Inc()
}

func (m *metrics) adopted(name string) {
	m.wakes.WithLabelValues(name, string(workload.TriggerAdopted), "ready").Inc()
}

// call measures one call to a runtime.
func (m *metrics) call(runtime, op string, begun time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.calls.WithLabelValues(runtime, op, result).Observe(time.Since(begun).Seconds())
}

// forget drops the series of a workload that is gone.
func (m *metrics) forget(name string) {
	of := prometheus.Labels{"workload": name}
	m.wakes.DeletePartialMatch(of)
	m.wakeDuration.DeletePartialMatch(of)
	m.wakePhase.DeletePartialMatch(of)
}

// earliest is the first of these that is known.
func earliest(ts ...time.Time) time.Time {
	for _, t := range ts {
		if !t.IsZero() {
			return t
		}
	}
	return time.Now()
}

// timeSpent tells how long each workload has slept and run since this scaler
// looks after it, up to the moment of asking.
type timeSpent struct{ eachLife func(func(*life)) }

var (
	runningDesc = prometheus.NewDesc("rouse_workload_running_seconds_total",
		"Time in which it was waking, ready or draining.", []string{"workload"}, nil)
	asleepDesc = prometheus.NewDesc("rouse_workload_asleep_seconds_total",
		"Time in which it was asleep or failed.", []string{"workload"}, nil)
)

func (t *timeSpent) Describe(ch chan<- *prometheus.Desc) {
	ch <- runningDesc
	ch <- asleepDesc
}

func (t *timeSpent) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	t.eachLife(func(l *life) {
		asleep, running := l.glimpse().spent(now)
		ch <- prometheus.MustNewConstMetric(runningDesc, prometheus.CounterValue, running.Seconds(), l.name)
		ch <- prometheus.MustNewConstMetric(asleepDesc, prometheus.CounterValue, asleep.Seconds(), l.name)
	})
}

// spent is the time asleep and running up to now.
func (g *glimpse) spent(now time.Time) (asleep, running time.Duration) {
	if down(g.state.Phase) {
		return g.asleep + now.Sub(g.changed), g.running
	}
	return g.asleep, g.running + now.Sub(g.changed)
}
