//go:build linux

package openloop

import (
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// mostErrors bounds the different texts that are kept.
const mostErrors = 16

// A tally is a Counts in the making.
type tally struct {
	started  int64
	outcomes [outcomes]int64
	statuses [1000]int64
}

// A book keeps the accounts of a run. It is not safe for concurrent use, but
// for stopped, since and now.
type book struct {
	cfg     Config
	stop    *atomic.Bool
	began   time.Time
	result  Result
	tallies [2]tally // warm-up, measured

	next     schedule.Next // reads the schedule as time goes by
	head     schedule.Arrival
	more     bool
	arrived  [2]int64 // warm-up, measured
	started  int64
	inFlight int64

	measuring bool
	warmedUp  sync.WaitGroup
	cpu       time.Duration // of the process when the warm-up ended

	current *Interval
	tickAt  time.Duration
	intervals
}

// intervals hand what came to whoever wants to know, without ever waiting:
// two are passed round.
type intervals struct {
	full  chan *Interval
	spare chan *Interval
	told  chan struct{} // closed when nobody is told any more
}

func newBook(cfg Config, stop *atomic.Bool) *book {
	b := &book{
		cfg: cfg, stop: stop, current: newInterval(), tickAt: time.Second,
		intervals: intervals{make(chan *Interval, 1), make(chan *Interval, 1), make(chan struct{})},
	}
	b.result.Times = newTimes()
	b.result.Errors = map[string]int64{}
	b.spare <- newInterval()
	go b.tell(cfg.Every)
	return b
}

func (b *book) tell(every func(Interval)) {
	defer close(b.told)
	for interval := range b.full {
		if every != nil {
			every(*interval)
		}
		interval.reset()
		b.spare <- interval
	}
}

// open is the moment that all times of the run are counted from.
func (b *book) open() {
	b.result.DialsBefore, b.result.DialsMeasured = b.result.DialsMeasured, 0
	b.next = b.cfg.Schedule.Arrivals()
	b.head, b.more = b.next()
	b.began = time.Now()
	b.result.Began = b.began
	b.look(0)
}

func (b *book) now() time.Duration { return time.Since(b.began) }

// phase is 0 for what is due in the warm-up, else 1.
func (b *book) phase(due time.Duration) int {
	if due < b.cfg.Warmup {
		return 0
	}
	return 1
}

// look at the clock: what is due by now is due, and the warm-up may be over.
func (b *book) look(now time.Duration) {
	for b.more && b.head.At <= now {
		b.arrived[b.phase(b.head.At)]++
		b.head, b.more = b.next()
	}
	b.result.PeakBacklog = max(b.result.PeakBacklog, b.backlog())
	if !b.measuring && now >= b.cfg.Warmup {
		b.measure()
	}
}

func (b *book) measure() {
	b.measuring = true
	b.cpu = processCPU()
	b.result.DialsWarmUp, b.result.DialsMeasured = b.result.DialsMeasured, 0
	if b.cfg.WarmedUp != nil {
		b.warmedUp.Go(b.cfg.WarmedUp)
	}
}

// backlog is what is due and not yet started.
func (b *book) backlog() int64 { return b.arrived[0] + b.arrived[1] - b.started }

// A send is a request on its way.
type send struct {
	due, sent, own time.Duration
}

func (b *book) start(s send) {
	phase := b.phase(s.due)
	b.tallies[phase].started++
	b.started++
	b.inFlight++
	b.current.Started++
	b.result.PeakInFlight = max(b.result.PeakInFlight, b.inFlight)
	if phase == 1 {
		b.result.Times.SendLag.Record(s.sent - s.due)
		b.result.Times.OwnLag.Record(s.own)
	}
}

// An end is what became of a send.
type end struct {
	outcome Outcome
	at      time.Duration
	status  int
	added   time.Duration // below 0: not said
	reason  string        // of a failure, if there are words for it
}

func (b *book) finish(s send, e end) {
	phase := b.phase(s.due)
	t := &b.tallies[phase]
	t.outcomes[e.outcome]++
	b.inFlight--
	if e.outcome.Answered() {
		t.statuses[e.status]++
	}
	if e.outcome != OK {
		b.current.Failed++
		b.fault(e.reason)
		return
	}
	b.current.OK++
	if phase == 0 {
		return
	}
	b.result.Times.Intended.Record(e.at - s.due)
	b.result.Times.Service.Record(e.at - s.sent)
	b.current.Intended.Record(e.at - s.due)
	b.current.Service.Record(e.at - s.sent)
	if e.added >= 0 {
		b.result.Times.Added.Record(e.added)
	}
}

// fault keeps the words of a failure.
func (b *book) fault(reason string) {
	if reason == "" {
		return
	}
	if _, known := b.result.Errors[reason]; !known && len(b.result.Errors) >= mostErrors {
		reason = "others"
	}
	b.result.Errors[reason]++
}

// tick hands over a second's interval when it is time, and somebody is ready
// to take it; else the interval gets longer.
func (b *book) tick(now time.Duration) {
	if now < b.tickAt {
		return
	}
	select {
	case fresh := <-b.spare:
		b.handOver(now)
		fresh.Start = now
		b.current = fresh
		b.tickAt = now.Truncate(time.Second) + time.Second
	default:
	}
}

func (b *book) handOver(now time.Duration) {
	b.current.Began, b.current.End = b.began, now
	b.current.WarmUp = b.current.Start < b.cfg.Warmup
	b.current.Backlog, b.current.InFlight = b.backlog(), b.inFlight
	b.full <- b.current
}

// limit is when the run is ended whatever is left.
func (b *book) limit() time.Duration { return b.cfg.Schedule.Length() + b.cfg.Drain }

// ended tells whether the run is to end before its requests have.
func (b *book) ended(now time.Duration) bool {
	if b.stop.Load() {
		b.result.Aborted = true
		return true
	}
	return now > b.limit()
}

// close is called when nothing is in flight any more.
func (b *book) close() *Result {
	now := b.now()
	b.look(now)
	if !b.measuring { // ended before
		b.measure()
	}
	b.warmedUp.Wait()
	<-b.spare
	b.current.Last = true
	b.handOver(now)
	close(b.full)
	<-b.told

	r := &b.result
	r.Elapsed = max(0, now-b.cfg.Warmup)
	r.Window = max(0, b.cfg.Schedule.Length()-b.cfg.Warmup)
	if r.Aborted {
		r.Window = min(r.Window, r.Elapsed)
	}
	r.CPU = processCPU() - b.cpu
	r.WarmUp, r.Measured = b.tallies[0].counts(b.arrived[0]), b.tallies[1].counts(b.arrived[1])
	return r
}

func (t *tally) counts(scheduled int64) Counts {
	c := Counts{
		Scheduled: scheduled, Started: t.started, Unsent: scheduled - t.started,
		Outcomes: map[string]int64{}, Statuses: map[int]int64{},
	}
	for o, n := range t.outcomes {
		outcome := Outcome(o)
		if n > 0 {
			c.Outcomes[outcome.String()] = n
		}
		if outcome != Unfinished {
			c.Finished += n
		}
		if outcome.Answered() {
			c.Answered += n
		}
		if outcome.Sent() {
			c.Sent += n
		}
	}
	for status, n := range t.statuses {
		if n > 0 {
			c.Statuses[status] = n
		}
	}
	return c
}

func processCPU() time.Duration {
	var usage unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &usage) // fails only for a bad argument
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
