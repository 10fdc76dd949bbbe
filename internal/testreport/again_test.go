package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func again(t *testing.T, most int, calls ...call) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	p := plan{packages: []string{"p", "q"}, flags: []string{"-race"}, args: []string{"-args", "-lean"}, again: most}
	failed, err := p.run(saying(t, calls...), &out)
	require.NoError(t, err)
	return out.String(), failed
}

const whole = "-race p q -args -lean"

func ends(action, test string) string {
	return `{"Action":"` + action + `","Package":"p","Test":"` + test + `"}`
}

func runs(test string) string { return ends("run", test) }

var unlucky = []string{
	ends("pass", "TestGood"),
	runs("TestBad"), runs("TestBad/a"), runs("TestBad/b"),
	ends("pass", "TestBad/a"),
	`{"Action":"output","Package":"p","Test":"TestBad/b","Output":"too late\n"}`,
	ends("fail", "TestBad/b"), ends("fail", "TestBad"), ends("fail", ""),
}

func TestWhatPassesAloneIsUnsteadyAndCountsOnce(t *testing.T) {
	out, failed := again(t, 1, call{whole, unlucky}, call{"-race -run ^TestBad$ p -args -lean", []string{
		runs("TestBad"), runs("TestBad/a"), runs("TestBad/b"),
		ends("pass", "TestBad/a"), ends("pass", "TestBad/b"), ends("pass", "TestBad"), ends("pass", ""),
	}})
	assert.False(t, failed)
	assert.Contains(t, out, "too late", "what it said is not hidden")
	assert.Contains(t, out, "Unsteady: failed at first, passed when run again alone:\n  p TestBad\n")
	assert.Equal(t, "3 passed, 0 failed, 0 skipped", lastLine(out))
}

func TestWhatFailsAgainFails(t *testing.T) {
	out, failed := again(t, 1, call{whole, unlucky}, call{"-race -run ^TestBad$ p -args -lean", unlucky[1:]})
	assert.True(t, failed)
	assert.NotContains(t, out, "Unsteady")
	assert.Equal(t, "2 passed, 1 failed, 0 skipped", lastLine(out))
}

func TestWhatIsNotThereTheSecondTimeFails(t *testing.T) {
	for name, second := range map[string][]string{"gone": {ends("pass", "")}, "skipped": {ends("skip", "TestBad")}} {
		out, failed := again(t, 1, call{whole, unlucky}, call{"-race -run ^TestBad$ p -args -lean", second})
		assert.True(t, failed, name)
		assert.Contains(t, lastLine(out), "1 passed, 1 failed", name)
	}
}

func TestAPackageThatDiedIsRunAgainWhole(t *testing.T) {
	out, failed := again(t, 1,
		call{whole, []string{ends("pass", "TestA"), runs("TestB"), ends("fail", "")}},
		call{"-race p -args -lean", []string{ends("pass", "TestA"), ends("pass", "TestB"), ends("pass", "")}})
	assert.False(t, failed)
	assert.Equal(t, "2 passed, 0 failed, 0 skipped", lastLine(out))
}

func TestWhatIsNoAccidentIsNotRunAgain(t *testing.T) {
	cases := map[string][]string{
		"too many":   {ends("fail", "TestA"), ends("fail", "TestB"), ends("pass", "TestC")},
		"a race":     {`{"Action":"output","Package":"p","Test":"TestA","Output":"    testing.go:1: race detected during execution of test\n"}`, ends("fail", "TestA"), ends("pass", "TestB")},
		"no program": {`{"Action":"fail","Package":"p","FailedBuild":"p"}`, ends("pass", "TestA")},
	}
	for name, lines := range cases {
		_, failed := again(t, 1, call{whole, lines})
		assert.True(t, failed, name)
	}
	_, failed := again(t, 0, call{whole, unlucky})
	assert.True(t, failed)
}

func TestWhatItIsToDoIsReadFromItsArguments(t *testing.T) {
	p, err := parse(strings.Split("-again 5 -packages ./... -race -args -lean", " "))
	require.NoError(t, err)
	assert.Equal(t, plan{packages: []string{"./..."}, flags: []string{"-race"}, args: []string{"-args", "-lean"}, again: 5}, p)
	for _, bad := range []string{"", "-packages", "-again x -packages p", "-again -1 -packages p", "-race ./..."} {
		_, err := parse(strings.Split(bad, " "))
		assert.Error(t, err, bad)
	}
}
