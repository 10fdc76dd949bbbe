// Package latency records how long things took, in HDR histograms: three
// significant digits from 100 ns to an hour, in constant memory.
//
// It owns what is written of them: the summary in JSON, the .hgrm table that
// HdrHistogram's plotter reads, and the .hlog of one histogram a second that
// can be merged again. It knows nothing of where the times come from.
package latency

import (
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Bounds of what is told apart. Longer times count as the longest, and are
// told by Overflow.
const (
	shortest = 100 * time.Nanosecond
	longest  = time.Hour
	digits   = 3
)

// A Histogram is not safe for concurrent use.
type Histogram struct {
	hdr *hdrhistogram.Histogram
	// Overflow counts the times that were longer than an hour.
	Overflow int64
}

// New is an empty one.
func New() *Histogram {
	return &Histogram{hdr: hdrhistogram.New(int64(shortest), int64(longest), digits)}
}

// Record adds a time; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) {
	if d > longest {
		h.Overflow++
	}
	_ = h.hdr.RecordValue(int64(min(max(d, 0), longest))) // it is in range
}

// Merge adds what another has recorded.
func (h *Histogram) Merge(other *Histogram) {
	h.hdr.Merge(other.hdr) // of the same range: none is dropped
	h.Overflow += other.Overflow
}

// Reset empties it.
func (h *Histogram) Reset() {
	h.hdr.Reset()
	h.Overflow = 0
}

// Count is how many times were recorded.
func (h *Histogram) Count() int64 { return h.hdr.TotalCount() }

// Quantile is the time that the share q of all, 0 to 1, do not exceed; 0 of
// an empty one.
func (h *Histogram) Quantile(q float64) time.Duration {
	return time.Duration(h.hdr.ValueAtQuantile(100 * q))
}

// WriteTable writes the .hgrm table, in milliseconds.
func (h *Histogram) WriteTable(w io.Writer) error {
	if _, err := h.hdr.PercentilesPrint(w, 5, float64(time.Millisecond)); err != nil {
		return fmt.Errorf("write histogram: %w", err)
	}
	return nil
}

// A Summary is what a histogram comes to, in milliseconds.
type Summary struct {
	Count int64   `json:"count"`
	Min   float64 `json:"min"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	Max   float64 `json:"max"`
	// Overflow counts the times over an hour, which count as an hour.
	Overflow int64 `json:"overflow,omitempty"`
}

// Summary of what was recorded so far.
func (h *Histogram) Summary() Summary {
	if h.Count() == 0 {
		return Summary{}
	}
	at := func(q float64) float64 { return Milliseconds(h.Quantile(q)) }
	return Summary{
		Count: h.Count(), Min: Milliseconds(time.Duration(h.hdr.Min())), Mean: h.hdr.Mean() / float64(time.Millisecond),
		P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Max: at(1),
		Overflow: h.Overflow,
	}
}

// Milliseconds is d with its fraction.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
