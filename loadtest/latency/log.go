package latency

import (
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Log writes histograms of short intervals one after the other, each with
// a tag: the .hlog format.
type Log struct {
	writer *hdrhistogram.HistogramLogWriter
}

// NewLog begins a log at a moment; comment is what a reader should know.
func NewLog(w io.Writer, start time.Time, comment string) (*Log, error) {
	l := &Log{hdrhistogram.NewHistogramLogWriter(w)}
	for _, write := range []func() error{
		l.writer.OutputLogFormatVersion,
		func() error { return l.writer.OutputComment("[" + comment + "]") },
		func() error { return l.writer.OutputStartTime(start.UnixMilli()) },
		l.writer.OutputLegend,
	} {
		if err := write(); err != nil {
			return nil, fmt.Errorf("begin histogram log: %w", err)
		}
	}
	return l, nil
}

// Write adds what was recorded from start to end. A tag has no comma and no
// white space.
func (l *Log) Write(tag string, start, end time.Time, h *Histogram) error {
	h.hdr.SetTag(tag)
	h.hdr.SetStartTimeMs(start.UnixMilli())
	h.hdr.SetEndTimeMs(end.UnixMilli())
	if err := l.writer.OutputIntervalHistogram(h.hdr); err != nil {
		return fmt.Errorf("write histogram log: %w", err)
	}
	return nil
}

// An Interval is one histogram of a log.
type Interval struct {
	Tag        string
	Start, End time.Time // to the millisecond
	*Histogram
}

// ReadLog gives the intervals of a log in their order. After an error there
// is nothing more. A log does not tell Overflow.
func ReadLog(r io.Reader) iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		reader := hdrhistogram.NewHistogramLogReader(r)
		for {
			hdr, err := reader.NextIntervalHistogram()
			if err != nil {
				yield(Interval{}, fmt.Errorf("read histogram log: %w", err))
				return
			}
			if hdr == nil {
				return
			}
			if !yield(Interval{hdr.Tag(), time.UnixMilli(hdr.StartTimeMs()), time.UnixMilli(hdr.EndTimeMs()), &Histogram{hdr: hdr}}, nil) {
				return
			}
		}
	}
}

// MergeLog reads a log, and merges all intervals of each tag.
func MergeLog(r io.Reader) (map[string]*Histogram, error) {
	merged := map[string]*Histogram{}
	for interval, err := range ReadLog(r) {
		if err != nil {
			return nil, err
		}
		h := merged[interval.Tag]
		if h == nil {
			h = New()
			merged[interval.Tag] = h
		}
		if dropped := h.hdr.Merge(interval.hdr); dropped > 0 {
			return nil, fmt.Errorf("read histogram log: %d values of %q are out of range", dropped, interval.Tag)
		}
	}
	return merged, nil
}
