package system_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// latencyTable tells, phase by phase, how long the lanes took, what Rouse had
// to do with it, and how late the probe itself was.
func latencyTable(lanes []lane, samples []sample, phases []phase) []string {
	lines := []string{
		"",
		"| phase | requests | lane | p50 ms | p99 ms | max ms | p99 to quiet |",
		"|---|---|---|---|---|---|---|",
	}
	names := phaseNames(phases)
	for _, name := range names {
		for i, l := range lanes {
			took := pick(samples, phases, name, -1, i)
			lines = append(lines, fmt.Sprintf("| %s | %d | %s | %s | %s | %s | %s |", name, len(took), l.Name,
				millis(quantile(took, 0.5)), millis(quantile(took, 0.99)), millis(quantile(took, 1)),
				ratio(quantile(took, 0.99), quantile(pick(samples, phases, quiet, -1, i), 0.99))))
		}
	}
	lines = append(lines, "", "| effect of Rouse, ms | at p50 | at p99 | at p99, round by round |", "|---|---|---|---|")
	for _, name := range names {
		if name != quiet {
			lines = append(lines, effectRow(samples, phases, name))
		}
	}
	return append(lines, "", "The probe's own delay in sending: "+lagText(samples, phases)+".", "")
}

// phaseNames gives the names of the phases, in order of their first.
func phaseNames(phases []phase) []string {
	var names []string
	for _, p := range phases {
		if !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// within gives the samples that were due in the phases of the name; round -1
// is all of them.
func within(samples []sample, phases []phase, name string, round int) []sample {
	var in []sample
	for _, p := range phases {
		if p.name != name || round >= 0 && p.round != round {
			continue
		}
		for _, s := range samples {
			if !s.due.Before(p.from) && s.due.Before(p.to) {
				in = append(in, s)
			}
		}
	}
	return in
}

// pick gives the sorted latencies of one lane.
func pick(samples []sample, phases []phase, name string, round, lane int) []time.Duration {
	var took []time.Duration
	for _, s := range within(samples, phases, name, round) {
		if s.lane == lane {
			took = append(took, s.took)
		}
	}
	slices.Sort(took)
	return took
}

// effectRow is the difference of the differences.
func effectRow(samples []sample, phases []phase, name string) string {
	effect := func(round int, q float64) time.Duration {
		more := func(phase string) time.Duration {
			return quantile(pick(samples, phases, phase, round, laneStorm), q) - quantile(pick(samples, phases, phase, round, laneOther), q)
		}
		return more(name) - more(quiet)
	}
	var rounds []string
	for _, p := range phases {
		if p.name == name {
			rounds = append(rounds, millis(effect(p.round, 0.99)))
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s |", name, millis(effect(-1, 0.5)), millis(effect(-1, 0.99)), strings.Join(rounds, ", "))
}

func lagText(samples []sample, phases []phase) string {
	var parts []string
	for _, name := range phaseNames(phases) {
		var lags []time.Duration
		for _, s := range within(samples, phases, name, -1) {
			lags = append(lags, s.lag)
		}
		slices.Sort(lags)
		parts = append(parts, fmt.Sprintf("%s p50 %s ms, p99 %s ms", name, millis(quantile(lags, 0.5)), millis(quantile(lags, 0.99))))
	}
	return strings.Join(parts, "; ")
}

// quantile of what is sorted; 0 of nothing.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.2f", float64(d)/float64(time.Millisecond))
}

func ratio(a, b time.Duration) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(a)/float64(b))
}
