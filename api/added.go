package api

import (
	"fmt"
	"math"
	"net/http"

	dto "github.com/prometheus/client_model/go"
)

// addedMetric is the router's histogram of what it added, in seconds.
const addedMetric = "rouse_added_latency_seconds"

// Added is the answer of GET /api/v1/added: what Rouse added to requests since
// this process began, to those that were forwarded at once and to those that
// were held.
type Added struct {
	Warm Histogram `json:"warm"`
	Cold Histogram `json:"cold"`
}

// A Histogram counts durations in buckets.
type Histogram struct {
	// Bounds are the upper bounds of the buckets in seconds; one bucket more
	// has what is above the last.
	Bounds []float64 `json:"bounds_seconds"`
	// Counts are how many lie in each bucket, not below it.
	Counts []uint64 `json:"counts"`
	Total  uint64   `json:"total"`
	Sum    float64  `json:"sum_seconds"`
}

// add sums up another of the same bounds.
func (h *Histogram) add(o *dto.Histogram) {
	if h.Counts == nil {
		h.Bounds = []float64{}
		for _, b := range o.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				h.Bounds = append(h.Bounds, b.GetUpperBound())
			}
		}
		h.Counts = make([]uint64, len(h.Bounds)+1)
	}
	below := uint64(0)
	for i := range h.Bounds {
		count := o.GetBucket()[i].GetCumulativeCount()
		h.Counts[i] += count - below
		below = count
	}
	h.Counts[len(h.Bounds)] += o.GetSampleCount() - below
	h.Total += o.GetSampleCount()
	h.Sum += o.GetSampleSum()
}

// labelsOf are the labels of a series by name.
func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// added tells what Rouse added, of one workload with workload=NAME.
func (s *server) added(w http.ResponseWriter, r *http.Request) error {
	families, err := s.cfg.Gatherer.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	name := r.URL.Query().Get("workload")
	if name != "" {
		if _, err := s.backend.Workload(r.Context(), name); err != nil {
			return s.about(r.Context(), name, err)
		}
	}
	var sum Added
	for _, f := range families {
		if f.GetName() != addedMetric {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := labelsOf(m)
			switch {
			case name != "" && name != labels["workload"]:
			case labels["path"] == "warm":
				sum.Warm.add(m.GetHistogram())
			case labels["path"] == "cold":
				sum.Cold.add(m.GetHistogram())
			}
		}
	}
	for _, h := range []*Histogram{&sum.Warm, &sum.Cold} {
		if h.Counts == nil {
			h.Bounds, h.Counts = []float64{}, []uint64{}
		}
	}
	return reply(w, http.StatusOK, sum)
}
