//go:build linux

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// coldStarts is the result of `loadtest coldstart`.
type coldStarts struct{ *coldstart.Summary }

func openColdStarts(dir string) (source, error) {
	s, err := coldstart.Read(dir)
	if err != nil {
		return nil, err
	}
	return &coldStarts{s}, nil
}

func (c *coldStarts) check() (all Check) {
	all.same("summary.json", c.Summary, c.Recomputed())
	return all
}

// clockError is by how much the phases of a trial may be off its total, in
// milliseconds.
const clockError = 0.05

// doubtful counts the trials whose phases are not the whole of them, and by
// how much the worst is off: these are cut by the wall clock, and of older
// results the whole is not.
func (c *coldStarts) doubtful() (n int, worst float64) {
	for _, t := range c.good() {
		sum := 0.0
		for _, phase := range t.Phases {
			sum += phase.MS
		}
		if off := math.Abs(sum - t.Total); len(t.Phases) > 0 && off > clockError {
			n, worst = n+1, max(worst, off)
		}
	}
	return n, worst
}

func (c *coldStarts) part() part {
	p := part{
		Title: "Cold starts of " + c.Workload, Verdict: c.verdict(), Cards: c.cards(), Manifest: c.manifest(),
		Subtitle: fmt.Sprintf("%d requests to %s while it was asleep. Ended %s.", len(c.Trials), c.URL, stamp(c.At)),
	}
	if c.Added.N == 0 {
		return p
	}
	median := c.median()
	p.Sections = append(p.Sections, section{
		Title:   "One cold start, phase by phase",
		Note:    fmt.Sprintf("Trial %d, the median one by its total. Grey is what anybody would wait for: from the platform's start call until the app listens.", median.N),
		Figures: []figure{c.waterfall(median)},
	}, section{
		Title:   "Every cold start",
		Note:    "The thin line below a bar is the start without Rouse of the same pair.",
		Figures: []figure{c.bars()},
	}, section{
		Title:   "What Rouse adds",
		Note:    "The whole request, less the time from the start call to the app's own listen(): the caller would have waited for that anyhow.",
		Figures: []figure{c.addedDots()},
	})
	return p
}

// good are the trials that count.
func (c *coldStarts) good() []coldstart.Trial {
	return slices.DeleteFunc(slices.Clone(c.Trials), func(t coldstart.Trial) bool { return t.Error != "" })
}

// median is the trial of the median total; of an even number, the faster.
func (c *coldStarts) median() coldstart.Trial {
	good := c.good()
	slices.SortFunc(good, func(a, b coldstart.Trial) int {
		if a.Total < b.Total {
			return -1
		}
		return 1
	})
	return good[(len(good)-1)/2]
}

func (c *coldStarts) verdict() (v Verdict) {
	v.against(c.Failed > 0, "%d of %d trials failed", c.Failed, len(c.Trials))
	for i, t := range c.Trials {
		v.against(t.Error != "" && i < mostTold, "trial %d: %s", t.N, t.Error)
	}
	v.against(c.Added.N == 0, "there is no cold start in it")
	v.reserve(c.Added.N > 0 && c.Added.N < 20, "fewer than 20 cold starts")
	v.reserve(c.Bare == nil, "no starts without Rouse were made beside them: what the machine took is not known")
	n, worst := c.doubtful()
	v.reserve(n > 0, "the phases of %s are up to %s ms off their total: the clock of the machine was set meanwhile", count(n, "trial"), ms(worst))
	if v.Valid() {
		v.speakFor("Each of %d requests met a sleeping workload and was answered once it was up.", c.Added.N)
	}
	return v
}

func (c *coldStarts) cards() []card {
	spread := func(s coldstart.Stat) string {
		return fmt.Sprintf("p95 %s, worst %s", ms(s.P95), ms(s.Max))
	}
	cards := []card{
		{"Added by Rouse, median", ms(c.Added.Median) + " ms", spread(c.Added)},
		{"Listen to first byte", ms(c.AfterListen.Median) + " ms", spread(c.AfterListen)},
		{"Whole request, median", ms(c.Total.Median) + " ms", spread(c.Total)},
	}
	if c.Bare != nil {
		cards = append(cards, card{"More than a bare start", signed(c.Bare.Difference.Median) + " ms", "median of the pairs"})
	}
	return append(cards, card{"Cold starts", fmt.Sprint(c.Added.N), fmt.Sprintf("%d failed", c.Failed)})
}

func (c *coldStarts) manifest() []fact {
	facts := []fact{
		{"At", stamp(c.At)}, {"Workload", c.Workload}, {"URL", c.URL},
		{"Command", strings.Join(c.Command, " ")}, {"Version", c.Version},
	}
	return slices.DeleteFunc(append(facts, machineFacts(c.Machine)...), func(f fact) bool { return f.Value == "" })
}

func (c *coldStarts) tableOfTrials() table {
	t := table{Caption: "Every cold start, ms", Head: []string{"Trial", "Total", "Start to listen", "Added", "After listen", "Bare total", "Verdict"}}
	for _, one := range c.Trials {
		if one.Error != "" {
			t.Rows = append(t.Rows, row{Class: "rejected", Cells: []string{fmt.Sprint(one.N), "-", "-", "-", "-", "-", "failed: " + one.Error}})
			continue
		}
		bare := "-"
		if one.Bare != nil {
			bare = ms(one.Bare.Total)
		}
		t.Rows = append(t.Rows, row{Cells: []string{fmt.Sprint(one.N), ms(one.Total), ms(one.App), ms(one.Added), ms(one.AfterListen), bare, "ok"}})
	}
	return t
}
