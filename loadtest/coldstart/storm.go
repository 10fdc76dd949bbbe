package coldstart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"
)

// StormConfig says how many sleeping workloads are to be woken at once.
type StormConfig struct {
	// Config is that of one workload, but for Workload, Host, Bare and Trials:
	// those are of each round.
	Config
	// Targets are the workloads, each with its own Host.
	Targets []StormTarget
	// Rounds of a storm, each with one of bare starts if there is Bare.
	Rounds int
	// Bare are equal workloads, started without Rouse, no more than Parallel at
	// a time, as Rouse does; 0 is 4.
	Bare     []Starter
	Parallel int
}

// A StormTarget is a workload of a storm.
type StormTarget struct{ Workload, Host string }

// A StormRound is one storm and, beside it, one without Rouse. Times are in
// milliseconds from the first request, or start, to the answers.
type StormRound struct {
	Round int     `json:"round"`
	First float64 `json:"first_ms"`
	Last  float64 `json:"last_ms"`
	// BareFirst and BareLast are of the starts without Rouse.
	BareFirst float64 `json:"bare_first_ms,omitempty"`
	BareLast  float64 `json:"bare_last_ms,omitempty"`
	// Trials are the workloads' own, of Rouse.
	Trials []Trial `json:"trials"`
}

// Storm is what the rounds come to. Its JSON is the file summary.json.
type Storm struct {
	At        time.Time `json:"at"`
	Version   string    `json:"version"`
	Command   []string  `json:"command"`
	Machine   Machine   `json:"machine"`
	Workloads int       `json:"workloads"`
	Parallel  int       `json:"bare_starts_in_parallel"`
	Failed    int       `json:"failed"`

	First Stat `json:"first_ms"`
	Last  Stat `json:"last_ms"`
	// Each is the time of every single answer, Waited how much of it the
	// workload waited for its turn to be started.
	Each   Stat `json:"each_ms"`
	Waited Stat `json:"waited_ms"`
	// Own is what Rouse added to each, but for the waiting.
	Own Stat `json:"own_ms"`
	// BareLast is of the rounds without Rouse, and Difference, round by
	// round, the last answer of the one less that of the other.
	BareFirst  Stat `json:"bare_first_ms"`
	BareLast   Stat `json:"bare_last_ms"`
	Difference Stat `json:"difference_ms"`

	Rounds []StormRound `json:"rounds"`
}

// RunStorm makes the rounds: all workloads asleep, then a request to each at
// once, over connections that are open; and in turn the same number of bare
// starts. An answer that fails is counted.
func RunStorm(ctx context.Context, cfg StormConfig) (*Storm, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Parallel == 0 {
		cfg.Parallel = 4
	}
	if cfg.Progress == nil {
		cfg.Progress = io.Discard
	}
	if len(cfg.Targets) == 0 || cfg.Rounds < 1 {
		return nil, errors.New("storm: want workloads and rounds")
	}
	all := make([]*rouse, len(cfg.Targets))
	for i, target := range cfg.Targets {
		one := cfg.Config
		one.Workload, one.Host = target.Workload, target.Host
		all[i] = newRouse(one)
	}
	storm := &Storm{At: time.Now(), Workloads: len(all), Parallel: cfg.Parallel}
	for n := range cfg.Rounds {
		round, err := cfg.round(ctx, all, n)
		if err != nil {
			return nil, fmt.Errorf("storm: round %d: %w", n+1, err)
		}
		storm.Rounds = append(storm.Rounds, round)
		_, _ = fmt.Fprintf(cfg.Progress, "round %d: first answer after %.0f ms, last after %.0f; bare %.0f and %.0f\n",
			round.Round, round.First, round.Last, round.BareFirst, round.BareLast)
	}
	storm.conclude()
	return storm, nil
}

func (c StormConfig) round(ctx context.Context, all []*rouse, n int) (StormRound, error) {
	round := StormRound{Round: n + 1}
	steps := []func(context.Context, []*rouse, *StormRound) error{c.wake, c.bare}
	if n%2 == 1 {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if err := c.sleep(ctx, all); err != nil {
			return round, err
		}
		if err := step(ctx, all, &round); err != nil {
			return round, err
		}
	}
	return round, nil
}

func (c StormConfig) sleep(ctx context.Context, all []*rouse) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err := atOnce(len(all), len(all), func(i int) error { return all[i].sleep(ctx) })
	pause(ctx, c.Settle)
	return err
}

// wake sends all requests at once.
func (c StormConfig) wake(ctx context.Context, all []*rouse, round *StormRound) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	round.Trials = make([]Trial, len(all))
	seen := make([]*observation, len(all))
	_ = atOnce(len(all), len(all), func(i int) error { // each failure is a trial's own
		err := all[i].observe(ctx, &seen[i])
		if err != nil {
			round.Trials[i].Error = err.Error()
		}
		return nil
	})
	var begin time.Time
	for i, o := range seen {
		t := &round.Trials[i]
		t.N = i + 1
		if t.Error == "" {
			o.into(t)
			if begin.IsZero() || o.sent.Before(begin) {
				begin = o.sent
			}
		}
	}
	for i, o := range seen {
		if round.Trials[i].Error == "" {
			round.First, round.Last = span(round.First, round.Last, ms(o.firstByte.Sub(begin)))
		}
	}
	return ctx.Err()
}

