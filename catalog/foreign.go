package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/workload"
)

// foreignDefaults are labels of Sablier with the values at which they ask for
// nothing that Rouse does not do anyway.
var foreignDefaults = map[string]string{ // label -> value
	"sablier.idle.replicas": "0", "sablier.active.replicas": "1", "sablier.ready-on-start": "false",
}

// foreignGroup is that of a container without sablier.group.
const foreignGroup = "default"

// foreignSettings reads Sablier's labels where the container opted in by them,
// but for what Rouse's own say. What Rouse cannot do is told, and takes nothing
// out: Sablier warns and goes on, and so do those who come from it.
func (b *builder) foreignSettings(d *draft, c workload.Container, own []strict.Setting, table strict.Table) []strict.Setting {
	if !c.ForeignEnabled() {
		return nil
	}
	f := foreign{b: b, d: d, c: c, own: own, table: table}
	f.add("group", "sablier.group", orDefault(strings.TrimSpace(c.Foreign["sablier.group"]), foreignGroup))
	if after, given := c.Foreign["sablier.ready-after"]; given {
		f.add("ready_after", "sablier.ready-after", after)
	}
	f.hours()
	if c.HealthCheck {
		f.add("ready", "HEALTHCHECK", string(workload.ReadyDocker)) // it is what ready means there
	}
	f.tellOfOthers()
	return f.settings
}

func orDefault(value, other string) string {
	if value == "" {
		return other
	}
	return value
}

// foreign is one reading of a container's labels.
type foreign struct {
	b        *builder
	d        *draft
	c        workload.Container
	own      []strict.Setting
	table    strict.Table
	settings []strict.Setting
}

// add makes a setting of a label, unless one of Rouse's own has made it.
func (f *foreign) add(key, label, text string) {
	if slices.ContainsFunc(f.own, func(s strict.Setting) bool { return s.Key == key }) {
		return
	}
	field := f.table.Find(key)
	s := strict.Setting{Key: key, Text: field.Value.Split(text), Place: f.c.Name}
	if err := checkAll(field.Value, s.Text); err != nil {
		p := strict.ProblemOf(f.c.Name, label, err)
		f.tell(p.Message+"; it is left out", p.Fix)
		return
	}
	f.settings = append(f.settings, s)
}

func (f *foreign) tell(message, fix string) {
	f.b.report(workload.Problem{Workload: f.d.name, Place: f.c.Name, Message: message, Fix: fix})
}

// hours makes keep_warm of running-hours and running-days.
func (f *foreign) hours() {
	const hoursLabel, daysLabel = "sablier.running-hours", "sablier.running-days"
	hours, days := strings.TrimSpace(f.c.Foreign[hoursLabel]), strings.TrimSpace(f.c.Foreign[daysLabel])
	switch {
	case hours == "" && days != "":
		f.tell(daysLabel+" says nothing without "+hoursLabel+"; it is left out", "set "+hoursLabel)
	case hours != "" && days == "":
		f.add("keep_warm", hoursLabel, hours)
	case hours != "":
		var windows []string
		for day := range strings.SplitSeq(days, ",") {
			day, known := shortDay(strings.TrimSpace(day))
			if !known {
				f.tell(fmt.Sprintf("%s: %q is not a day; %s is left out", daysLabel, day, hoursLabel), "write Mon,Tue,Wed")
				return
			}
			windows = append(windows, day+" "+hours)
		}
		f.add("keep_warm", hoursLabel, strings.Join(windows, ", "))
	}
}

// shortDay is the first three letters of a day that is written in full or by
// them.
func shortDay(s string) (short string, known bool) {
	for _, day := range []string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"} {
		if strings.EqualFold(s, day) || strings.EqualFold(s, day[:3]) {
			return day[:3], true
		}
	}
	return s, false
}

// notDone tells of Sablier's labels what Rouse has in their place.
var notDone = map[string]string{ // label, or its part up to a dot -> what to do
	"sablier.anti-affinity":  "name the workloads that it must not run beside in rouse.conflicts-with",
	"sablier.ready-on-start": "readiness is always proved: set rouse.ready=tcp or name it optional: in the call",
	"sablier.idle":           "write rouse.stop=throttle for a twentieth of a CPU while it is idle, or rouse.stop=pause",
	"sablier.active":         "limits are those that the container was made with",
}

// tellOfOthers names every label that Rouse does not honour.
func (f *foreign) tellOfOthers() {
	read := []string{"sablier.enable", "sablier.group", "sablier.ready-after", "sablier.running-hours", "sablier.running-days"}
	for _, label := range slices.Sorted(maps.Keys(f.c.Foreign)) {
		if slices.Contains(read, label) || foreignDefaults[label] == f.c.Foreign[label] && f.c.Foreign[label] != "" {
			continue
		}
		section, _, _ := strings.Cut(strings.TrimPrefix(label, "sablier."), ".")
		fix, known := notDone[label]
		if !known {
			fix, known = notDone["sablier."+section]
		}
		if !known {
			f.tell(fmt.Sprintf("%s is not honoured: it is none of Sablier's labels that are known here", label), strict.DidYouMean(label, read))
			continue
		}
		f.tell(label+" is not honoured", fix)
	}
}
