//go:build linux

package openloop

import (
	"time"

	"github.com/rouse-dev/rouse/loadtest/latency"
)

// Times are the latencies of a run, of requests that were due after the
// warm-up. Intended = SendLag + Service, request by request.
//
// Intended, Service and Added are of right answers only: what failed has no
// latency, and is in the counts. The lags are of all that was sent.
type Times struct {
	// Intended is from the moment at which a request was due to the last byte
	// of its answer: what a user would have seen.
	Intended *latency.Histogram
	// Service is from its send, or from the connect that its send needed.
	Service *latency.Histogram
	// SendLag is from due to sent, whatever the reason.
	SendLag *latency.Histogram
	// OwnLag is the part of SendLag for which a connection was free: the
	// error of the generator itself.
	OwnLag *latency.Histogram
	// Added is what answers say that they were delayed on their way, in
	// the metric "added" of Server-Timing. It is empty where none says so.
	Added *latency.Histogram
}

func newTimes() Times {
	return Times{latency.New(), latency.New(), latency.New(), latency.New(), latency.New()}
}

// Counts are the requests of a stretch of time, by when they were due.
type Counts struct {
	// Scheduled were due before the run ended: Started + Unsent.
	Scheduled int64 `json:"scheduled"`
	// Started were given a connection; each ended as one Outcome.
	Started int64 `json:"started"`
	// Unsent still waited for a connection when the run was ended.
	Unsent int64 `json:"unsent"`
	// Finished had an end of their own: Started but the Unfinished.
	Finished int64 `json:"finished"`
	// Answered had a complete answer, right or wrong.
	Answered int64 `json:"answered"`
	// Sent reached a connection: all but Refused and Unreachable.
	Sent int64 `json:"sent"`
	// Outcomes by name, of those that came about.
	Outcomes map[string]int64 `json:"outcomes"`
	// Statuses of complete answers.
	Statuses map[int]int64 `json:"statuses"`
}

// Failed is what was started or was to be, and did not end well.
func (c Counts) Failed() int64 { return c.Scheduled - c.Outcomes[OK.String()] }

// Conserved tells whether each request that was due was sent and ended.
func (c Counts) Conserved() bool { return c.Scheduled == c.Started && c.Started == c.Finished }

// Result is what a run came to.
type Result struct {
	Began time.Time `json:"began"`
	// Aborted tells that ctx ended it before its schedule did.
	Aborted bool `json:"aborted"`
	// WarmUp are the requests that were due before Config.Warmup, Measured
	// the others.
	WarmUp   Counts `json:"warm_up"`
	Measured Counts `json:"measured"`
	// Errors are the first reasons of failures, in words, with their counts.
	Errors map[string]int64 `json:"errors,omitempty"`

	// Elapsed is from the end of the warm-up to the end of the run; Window
	// the part of it in which requests were due.
	Elapsed time.Duration `json:"-"`
	Window  time.Duration `json:"-"`
	// CPU is what the process used in Elapsed.
	CPU time.Duration `json:"-"`

	// Dials before the first arrival, until the warm-up's end, and after it.
	DialsBefore   int64 `json:"dials_before"`
	DialsWarmUp   int64 `json:"dials_warm_up"`
	DialsMeasured int64 `json:"dials_measured"`
	// Unsolicited counts connections on which something came that nobody had
	// asked for.
	Unsolicited int64 `json:"unsolicited"`
	// PeakBacklog is the most that waited for a connection at once, PeakInFlight
	// the most that were in flight.
	PeakBacklog  int64 `json:"peak_backlog"`
	PeakInFlight int64 `json:"peak_in_flight"`

	Times Times `json:"-"`
}

// Rate is how many right answers came per second of the window: the rate
// that was asked for, where all is well.
func (r *Result) Rate() float64 {
	if r.Window <= 0 {
		return 0
	}
	return float64(r.Measured.Outcomes[OK.String()]) / r.Window.Seconds()
}

// CoreShare is the share of one core that the process used: above 0.85 its
// figures are not to be believed.
func (r *Result) CoreShare() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return r.CPU.Seconds() / r.Elapsed.Seconds()
}

// Interval is what came in about a second of a run, warm-up included, counted
// when it came.
type Interval struct {
	// Began is the start of the run, Start and End are counted from it.
	Began      time.Time
	Start, End time.Duration
	WarmUp     bool
	Last       bool
	// OK and Failed are ends; Started are sends.
	Started, OK, Failed int64
	// Backlog and InFlight at its end.
	Backlog, InFlight int64
	// Intended and Service of right answers that were due after the warm-up.
	Intended, Service *latency.Histogram
}

func newInterval() *Interval {
	return &Interval{Intended: latency.New(), Service: latency.New()}
}

func (i *Interval) reset() {
	i.Intended.Reset()
	i.Service.Reset()
	*i = Interval{Intended: i.Intended, Service: i.Service}
}
