//go:build linux

package trial

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// Schema of a summary.
const Schema = "loadtest/compare/1"

// Summary is what the trials come to. Its JSON is the file summary.json.
type Summary struct {
	Schema   string    `json:"schema"`
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended"`
	Manifest Manifest  `json:"manifest"`
	Config   Plan      `json:"config"`
	Places   Places    `json:"places"`
	Accepted int       `json:"accepted"`
	Made     int       `json:"made"`

	// Quantiles of the intended latency, over the accepted trials.
	Quantiles []Quantile `json:"quantiles"`
	// ServerTiming is what the routed answers themselves say was added, per
	// request: quantiles of that figure; empty where they say nothing.
	ServerTiming []Quantile `json:"server_timing_added,omitempty"`
	// CPU per request of each side's own processes, in microseconds.
	DirectCPU *Estimate `json:"direct_cpu_us,omitempty"`
	RoutedCPU *Estimate `json:"routed_cpu_us,omitempty"`

	Trials []*Trial `json:"trials"`
}

// Plan is the configuration as it is written down.
type Plan struct {
	Direct   Side    `json:"direct"`
	Routed   Side    `json:"routed"`
	Rate     float64 `json:"rate"`
	Poisson  bool    `json:"poisson"`
	Seed     uint64  `json:"seed"`
	Warmup   float64 `json:"warm_up_seconds"`
	Duration float64 `json:"duration_seconds"`
	Trials   int     `json:"trials"`
	Conns    int     `json:"connections"`
	Protocol string  `json:"protocol"`
	Limits   Limits  `json:"limits"`
	Served   string  `json:"served,omitempty"`
	// Upstream tells that the server was part of the generator, and how long
	// it took and how much it said.
	Upstream      bool    `json:"upstream_in_generator,omitempty"`
	UpstreamDelay float64 `json:"upstream_delay_ms,omitempty"`
	UpstreamSize  int     `json:"upstream_size,omitempty"`
}

func describe(c Config) Plan {
	p := Plan{
		Direct: c.Direct, Routed: c.Routed, Rate: c.Rate, Poisson: c.Poisson, Seed: c.Seed,
		Warmup: c.Warmup.Seconds(), Duration: c.Duration.Seconds(), Trials: c.Trials, Conns: c.Conns,
		Protocol: c.Protocol.String(), Limits: c.Limits, Served: c.Served,
	}
	if c.Upstream != "" {
		p.Upstream, p.UpstreamDelay, p.UpstreamSize = true, c.UpstreamDelay.Seconds()*1000, c.UpstreamSize
	}
	return p
}

// A Quantile is one figure of both sides, in milliseconds. Added is the
// median of the differences of each pair, which is not the difference of the
// medians; and a difference of quantiles is not the quantile of a difference:
// under a load that does not wait, no request of one side is the partner of
// one of the other.
type Quantile struct {
	Name   string    `json:"name"`
	Q      float64   `json:"q"`
	Direct *Estimate `json:"direct_ms,omitempty"`
	Routed *Estimate `json:"routed_ms,omitempty"`
	Added  Estimate  `json:"added_ms"`
}

