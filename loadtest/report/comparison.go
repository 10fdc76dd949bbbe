//go:build linux

package report

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// A comparison is the result of `loadtest compare`.
type comparison struct {
	dir     string
	summary *trial.Summary
	pairs   []pair
}

// A pair is what both runs of a trial have left.
type pair struct {
	*trial.Trial
	direct, routed *lane
}

func openComparison(dir string) (source, error) {
	s, err := trial.Read(dir)
	if err != nil {
		return nil, err
	}
	c := &comparison{dir: dir, summary: s}
	for _, t := range s.Trials {
		one := pair{Trial: t}
		if one.direct, err = openLane(trial.LaneDir(dir, t.Number, trial.Direct)); err != nil {
			return nil, err
		}
		if one.routed, err = openLane(trial.LaneDir(dir, t.Number, trial.Routed)); err != nil {
			return nil, err
		}
		c.pairs = append(c.pairs, one)
	}
	return c, nil
}

func (c *comparison) check() (all Check) {
	again, err := c.summary.Recomputed(c.dir)
	if err != nil {
		all.unreadable("summary.json", err)
		return all
	}
	all.same("summary.json", c.summary, again)
	for _, p := range c.pairs {
		for name, l := range map[string]*lane{trial.Direct: p.direct, trial.Routed: p.routed} {
			all.add(l.check(), fmt.Sprintf("trials/%02d-%s", p.Number, name))
		}
	}
	for name, lanes := range map[string][]*lane{trial.Direct: c.lanes(trial.Direct), trial.Routed: c.lanes(trial.Routed)} {
		all.merged(filepath.Join(c.dir, name+".hgrm"), lanes)
	}
	all.rows(filepath.Join(c.dir, "trials.csv"), again.Rows())
	return all
}

// lanes are those of the accepted trials.
func (c *comparison) lanes(name string) []*lane {
	var lanes []*lane
	for _, p := range c.pairs {
		switch {
		case !p.Accepted():
		case name == trial.Direct:
			lanes = append(lanes, p.direct)
		default:
			lanes = append(lanes, p.routed)
		}
	}
	return lanes
}

// merged compares a table with the histograms that it was made of.
func (c *Check) merged(path string, lanes []*lane) {
	all := latency.New()
	for _, l := range lanes {
		if h := l.merged[openloop.TagIntended]; h != nil {
			all.Merge(h)
		}
	}
	if all.Count() == 0 {
		return // there is no such file
	}
	table, err := readTable(path)
	if err != nil {
		c.unreadable(filepath.Base(path), err)
		return
	}
	c.table(filepath.Base(path), table, all.Summary())
}

// rows compares a CSV file with what its rows are to be; columns that are
// not known are of a later version.
func (c *Check) rows(path string, want [][]string) {
	file, err := os.Open(path)
	if err != nil {
		c.unreadable(filepath.Base(path), err)
		return
	}
	defer file.Close()
	said, err := csv.NewReader(file).ReadAll()
	if err != nil || len(said) != len(want) || len(said[0]) < len(want[0]) {
		c.unreadable(filepath.Base(path), fmt.Errorf("%d rows, not %d as in the summary: %w", len(said), len(want), err))
		return
	}
	for i := range want {
		for j := range want[i] {
			c.compare(filepath.Base(path), fmt.Sprintf("%s of row %d", want[0][j], i+1), cell(said[i][j]), cell(want[i][j]))
		}
	}
}

func cell(text string) any {
	if number, err := strconv.ParseFloat(text, 64); err == nil {
		return number
	}
	return text
}

func (c *comparison) part() part {
	s := c.summary
	p := part{
		Title: "Direct and routed", Verdict: c.verdict(), Cards: c.cards(), Manifest: c.manifest(),
		Subtitle: fmt.Sprintf("%g requests per second for %g s each time: %s directly, and %s through the proxy, in turn. Begun %s.", s.Config.Rate, s.Config.Duration, s.Config.Direct.URL, s.Config.Routed.URL, stamp(s.Began)),
	}
	if s.Accepted > 0 {
		p.Sections = append(p.Sections, section{
			Title: "Latency by quantile",
			Note: fmt.Sprintf("From the moment at which a request was due. Each line is the median over %s; the band holds that median with a probability of %.1f %%.",
				count(s.Accepted, "accepted trial"), 100*c.coverage()),
			Figures: []figure{percentiles("Intended latency", c.curves(openloop.TagIntended))},
		}, section{
			Title:   "What the proxy adds",
			Note:    "The median over the trials of the difference between the two runs of a trial, with its interval. It is no quantile of differences of single requests, which do not exist where requests do not wait for each other.",
			Figures: []figure{c.added()},
		})
	}
	p.Sections = append(p.Sections, section{
		Title:   "Every trial",
		Note:    "A trial is rejected for errors and for what the machine did, never for its routed latency.",
		Figures: []figure{c.dots(), c.tableOfTrials()},
	}, section{Title: "Over time", Figures: []figure{c.seconds()}})
	if s.Accepted > 0 {
		p.Sections = append(p.Sections, section{
			Title:   "Where the time goes",
			Note:    "Service counts from the send, send lag up to it; own lag is the part of that for which a connection was free, the error of the generator itself. Medians over the accepted trials.",
			Figures: []figure{percentiles("Service", c.curves(openloop.TagService)), percentiles("Send lag and own lag", c.lags())},
		})
	}
	return p
}

func (c *comparison) coverage() float64 { return c.summary.Quantiles[0].Added.Coverage }

