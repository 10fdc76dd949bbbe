package coldstart

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// Wake is what the admin API tells about one cold start.
type Wake struct {
	ID string `json:"id"`

	RequestedAt time.Time `json:"requested_at"`
	PublishedAt time.Time `json:"published_at"`
	ReceivedAt  time.Time `json:"received_at"`
	StartAt     time.Time `json:"start_at"`
	StartedAt   time.Time `json:"started_at"`
	ReadyAt     time.Time `json:"ready_at"`
	OpenedAt    time.Time `json:"opened_at"`
	ReleasedAt  time.Time `json:"released_at"`
}

// complete reports that every time a trial needs is known.
func (w *Wake) complete() bool {
	return !w.StartAt.IsZero() && !w.StartedAt.IsZero() && !w.ReadyAt.IsZero()
}

// A Span is a named part of a cold start, in milliseconds.
type Span struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// A Trial is one cold start. Times are in milliseconds.
type Trial struct {
	N     int    `json:"n"`
	Error string `json:"error,omitempty"`
	Wake  string `json:"wake,omitempty"`
	// Total is from the request sent to the first byte of its answer.
	Total float64 `json:"total_ms"`
	// App is from the start call to the app's own listen(): Total without
	// what Rouse adds.
	App float64 `json:"app_ms"`
	// Added is what Rouse adds: Total less App.
	Added float64 `json:"added_ms"`
	// AfterListen is from listen() to the first byte; where the start call
	// returned only after listen(), from its return.
	AfterListen float64 `json:"after_listen_ms"`
	// Phases come from the wake's record, in order; Timing from the
	// answer's Server-Timing header.
	Phases []Span `json:"phases,omitempty"`
	Timing []Span `json:"server_timing,omitempty"`
	// Bare is the start without Rouse; nil where none was asked for.
	Bare *Bare `json:"bare,omitempty"`
}

// String is the trial in one line.
func (t Trial) String() string {
	if t.Error != "" {
		return fmt.Sprintf("trial %d: failed: %s", t.N, t.Error)
	}
	line := fmt.Sprintf("trial %d: total %.1f ms, app %.1f, added %.2f, after listen %.2f", t.N, t.Total, t.App, t.Added, t.AfterListen)
	if t.Bare != nil {
		line += fmt.Sprintf("; bare total %.1f, app %.1f", t.Bare.Total, t.Bare.App)
	}
	return line
}

// An observation is what one request through Rouse showed.
type observation struct {
	sent      time.Time
	firstByte time.Time
	report    mimic.Report
	timing    string // Server-Timing
	wake      Wake
}

// into does the arithmetic.
func (o *observation) into(t *Trial) {
	listening := time.Unix(0, o.report.ListeningAt)
	app := listening.Sub(o.wake.StartAt)
	// By the wall clock, as are the moments that others tell of: where it is
	// set meanwhile, the parts still are the whole.
	total := o.firstByte.Round(0).Sub(o.sent.Round(0))
	usable := listening
	if o.wake.StartedAt.After(usable) {
		usable = o.wake.StartedAt
	}
	t.Wake = o.wake.ID
	t.Total = ms(total)
	t.App = ms(app)
	t.Added = ms(total - app)
	t.AfterListen = ms(o.firstByte.Sub(usable))
	t.Phases = o.phases()
	t.Timing = parseTiming(o.timing)
}

// phases cut the request's time at the moments the record knows; together
// they are the whole of it.
func (o *observation) phases() []Span {
	cuts := []struct {
		name string
		end  time.Time
	}{
		{"arrive", o.wake.RequestedAt}, // sent to held
		{"wake", o.wake.ReceivedAt},    // to received by a scaler
		{"queue", o.wake.StartAt},      // to the start call
		{"start", o.wake.StartedAt},    // to its return
		{"probe", o.wake.ReadyAt},      // to readiness proved
		{"ready", o.wake.OpenedAt},     // to the gate open
		{"answer", o.firstByte},        // to the first byte
	}
	spans := make([]Span, 0, len(cuts))
	from := o.sent.Round(0)
	for _, cut := range cuts {
		if cut.end.IsZero() { // not told: part of the next
			continue
		}
		spans = append(spans, Span{cut.name, ms(cut.end.Sub(from))})
		from = cut.end
	}
	return spans
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// parseTiming reads the durations of a Server-Timing header; entries
// without one, or with one that is no number, are left out.
func parseTiming(header string) []Span {
	var spans []Span
	for entry := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(entry, ";")
		for param := range strings.SplitSeq(params, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			duration, err := strconv.ParseFloat(strings.Trim(value, `"`), 64)
			if err == nil && strings.EqualFold(key, "dur") {
				spans = append(spans, Span{strings.TrimSpace(name), duration})
			}
		}
	}
	return spans
}
