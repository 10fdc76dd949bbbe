package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func reportOf(t *testing.T, lines ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	failed, err := plan{packages: []string{"./..."}}.run(saying(t, call{"./...", lines}), &out)
	require.NoError(t, err)
	return out.String(), failed
}

// A call of go test has arguments, and is answered in lines.
type call struct {
	args  string
	lines []string
}

// saying is a tester that gets these calls, in this order, and no others.
func saying(t *testing.T, calls ...call) tester {
	t.Cleanup(func() { assert.Empty(t, calls, "calls that were not made") })
	return func(args []string, read func(io.Reader) error) error {
		require.NotEmpty(t, calls, "not expected: %s", args)
		now := calls[0]
		calls = calls[1:]
		assert.Equal(t, now.args, strings.Join(args, " "))
		return read(strings.NewReader(strings.Join(now.lines, "\n")))
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestCountsLeavesAndEndsWithTheCounts(t *testing.T) {
	out, failed := reportOf(t,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"run","Package":"p","Test":"TestA/one"}`,
		`{"Action":"run","Package":"p","Test":"TestA/two"}`,
		`{"Action":"pass","Package":"p","Test":"TestA/one"}`,
		`{"Action":"pass","Package":"p","Test":"TestA/two"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"pass","Package":"p","Elapsed":1.5}`,
	)
	assert.False(t, failed)
	assert.Equal(t, "2 passed, 0 failed, 0 skipped", lastLine(out))
	assert.Contains(t, out, "ok    p ")
}

func TestShowsTheOutputOfWhatFailedAloneAndCountsItOnce(t *testing.T) {
	out, failed := reportOf(t,
		`{"Action":"run","Package":"p","Test":"TestGood"}`,
		`{"Action":"output","Package":"p","Test":"TestGood","Output":"quiet\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestGood"}`,
		`{"Action":"run","Package":"p","Test":"TestBad"}`,
		`{"Action":"run","Package":"p","Test":"TestBad/sub"}`,
		`{"Action":"output","Package":"p","Test":"TestBad/sub","Output":"loud\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestBad/sub"}`,
		`{"Action":"fail","Package":"p","Test":"TestBad"}`,
		`{"Action":"fail","Package":"p"}`,
	)
	assert.True(t, failed)
	assert.Equal(t, "1 passed, 1 failed, 0 skipped", lastLine(out))
	assert.Contains(t, out, "loud")
	assert.NotContains(t, out, "quiet")
	assert.Contains(t, out, "  p TestBad/sub\n")
}

func TestListsSkippedTestsUnderTheirReason(t *testing.T) {
	out, failed := reportOf(t,
		`{"Action":"pass","Package":"p","Test":"TestGood"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: no Docker engine: refused\n"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:9: no Docker engine: refused\n"}`,
		`{"Action":"skip","Package":"q","Test":"TestB"}`,
		`{"Action":"skip","Package":"q","Test":"TestC"}`,
		`{"Action":"skip","Package":"r"}`,
	)
	assert.False(t, failed)
	assert.Contains(t, out, "Skipped (2): no Docker engine: refused\n  p TestA\n  q TestB\n")
	assert.Contains(t, out, "Skipped (1): no reason given\n  q TestC\n")
	assert.Equal(t, "1 passed, 0 failed, 3 skipped", lastLine(out))
}

func TestAPackageThatDoesNotBuildIsOneFailure(t *testing.T) {
	out, failed := reportOf(t,
		`{"Action":"build-output","ImportPath":"p","Output":"p.go:1: no\n"}`,
		`{"Action":"build-fail","ImportPath":"p"}`,
		`{"Action":"fail","Package":"p","FailedBuild":"p"}`,
		`{"Action":"pass","Package":"q","Test":"TestGood"}`,
	)
	assert.True(t, failed)
	assert.Contains(t, out, "p.go:1: no")
	assert.Equal(t, "1 passed, 1 failed, 0 skipped", lastLine(out))
}

func TestAPackageThatDiesShowsWhatItPrintedLast(t *testing.T) {
	out, failed := reportOf(t,
		`{"Action":"run","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: test timed out\n"}`,
		`{"Action":"fail","Package":"p"}`,
	)
	assert.True(t, failed)
	assert.Contains(t, out, "panic: test timed out")
	assert.Equal(t, "0 passed, 1 failed, 0 skipped", lastLine(out))
}

func TestNothingRunIsAFailure(t *testing.T) {
	out, failed := reportOf(t, "go: no such module")
	assert.True(t, failed)
	assert.Contains(t, out, "go: no such module")
	assert.Equal(t, "0 passed, 0 failed, 0 skipped", lastLine(out))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"Action":"fail","Package":"p","Test":"a/b"}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		r := newReport(&out)
		if r.read(bytes.NewReader(input)) == nil {
			r.worthAnother(5)
			r.finish()
		}
	})
}
