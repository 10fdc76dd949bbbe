// Command testreport reads the output of `go test -json` and prints what a
// person wants of it: each package's verdict as it comes, the output of what
// failed, which tests were skipped and why, and as its last line the counts:
//
//	120 passed, 0 failed, 3 skipped
//
// A test that has subtests is not counted itself, unless it failed on its
// own. A package that does not build, panics or runs out of time counts as
// one failure. It exits 1 if anything failed, or if nothing ran.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	failed, err := run(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// run reports that something failed, or that there was nothing to fail.
func run(in io.Reader, out io.Writer) (failed bool, err error) {
	report := newReport(out)
	if err := report.read(in); err != nil {
		return true, err
	}
	passed, failures := report.finish()
	return failures > 0 || passed == 0, nil
}
