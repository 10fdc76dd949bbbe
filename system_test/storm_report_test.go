package system_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	stormsFull = flag.Bool("storms.full", false, "storms and replays of full size, on a program without race detector")
	stormsFile = flag.String("storms.report", "", "file to write what the storms came to")
)

// The sections of the report, in order.
const (
	sectionStarts = iota
	sectionHeld
	sectionScanner
	sectionReplay
	numSections
)

// stormsReport collects rows of tables from the tests; it is written anew
// with each, so that a run that is cut short has left what it found.
var stormsReport report

// A report is Markdown in sections. It is safe for concurrent use.
type report struct {
	mu    sync.Mutex
	lines [numSections][]string // guarded by mu
}

// row adds one line to a section.
func (r *report) row(section int, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines[section] = append(r.lines[section], line)
	if *stormsFile == "" {
		return
	}
	if err := os.WriteFile(*stormsFile, r.text(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// text is the whole report. Under the lock.
func (r *report) text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, stormsIntro, time.Now().UTC().Format(time.DateOnly), machine(), commit())
	for section, lines := range r.lines {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n%s\n", stormsTexts[section], strings.Join(lines, "\n"))
		}
	}
	return b.Bytes()
}

// machine describes where this runs, as far as it can be found out.
func machine() string {
	kernel := output("uname", "-sr")
	engine := output("docker", "version", "--format", "{{.Server.Version}}")
	return fmt.Sprintf("%d cores (%s), %s, Docker Engine %s, %s", runtime.NumCPU(), cpuModel(), kernel, engine, runtime.Version())
}

func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // elsewhere: unknown
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func commit() string {
	return output("git", "describe", "--always", "--dirty")
}

// output is what a command prints, or that it is unknown.
func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// fact reports one number of a storm.
func (s *storm) fact(what, format string, args ...any) {
	s.t.Helper()
	value := fmt.Sprintf(format, args...)
	s.t.Logf("%s: %s", what, value)
	stormsReport.row(s.section, fmt.Sprintf("- %s: %s", what, value))
}

const stormsIntro = `# %s: storms and replayed traces

Machine: a virtual machine with %s.
Commit %s, ` + "`make storms`" + `. Numbers of a shared machine are for comparing
what was measured in one run.

What a storm does to a workload that is awake is told by a steady open-loop
probe: requests at fixed times, 100 a second on each of three lanes in turn, each
latency counted from the moment it was due. *Direct* asks the workload itself.
*Other gateway* asks through a second Rouse of the same build that has nothing
to do with the storm. *Storm's gateway* asks through the one that the storm
goes to. All of it, the storm's clients and what it starts included, runs on the
same cores. So the storm's effect on *direct* is the cores being busy, its effect on
*other gateway* is the same for one hop more, and only what *storm's gateway* has
beyond that is Rouse's own: **effect of Rouse** = (storm's gateway - other gateway)
in the storm, less the same in the quiet before. Quiet and storm take turns. Where
even *direct* is slow in the quiet, somebody else had the cores.
`

var stormsTexts = [numSections]string{
	sectionStarts: `## A hundred sleeping containers at once

Three requests to each, all at the same moment, with ` + "`starts_in_parallel`" + ` as
it is by default. Calls are counted by a proxy on the engine's socket, starts by the
engine's events.
`,
	sectionHeld: `## Ten thousand held requests

50 workloads, 200 requests each on connections of their own; the workloads take
15 s to listen. *Arrival* is from the first request sent to the last one held,
*held* until the first answer, *release* until the last. Memory is the resident
set of the whole node: router, activator, scaler and embedded NATS server; what
Go's collector has freed goes back to the system slowly. That each was executed
once is told by the workloads' own counters. Ten thousand requests that come within
half a second take the gateway about that long to read, and one for an awake
workload waits behind them: that is the effect on arrival.
`,
	sectionScanner: `## A scanner

It asks for every host of 50 sleeping workloads over and over, with pauses in
which they fall asleep again, and for hosts that do not exist in between.
`,
	sectionReplay: `## Replayed traces

Requests of the [Azure Public Dataset](../../system_test/testdata/traces/README.md)
(CC BY 4.0), faster than they came, to workloads that sleep in between. Every
request was answered by the workload that it was for. The prediction counts the
gaps between requests that are longer than the idle timeout; it is a range where
gaps come close to it, from 0.25 s below to 1.5 s above, when sleep and request
race. *Nearest gaps* are the longest without a cold start after it and the
shortest with one, both less the idle timeout. All five ran at the same time.

| trace | on | times faster | idle timeout | length | requests | cold starts | predicted | nearest gaps |
|---|---|---|---|---|---|---|---|---|`,
}

// reportWritten says where the report went.
func reportWritten(t *testing.T) {
	if *stormsFile != "" {
		t.Logf("report: %s", *stormsFile)
	}
}
