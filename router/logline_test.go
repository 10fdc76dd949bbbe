package router

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func someLine(format LogFormat) string {
	return string(newLogLine(nil, format).
		text("a", "x\"\\\n\x00\x7f\u2028ä\xff").text("e", "").text("p", "/plain").number("n", -3).flag("f", true).
		seconds("d", 1500*time.Millisecond).time("t", time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC)).end())
}

func TestLogLineIsJSON(t *testing.T) {
	var got map[string]any
	line := someLine(LogJSON)
	require.NoError(t, json.Unmarshal([]byte(line), &got), line)
	assert.True(t, strings.HasSuffix(line, "}\n"))
	assert.Equal(t, map[string]any{"a": "x\"\\\n\x00\x7f\u2028ä\ufffd", "e": "", "p": "/plain", "n": -3.0, "f": true, "d": 1.5, "t": "2024-05-06T07:08:09.123456Z"}, got)
}

func TestLogLineIsLogfmt(t *testing.T) {
	assert.Equal(t, `a="x\"\\\u000a\u0000\u007f`+"\u2028ä\ufffd"+`" e= p=/plain n=-3 f=true d=1.500000 t=2024-05-06T07:08:09.123456Z`+"\n", someLine(LogLogfmt))
}

func TestDroppedLinesAreToldInTheFormOfTheLog(t *testing.T) {
	for format, want := range map[LogFormat]string{LogJSON: "{\"dropped\":1}\n", LogLogfmt: "dropped=1\n", LogCLF: "dropped=1\n"} {
		log := newAccessLog(AccessLog{To: &sink{}, Format: format})
		log.write(make([]byte, logLimit+1))
		assert.Equal(t, want, string(log.take(nil)))
	}
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\"\\\xff\u2029")
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendJSON(nil, s), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

// quotedCLF is a value between quotes, as what reads such logs takes it.
var quotedCLF = regexp.MustCompile(`^"([^"\\]|\\x[0-9a-f]{2})*"$`)

// Whatever a client says, it neither ends its value nor its line.
func FuzzLogValue(f *testing.F) {
	for _, s := range []string{"", "plain", "a b=c", "\" 200 0\n127.0.0.1 - -", "\\", "ä\xff\u0085"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clf := string(append(appendCLF([]byte{'"'}, s), '"'))
		if !quotedCLF.MatchString(clf) {
			t.Fatalf("%q became %s", s, clf)
		}
		if back, err := strconv.Unquote(clf); s != "" && (err != nil || back != s) {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
		line := string(newLogLine(nil, LogLogfmt).text("a", s).text("b", "c").end())
		value, ok := strings.CutSuffix(strings.TrimPrefix(line, "a="), " b=c\n")
		var back string
		switch {
		case !ok:
			t.Fatalf("%q became %s", s, line)
		case !strings.HasPrefix(value, `"`):
			if value != s || strings.ContainsAny(value, " =\"\n") {
				t.Fatalf("%q became %s", s, line)
			}
		case json.Unmarshal([]byte(value), &back) != nil || utf8.ValidString(s) && back != s || strings.Contains(value, "\n"):
			t.Fatalf("%q became %s", s, line)
		}
	})
}