var curve = []struct {
	name string
	q    float64
}{
	{"p10", 0.1}, {"p20", 0.2}, {"p30", 0.3}, {"p40", 0.4}, {"p50", 0.5}, {"p60", 0.6}, {"p70", 0.7}, {"p80", 0.8},
	{"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999},
}

// conclude draws the figures from the trials.
func (s *Summary) conclude(limits Limits) {
	s.Schema = Schema
	s.Made = len(s.Trials)
	drift(s.Trials, limits.Drift)
	accepted := s.accepted()
	s.Accepted = len(accepted)
	for _, c := range curve {
		direct := over(accepted, func(t *Trial) float64 { return latency.Milliseconds(t.Direct.intended.Quantile(c.q)) })
		routed := over(accepted, func(t *Trial) float64 { return latency.Milliseconds(t.Routed.intended.Quantile(c.q)) })
		added := make([]float64, len(direct))
		for i := range direct {
			added[i] = routed[i] - direct[i]
		}
		d, r := EstimateOf(direct), EstimateOf(routed)
		s.Quantiles = append(s.Quantiles, Quantile{c.name, c.q, &d, &r, EstimateOf(added)})
	}
	s.concludeTiming(accepted)
	s.DirectCPU = cpuOf(over(accepted, func(t *Trial) float64 { return t.Direct.WatchedMicroseconds }))
	s.RoutedCPU = cpuOf(over(accepted, func(t *Trial) float64 { return t.Routed.WatchedMicroseconds }))
}

func (s *Summary) concludeTiming(accepted []*Trial) {
	var told []latency.Summary
	for _, t := range accepted {
		if added := t.Routed.Report.Added; added != nil {
			told = append(told, *added)
		}
	}
	if len(told) == 0 {
		return
	}
	for _, c := range []struct {
		name string
		q    float64
		of   func(latency.Summary) float64
	}{
		{"p50", 0.5, func(s latency.Summary) float64 { return s.P50 }},
		{"p95", 0.95, func(s latency.Summary) float64 { return s.P95 }},
		{"p99", 0.99, func(s latency.Summary) float64 { return s.P99 }},
	} {
		values := make([]float64, len(told))
		for i := range told {
			values[i] = c.of(told[i])
		}
		s.ServerTiming = append(s.ServerTiming, Quantile{Name: c.name, Q: c.q, Added: EstimateOf(values)})
	}
}

func cpuOf(values []float64) *Estimate {
	e := EstimateOf(values)
	if e.Max == 0 {
		return nil // of no process
	}
	return &e
}

func (s *Summary) accepted() []*Trial {
	var accepted []*Trial
	for _, t := range s.Trials {
		if t.Accepted() {
			accepted = append(accepted, t)
		}
	}
	return accepted
}

func over(trials []*Trial, value func(*Trial) float64) []float64 {
	values := make([]float64, len(trials))
	for i, t := range trials {
		values[i] = value(t)
	}
	return values
}

// Text writes the summary for a person.
func (s *Summary) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	p("%g requests per second for %gs, %d of %d trials accepted\n", s.Config.Rate, s.Config.Duration, s.Accepted, s.Made)
	p("%s, %d cores, Linux %s, %s, loadtest %s, %s\n\n", s.Manifest.Machine.CPU, s.Manifest.Machine.Cores, s.Manifest.Machine.Kernel,
		s.Manifest.Machine.Go, s.Manifest.Version, s.Began.UTC().Format(time.RFC3339))
	if s.Accepted > 0 {
		s.textOfQuantiles(p)
	}
	if !s.Places.Known {
		p("the processes compared are not known: work of others was not looked for\n")
	}
	for _, t := range s.Trials {
		for _, reason := range t.Rejected {
			p("trial %d rejected: %s\n", t.Number, reason)
		}
	}
	return table.Flush()
}

func (s *Summary) textOfQuantiles(p func(string, ...any)) {
	p("ms, from the intended send\tdirect\trouted\tadded\tinterval\t\n")
	coverage := 0.0
	for _, q := range s.Quantiles {
		if q.Q < 0.5 || q.Q > 0.5 && q.Q < 0.9 {
			continue
		}
		p("%s\t%.3f\t%.3f\t%+.3f\t%+.3f to %+.3f\t\n", q.Name, q.Direct.Median, q.Routed.Median, q.Added.Median, q.Added.Low, q.Added.High)
		coverage = q.Added.Coverage
	}
	for _, q := range s.ServerTiming {
		p("by Server-Timing, %s\t\t\t%+.3f\t%+.3f to %+.3f\t\n", q.Name, q.Added.Median, q.Added.Low, q.Added.High)
	}
	if s.DirectCPU != nil {
		p("server's CPU a request, µs\t%.1f\t\t\t%.1f to %.1f\t\n", s.DirectCPU.Median, s.DirectCPU.Low, s.DirectCPU.High)
	}
	if s.RoutedCPU != nil {
		p("proxy's CPU a request, µs\t\t%.1f\t\t%.1f to %.1f\t\n", s.RoutedCPU.Median, s.RoutedCPU.Low, s.RoutedCPU.High)
	}
	p("medians over the trials; the interval holds the median added with %.1f %%\n", 100*coverage)
}
