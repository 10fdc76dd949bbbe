// Command testreport runs `go test -json` and prints what a person wants of
// it: each package's verdict as it comes, the output of what failed, which
// tests were skipped and why, and as its last line the counts:
//
//	120 passed, 0 failed, 3 skipped
//
//	testreport [-again N] -packages "./a ./b" [flags of go test] [-args ...]
//
// A test that has subtests is not counted itself, unless it failed on its
// own. A package that does not build, panics or runs out of time counts as
// one failure. It exits 1 if anything failed, or if nothing ran.
//
// With -again, up to N failures are each run a second time, alone: on a busy
// machine a test may fail for want of a processor. What passes then is listed
// as unsteady, under its first output. More failures than N are no accident,
// and neither is a data race or a package that does not build: these fail.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	failed, err := start(os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

func start(args []string, out io.Writer) (failed bool, err error) {
	p, err := parse(args)
	if err != nil {
		return true, err
	}
	return p.run(goTest, out)
}

// A plan is what to test, and how.
type plan struct {
	packages []string
	flags    []string // of go test
	args     []string // -args and what follows it
	again    int      // failures that are run a second time
}

// parse takes testreport's own flags, which come first; the rest is go test's.
func parse(args []string) (p plan, err error) {
	if len(args) > 1 && args[0] == "-again" {
		if p.again, err = strconv.Atoi(args[1]); err != nil || p.again < 0 {
			return p, fmt.Errorf("-again %s: want a number of failures", args[1])
		}
		args = args[2:]
	}
	if len(args) < 2 || args[0] != "-packages" || strings.TrimSpace(args[1]) == "" {
		return p, fmt.Errorf("want -packages and a list in one word")
	}
	p.packages, args = strings.Fields(args[1]), args[2:]
	if i := slices.Index(args, "-args"); i >= 0 {
		args, p.args = args[:i], args[i:]
	}
	p.flags = args
	return p, nil
}

// whole is what go test is given at first.
func (p plan) whole() []string { return slices.Concat(p.flags, p.packages, p.args) }

// alone is what it is given for a failure: its test, or its whole package.
func (p plan) alone(n name) []string {
	flags := p.flags
	if n.test != "" {
		flags = append(slices.Clone(flags), "-run", "^"+n.test+"$")
	}
	return slices.Concat(flags, []string{n.pkg}, p.args)
}

// A tester runs go test and gives its output to read.
type tester func(args []string, read func(io.Reader) error) error

func goTest(args []string, read func(io.Reader) error) error {
	test := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	test.Stderr = os.Stderr
	out, err := test.StdoutPipe()
	if err != nil {
		return err
	}
	if err := test.Start(); err != nil {
		return err
	}
	if err := read(out); err != nil {
		return err
	}
	_ = test.Wait() // what failed stands in its output
	return nil
}

// run reports that something failed, or that there was nothing to fail.
func (p plan) run(test tester, out io.Writer) (failed bool, err error) {
	r := newReport(out)
	if err := test(p.whole(), r.read); err != nil {
		return true, err
	}
	for _, n := range r.worthAnother(p.again) {
		second := newReport(out)
		r.printf("\nAgain, alone: %s\n", n)
		if err := test(p.alone(n), second.read); err != nil {
			return true, err
		}
		r.replace(n, second)
	}
	passed, failures := r.finish()
	return failures > 0 || passed == 0, nil
}
