package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rouse-dev/rouse/workload"
)

func TestSpanHasTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second:                    "0s",
		1900 * time.Millisecond:         "1s",
		119 * time.Second:               "119s",
		2 * time.Minute:                 "2m",
		59*time.Minute + 59*time.Second: "59m",
		5*time.Hour + 4*time.Minute:     "5h04m",
		47*time.Hour + 59*time.Minute:   "47h59m",
		48 * time.Hour:                  "2d",
	} {
		assert.Equal(t, want, span(d))
	}
}

func TestPrintableLeavesNothingThatActsOnATerminal(t *testing.T) {
	assert.Equal(t, "a b [2Jc é", printable("a\tb \x1b[2Jc\n\r\x00\u009b\u202e é"))
	assert.Equal(t, "\x1b[31mred\x1b[0m", printableLog("\x1b[31mred"))
	assert.Equal(t, "[2Jplain", printableLog("\x1b[2Jplain\a"))
}

func TestTableAlignsByCharactersAndPaintsAfterwards(t *testing.T) {
	var b bytes.Buffer
	rows := [][]string{{"NAME", "B"}, {"éé", "x"}}
	require.NoError(t, writeTable(&b, rows, func(row, column int, cell string) string {
		if row == 1 && column == 0 {
			return color(phaseColor(workload.Ready), cell)
		}
		return cell
	}))
	assert.Equal(t, "NAME  B\n\x1b[32méé\x1b[0m    x\n", b.String())
}

func TestColorsAreForTerminalsThatWantThem(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a device, as a terminal is
	require.NoError(t, err)
	defer null.Close()
	assert.True(t, (&globals{}).colored(null))
	assert.False(t, (&globals{}).colored(&bytes.Buffer{}))
	assert.False(t, (&globals{noColor: true}).colored(null))
	t.Setenv("NO_COLOR", "1")
	assert.False(t, (&globals{}).colored(null))
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "dumb")
	assert.False(t, (&globals{}).colored(null))
}

// YAML must be read back as the value that JSON has, whatever is in it.
func TestYAMLIsReadBackAsTheJSON(t *testing.T) {
	v := map[string]any{
		"text":   []any{"", "true", "null", "~", "1", "1e3", "0x10", "2026-05-01", "a: b", "- x", "# no", "é\u2028\x7f\x00\x1b", "two\nlines\n", "'\"", " space "},
		"number": 1.5, "large": 12345678901234, "yes": true, "none": nil, "empty": map[string]any{}, "list": []any{},
		"yes: no": map[string]any{"deep": []any{[]any{"x"}}},
	}
	var b bytes.Buffer
	require.NoError(t, writeYAML(&b, v))
	var back any
	require.NoError(t, yaml.Unmarshal(b.Bytes(), &back), b.String())
	want, err := json.Marshal(v)
	require.NoError(t, err)
	got, err := json.Marshal(back)
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
}
