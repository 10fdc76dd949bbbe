package events

import "github.com/rouse-dev/rouse/workload"

// maxReason bounds the text that comes with a reason, so that a record fits
// its stream whatever a workload writes before it dies: JSON may need six bytes
// for one.
const maxReason = 6 << 10

// trimReason keeps the last lines of the log that fit, and cuts a detail that
// does not. The reason that was handed in is left as it is.
func trimReason(r workload.Reason) workload.Reason {
	r.Detail = cut(r.Detail, maxReason/4)
	r.Log = lastLines(r.Log, maxReason)
	return r
}

// lastLines gives the last lines that fit into size bytes; a line that does
// not fit alone is cut.
func lastLines(lines []string, size int) []string {
	from := len(lines)
	for left := size; from > 0; from-- {
		left -= len(lines[from-1]) + 1
		if left < 0 {
			break
		}
	}
	if from == len(lines) && len(lines) > 0 {
		return []string{cut(lines[from-1], size)}
	}
	return lines[from:]
}

func cut(s string, size int) string {
	if len(s) <= size {
		return s
	}
	return s[:size]
}
