// Package doctor finds what is wrong with an installation of Rouse before
// somebody suffers from it, and says what to do about it.
//
// Examine is a pure function from Evidence to a Report: what was asked of the
// engine, of NATS and of a running Rouse goes in, findings come out. Who
// gathers the evidence, and over which connection, is not known here, so that
// every finding is tested without any of them. Evidence that could not be had
// is left out, and said so in Evidence.Unchecked: the report tells what it is
// not about.
//
// A finding names the place, what is wrong there, why it matters and what to
// do. The order of findings depends on the evidence alone.
package doctor

import (
	"cmp"
	"slices"

	"github.com/rouse-dev/rouse/workload"
)

// A Severity says how bad a finding is.
type Severity string

const (
	// Error: something does not work, or will not when it is needed.
	Error Severity = "error"
	// Warning: it works, and will not for long or not in every case.
	Warning Severity = "warning"
	// Note: it works, and could be better.
	Note Severity = "note"
)

// severities, the worst first.
var severities = []Severity{Error, Warning, Note}

// A Finding is one thing that is wrong.
type Finding struct {
	Severity Severity `json:"severity"`
	// Code is one of a fixed set, for scripts.
	Code string `json:"code"`
	// Place is where it is: a container, file:line:col, an address.
	Place string `json:"place"`
	// What is wrong, Why it matters, and the Fix: a sentence each.
	What string `json:"what"`
	Why  string `json:"why"`
	Fix  string `json:"fix"`
}

// An Unchecked is a part that could not be looked at.
type Unchecked struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// A Report is the outcome. None of its lists is nil.
type Report struct {
	// Findings come by severity, the worst first, then by place.
	Findings []Finding `json:"findings"`
	// Checked names the parts that were looked at, each in a few words.
	Checked   []string    `json:"checked"`
	Unchecked []Unchecked `json:"unchecked"`
}

// Count gives the number of findings of a severity.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Evidence is what was found out. A part that is nil or empty was not looked
// at, or has nothing to tell; Unchecked says which.
type Evidence struct {
	Checked   []string
	Unchecked []Unchecked
	// Settings are what is wrong with the configuration.
	Settings []workload.Problem
	// Workloads are all that is known, by description; Problems what is wrong
	// with others.
	Workloads []workload.Workload
	Problems  []workload.Problem
	// UTC says that local time is UTC where the scaler runs.
	UTC bool

	Server *Server
	Engine *Engine
	NATS   *NATS
}

// Examine finds what is wrong.
func Examine(e Evidence) Report {
	var f []Finding
	f = append(f, settings(e.Settings)...)
	f = append(f, problems(e.Problems, e.Workloads)...)
	f = append(f, e.hours()...)
	if e.Server != nil {
		f = append(f, e.Server.findings()...)
	}
	if e.Engine != nil {
		f = append(f, e.Engine.findings(e.Workloads)...)
	}
	if e.NATS != nil {
		f = append(f, e.NATS.findings()...)
	}
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity)),
			cmp.Compare(a.Place, b.Place), cmp.Compare(a.Code, b.Code), cmp.Compare(a.What, b.What))
	})
	return Report{
		Findings:  append([]Finding{}, slices.Compact(f)...),
		Checked:   append([]string{}, e.Checked...),
		Unchecked: append([]Unchecked{}, e.Unchecked...),
	}
}

// hours finds windows that are read in a time that nobody may have meant.
func (e Evidence) hours() []Finding {
	var all []Finding
	for _, w := range e.Workloads {
		if e.UTC && w.KeepWarm != "" {
			all = append(all, Finding{Note, "utc", w.Name, "its keep_warm hours (" + w.KeepWarm + ") are read in UTC",
				"local time is UTC here, as it is in most containers", "set TZ for the scaler, if another time is meant (an image needs its zones too)"})
		}
	}
	return all
}
