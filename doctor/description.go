package doctor

import (
	"slices"
	"strings"

	"github.com/rouse-dev/rouse/workload"
)

// settings are what is wrong with the configuration.
func settings(wrong []workload.Problem) []Finding {
	var all []Finding
	for _, p := range wrong {
		all = append(all, Finding{Error, "config", p.Place, p.Message,
			"nothing starts with this configuration, and a running process keeps the one before", fixOf(p)})
	}
	return all
}

// problems are what is wrong with descriptions of workloads, and what the NATS
// server told of itself. A description of a workload that is there all the same
// takes nothing out.
func problems(wrong []workload.Problem, known []workload.Workload) []Finding {
	var all []Finding
	for _, p := range wrong {
		if p.Kind == workload.ProblemNATS {
			all = append(all, Finding{Warning, "nats_advisory", p.Place, p.Message,
				"a wake or a state that NATS does not take or deliver reaches nobody: workloads wake late, or not at all", fixOf(p)})
			continue
		}
		f := Finding{Error, codeOf(p), p.Place, p.Message, "the workload is left out until this is mended: requests for it get 404, and nothing wakes it", fixOf(p)}
		if slices.ContainsFunc(known, func(w workload.Workload) bool { return w.Name == p.Workload }) {
			f.Severity, f.Why = Warning, "the workload is there, and not as it was described"
		}
		all = append(all, f)
	}
	return all
}

func codeOf(p workload.Problem) string {
	switch {
	case strings.HasPrefix(p.Message, "unknown label"):
		return "label"
	case strings.Contains(p.Message, " exposes "):
		return "port"
	}
	return "description"
}

func fixOf(p workload.Problem) string {
	if p.Fix == "" {
		return "correct it there"
	}
	return p.Fix
}