func (c *comparison) verdict() (v Verdict) {
	s := c.summary
	v.against(s.Accepted < s.Config.Trials, "accepted: %s of %d wanted; %d were made", count(s.Accepted, "trial"), s.Config.Trials, s.Made)
	v.reserve(s.Accepted > 0 && s.Accepted < 6, "of fewer than 6 trials, an interval holds the median with %.1f %% at most", 100*trial.EstimateOf(make([]float64, s.Accepted)).Coverage)
	v.reserve(!s.Places.Known, "the processes compared are not known: work of others on this machine was not looked for")
	v.reserve(slices.ContainsFunc(s.Trials, func(t *trial.Trial) bool { return t.Direct.Served < 0 || t.Routed.Served < 0 }), "the server was not asked how many requests it has served")
	for _, failed := range s.Places.Failed {
		v.reserve(true, "%s", failed)
	}
	v.revision(s.Manifest.Revision)
	if v.Valid() {
		v.speakFor("%d of %d trials were accepted, and every one of their %s requests was answered as it should be.", s.Accepted, s.Made, whole(c.answered()))
	}
	return v
}

// answered are the right answers of accepted trials.
func (c *comparison) answered() (n int64) {
	for _, p := range c.pairs {
		if p.Accepted() {
			n += p.Direct.Report.Measured.Outcomes[openloop.OK.String()] + p.Routed.Report.Measured.Outcomes[openloop.OK.String()]
		}
	}
	return n
}

func (c *comparison) cards() []card {
	var cards []card
	for _, q := range c.summary.Quantiles {
		if q.Name == "p50" || q.Name == "p95" || q.Name == "p99" {
			cards = append(cards, card{"Added at " + q.Name, signed(q.Added.Median) + " ms", between(q.Added)})
		}
	}
	if c.summary.Accepted == 0 {
		cards = nil
	}
	cards = append(cards, card{"Trials accepted", fmt.Sprint(c.summary.Accepted), fmt.Sprintf("of %d made", c.summary.Made)},
		card{"Right answers", whole(c.answered()), "in accepted trials"})
	if cpu := c.summary.RoutedCPU; cpu != nil {
		cards = append(cards, card{"Proxy's CPU a request", fmt.Sprintf("%.1f µs", cpu.Median), fmt.Sprintf("%.1f to %.1f", cpu.Low, cpu.High)})
	}
	return cards
}

// between is the interval of an estimate.
func between(e trial.Estimate) string { return signed(e.Low) + " to " + signed(e.High) }

// curves are those of both lanes, over the trials.
func (c *comparison) curves(tag string) []curve {
	over := func(name, class string) curve {
		lanes := c.lanes(name)
		one := curve{name: name, class: class, band: true}
		for i, l := range lanes {
			if h := l.merged[tag]; h != nil && (i == 0 || h.Count() < one.count) {
				one.count = h.Count()
			}
		}
		one.at = func(q float64) trial.Estimate {
			return estimateOver(lanes, func(l *lane) float64 {
				if l.merged[tag] == nil {
					return 0
				}
				return latency.Milliseconds(l.merged[tag].Quantile(q))
			})
		}
		return one
	}
	return []curve{over(trial.Direct, "c1 line"), over(trial.Routed, "c2 line")}
}

func estimateOver(lanes []*lane, value func(*lane) float64) trial.Estimate {
	values := make([]float64, len(lanes))
	for i, l := range lanes {
		values[i] = value(l)
	}
	return trial.EstimateOf(values)
}

func (c *comparison) lags() []curve {
	over := func(name, lag, table, class string) curve {
		lanes := c.lanes(name)
		one := curve{name: name + ": " + lag, class: class}
		for i, l := range lanes {
			if n := l.tables[table].Total; i == 0 || n < one.count {
				one.count = n
			}
		}
		one.at = func(q float64) trial.Estimate {
			return estimateOver(lanes, func(l *lane) float64 { return l.tables[table].Quantile(q) })
		}
		return one
	}
	return []curve{
		over(trial.Direct, "send lag", "send_lag", "c1 line"), over(trial.Direct, "own lag", "own_lag", "c1 line dotted"),
		over(trial.Routed, "send lag", "send_lag", "c2 line"), over(trial.Routed, "own lag", "own_lag", "c2 line dotted"),
	}
}

func (c *comparison) manifest() []fact {
	s := c.summary
	poisson := "even"
	if s.Config.Poisson {
		poisson = fmt.Sprintf("Poisson, seed %d and up", s.Config.Seed)
	}
	limits := s.Config.Limits
	facts := []fact{
		{"Begun", stamp(s.Began)}, {"Ended", stamp(s.Ended)},
		{"Direct", s.Config.Direct.URL}, {"Routed", s.Config.Routed.URL},
		{"Load", fmt.Sprintf("%g per second, %s, for %g s after %g s of warm-up", s.Config.Rate, poisson, s.Config.Duration, s.Config.Warmup)},
		{"Connections", fmt.Sprintf("%d, %s", s.Config.Conns, s.Config.Protocol)},
		{"Limits", fmt.Sprintf("own lag %s, generator %g cores, others %g, stolen %g, direct p50 within a factor of %g",
			limits.OwnLag, limits.Generator, limits.Foreign, limits.Steal, limits.Drift)},
		{"CPUs", fmt.Sprintf("generator %v, server %v, proxy %v", s.Places.Generator, s.Places.Server, s.Places.Proxy)},
	}
	return append(facts, manifestFacts(s.Manifest)...)
}
