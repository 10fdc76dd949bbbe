package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxLine bounds one line of input; a test may print long ones.
const maxLine = 64 << 20

// An event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
	// ImportPath is the package of a build's events.
	ImportPath  string
	FailedBuild string
}

// A name says which test of which package; without a test, the package.
type name struct{ pkg, test string }

func (n name) String() string {
	if n.test == "" {
		return n.pkg
	}
	return n.pkg + " " + n.test
}

// A report gathers the events of one run.
type report struct {
	out    io.Writer
	output map[name][]string // name -> what it printed and is not settled
	parent map[name]bool     // tests that have subtests
	// Results, in the order in which they came.
	passed, failed, skipped []name
	reasons                 map[name]string // skipped test -> why
	proved                  map[name]bool   // failures that no second run takes back
	unsteady                []name          // failed at first
}

func newReport(out io.Writer) *report {
	return &report{
		out:     out,
		output:  map[name][]string{},
		parent:  map[name]bool{},
		reasons: map[name]string{},
		proved:  map[name]bool{},
	}
}

// read takes in every event. A line that is none was printed by a build tool
// and is passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if !bytes.HasPrefix(lines.Bytes(), []byte("{")) || json.Unmarshal(lines.Bytes(), &e) != nil {
			r.printf("%s\n", lines.Text())
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

func (r *report) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "run":
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
			r.parent[name{e.Package, e.Test[:i]}] = true
		}
	case "output":
		r.output[n] = append(r.output[n], e.Output)
	case "build-output":
		r.printf("%s", e.Output)
	case "pass", "skip", "fail":
		r.settle(n, e)
	}
}

// settle notes a result and prints the verdict of a package.
func (r *report) settle(n name, e event) {
	switch {
	case e.Test == "":
		r.settlePackage(n, e)
	case e.Action == "pass":
		r.passed = append(r.passed, n)
	case e.Action == "skip":
		r.skipped = append(r.skipped, n)
		r.reasons[n] = reason(r.output[n])
	case !r.childFailed(n):
		r.fail(n, strings.Join(r.output[n], ""), false)
	}
	delete(r.output, n)
}

// fail notes a failure with what it printed.
func (r *report) fail(n name, printed string, proved bool) {
	r.failed = append(r.failed, n)
	r.proved[n] = proved || strings.Contains(printed, "race detected") || strings.Contains(printed, "DATA RACE")
	r.printf("--- FAIL: %s\n%s", n, printed)
}

// childFailed reports that a subtest failed, and so its parent with it.
func (r *report) childFailed(n name) bool {
	return slices.ContainsFunc(r.failed, func(f name) bool {
		return f.pkg == n.pkg && strings.HasPrefix(f.test, n.test+"/")
	})
}

func (r *report) settlePackage(n name, e event) {
	if e.Action != "fail" {
		verdict := map[string]string{"pass": "ok  ", "skip": "?   "}[e.Action]
		r.printf("%s  %-50s %6.1fs\n", verdict, n.pkg, e.Elapsed)
		return
	}
	if !slices.ContainsFunc(r.failed, func(f name) bool { return f.pkg == n.pkg }) {
		r.fail(n, strings.Join(r.unsettled(n.pkg), ""), e.FailedBuild != "")
	}
	r.printf("FAIL  %-50s %6.1fs\n", n.pkg, e.Elapsed)
}

// unsettled is the output of a package that ended in the midst of its tests.
func (r *report) unsettled(pkg string) []string {
	var lines []string
	for n, printed := range r.output {
		if n.pkg == pkg {
			lines = append(lines, printed...)
		}
	}
	return lines
}

// reason is what a skipped test said: its output without go test's frame.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "--- SKIP") {
			continue
		}
		if file, text, found := strings.Cut(line, ": "); found && strings.Contains(file, ".go:") {
			line = text
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, "; ")
}

// finish prints what is left to say and gives the counts.
func (r *report) finish() (passed, failed int) {
	leaves := slices.DeleteFunc(r.passed, func(n name) bool { return r.parent[n] })
	r.printSkipped()
	r.printNames("Unsteady: failed at first, passed when run again alone", r.unsteady)
	r.printNames("Failed", r.failed)
	r.printf("\n%d passed, %d failed, %d skipped\n", len(leaves), len(r.failed), len(r.skipped))
	return len(leaves), len(r.failed)
}

func (r *report) printNames(title string, names []name) {
	if len(names) > 0 {
		r.printf("\n%s:\n", title)
	}
	for _, n := range names {
		r.printf("  %s\n", n)
	}
}

// printSkipped lists the skipped tests under their reasons.
func (r *report) printSkipped() {
	var order []string
	tests := map[string][]name{} // reason -> tests
	for _, n := range r.skipped {
		why := r.reasons[n]
		if tests[why] == nil {
			order = append(order, why)
		}
		tests[why] = append(tests[why], n)
	}
	for _, why := range order {
		r.printf("\nSkipped (%d): %s\n", len(tests[why]), why)
		for _, n := range tests[why] {
			r.printf("  %s\n", n)
		}
	}
}

// printf writes to standard output or a buffer: nobody to tell if it fails.
func (r *report) printf(format string, args ...any) { _, _ = fmt.Fprintf(r.out, format, args...) }
