//go:build linux

package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rouse-dev/rouse/loadtest/coldstart"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// stamp is a moment, to the second.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// manifestFacts leaves out what is not known.
func manifestFacts(m trial.Manifest) []fact {
	var environment []string
	for _, name := range slices.Sorted(maps.Keys(m.Environment)) {
		environment = append(environment, name+"="+m.Environment[name])
	}
	files := ""
	if m.OpenFiles > 0 {
		files = fmt.Sprintf("%d open files", m.OpenFiles)
	}
	facts := append([]fact{{"Command", strings.Join(m.Command, " ")}, {"Version", m.Version}, {"Revision", m.Revision}, {"SHA-256", m.Binary}}, machineFacts(m.Machine)...)
	facts = append(facts, fact{"Limit", files}, fact{"cgroup cpu.max", m.CgroupCPU}, fact{"Clock", m.Clock}, fact{"Load at start", m.Load}, fact{"Environment", strings.Join(environment, " ")})
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

func machineFacts(m coldstart.Machine) []fact {
	return []fact{
		{"CPU", m.CPU}, {"Cores", fmt.Sprint(m.Cores)}, {"Kernel", m.Kernel}, {"Go", m.Go}, {"Docker engine", m.Engine},
	}
}