// observe is one request to the sleeping workload, with the record of its wake.
func (r *rouse) observe(ctx context.Context, to **observation) error {
	seen, err := r.request(ctx)
	if err != nil {
		return err
	}
	*to = seen
	seen.wake, err = r.wake(ctx, seen.sent)
	return err
}

// bare starts the others.
func (c StormConfig) bare(ctx context.Context, _ []*rouse, round *StormRound) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	times := make([]BareTimes, len(c.Bare))
	begin := time.Now()
	err := atOnce(len(c.Bare), c.Parallel, func(i int) (err error) {
		times[i], err = c.Bare[i].Start(ctx)
		return err
	})
	stopped := atOnce(len(c.Bare), len(c.Bare), func(i int) error { return c.Bare[i].Stop(ctx) })
	if err := errors.Join(err, stopped); err != nil {
		return fmt.Errorf("bare starts: %w", err)
	}
	for _, t := range times {
		round.BareFirst, round.BareLast = span(round.BareFirst, round.BareLast, ms(t.Answered.Sub(begin)))
	}
	return nil
}

func span(first, last, at float64) (float64, float64) {
	if first == 0 || at < first {
		first = at
	}
	return first, max(last, at)
}

// atOnce does something n times, no more than so many at a time.
func atOnce(n, parallel int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, max(1, parallel))
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (s *Storm) conclude() {
	var first, last, bareFirst, bareLast, difference, each, waited, own []float64
	for _, round := range s.Rounds {
		first, last = append(first, round.First), append(last, round.Last)
		if round.BareLast > 0 {
			bareFirst, bareLast = append(bareFirst, round.BareFirst), append(bareLast, round.BareLast)
			difference = append(difference, round.Last-round.BareLast)
		}
		for _, t := range round.Trials {
			if t.Error != "" {
				s.Failed++
				continue
			}
			turn := t.phase("queue")
			each, waited, own = append(each, t.Total), append(waited, turn), append(own, t.Added-turn)
		}
	}
	s.First, s.Last, s.Each, s.Waited, s.Own = statOf(first), statOf(last), statOf(each), statOf(waited), statOf(own)
	s.BareFirst, s.BareLast, s.Difference = statOf(bareFirst), statOf(bareLast), statOf(difference)
}

func (t Trial) phase(name string) float64 {
	for _, p := range t.Phases {
		if p.Name == name {
			return p.MS
		}
	}
	return 0
}

// lines are the figures with their names.
func (s *Storm) lines() []SpanStat {
	lines := []SpanStat{
		{"first answer of a storm", s.First}, {"last answer of a storm", s.Last}, {"each answer", s.Each},
		{"of it, waiting for a turn to be started", s.Waited}, {"added by Rouse besides", s.Own},
	}
	if s.BareLast.N > 0 {
		lines = append(lines, SpanStat{"bare: first answer", s.BareFirst}, SpanStat{"bare: last answer", s.BareLast},
			SpanStat{"last less bare last, by round", s.Difference})
	}
	return lines
}

// Text writes the summary for a person.
func (s *Storm) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "%d workloads at once, %d rounds, %d failed; bare starts %d at a time\n\nms\tmin\tmedian\tp95\tmax\t\n",
		s.Workloads, len(s.Rounds), s.Failed, s.Parallel)
	for _, line := range s.lines() {
		_, _ = fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", line.Name, line.Min, line.Median, line.P95, line.Max)
	}
	return table.Flush()
}

// WriteTable writes the summary in Markdown.
func (s *Storm) WriteTable(w io.Writer) error {
	return writeTable(w, fmt.Sprintf("ms, %d at once, %d rounds, %d failed", s.Workloads, len(s.Rounds), s.Failed), s.lines())
}

func writeTable(w io.Writer, head string, lines []SpanStat) error {
	_, err := fmt.Fprintf(w, "| %s | min | median | p95 | max |\n|---|---|---|---|---|\n", head)
	for _, line := range lines {
		_, rowErr := fmt.Fprintf(w, "| %s | %.2f | %.2f | %.2f | %.2f |\n", line.Name, line.Min, line.Median, line.P95, line.Max)
		err = errors.Join(err, rowErr)
	}
	return err
}

// Save writes summary.json, and table.md for a document, into the directory,
// which it makes if need be.
func (s *Storm) Save(dir string) error {
	encoded, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("save storm: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("save storm: %w", err)
	}
	file, err := os.Create(filepath.Join(dir, "table.md"))
	if err != nil {
		return fmt.Errorf("save storm: %w", err)
	}
	err = errors.Join(s.WriteTable(file), file.Close(), os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644))
	if err != nil {
		return fmt.Errorf("save storm: %w", err)
	}
	return nil
}
