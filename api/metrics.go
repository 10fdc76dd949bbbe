package api

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// A Build names the program that runs.
type Build struct {
	Version, Revision string
}

// Metrics are those of the process itself.
type Metrics struct {
	reload prometheus.Gauge
}

// NewMetrics registers what tells one process from another: the build, the
// configuration's last reload (which counts as successful until Reloaded says
// otherwise), and the Go runtime's and the process's own numbers. With a nil
// Registerer it registers nothing. It panics if reg has them already, as
// Registerer.MustRegister does.
func NewMetrics(reg prometheus.Registerer, b Build) *Metrics {
	m := &Metrics{reload: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rouse_config_last_reload_successful",
		Help: "1 if the configuration was valid when it was last read, else 0 and the one before it is in force.",
	})}
	m.Reloaded(true)
	if reg == nil {
		return m
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "rouse_build_info",
		Help:        "Always 1; the labels name the build.",
		ConstLabels: prometheus.Labels{"version": b.Version, "goversion": runtime.Version(), "revision": b.Revision},
	})
	build.Set(1)
	reg.MustRegister(m.reload, build,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Reloaded records how the configuration's last reload went.
func (m *Metrics) Reloaded(ok bool) {
	if ok {
		m.reload.Set(1)
	} else {
		m.reload.Set(0)
	}
}
