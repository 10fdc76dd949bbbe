package router

import (
	"encoding/json"
	"net/http"
	"net/url"
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

func TestALongValueIsCutBetweenCharacters(t *testing.T) {
	assert.Equal(t, strings.Repeat("ä", longestValue/2), shortened(strings.Repeat("ä", longestValue)))
	assert.Equal(t, "x"+strings.Repeat("ä", longestValue/2-1), shortened("x"+strings.Repeat("ä", longestValue)))
	assert.Len(t, shortened(strings.Repeat("\x80", 10<<10)), longestValue-utf8.UTFMax, "what is no character is cut too")
	exact := strings.Repeat("x", longestValue)
	assert.Equal(t, exact, shortened(exact))
	for _, format := range []LogFormat{LogJSON, LogLogfmt, LogCLF} {
		line := lineOf(format, "GET", "wiki.test", strings.Repeat("\x00", 10<<10), strings.Repeat("\"", 10<<10), strings.Repeat("\n", 10<<10))
		assert.Less(t, len(line), 20<<10, format)
	}
}

// lineOf is the line of a request, as the access log has it.
func lineOf(format LogFormat, method, host, path, agent, referer string) string {
	x := &exchange{}
	x.req = &http.Request{
		Method: method, Host: host, URL: &url.URL{Path: path}, Proto: "HTTP/1.1",
		Header: http.Header{"User-Agent": {agent}, "Referer": {referer}},
	}
	x.traceparent, x.requestID, x.client, x.replica = "00-"+strings.Repeat("0", 32), referer, "127.0.0.1", agent
	return string(x.appendLog(nil, format))
}

func TestALineAllocatesNothing(t *testing.T) {
	x := &exchange{}
	x.req = &http.Request{Method: "GET", Host: "wiki.test", URL: &url.URL{Path: "/a b"}, Proto: "HTTP/1.1", Header: http.Header{"User-Agent": {"curl \"8\""}}}
	x.traceparent, x.client = "00-"+strings.Repeat("0", 32), "127.0.0.1"
	for _, format := range []LogFormat{LogJSON, LogLogfmt, LogCLF} {
		log := newAccessLog(AccessLog{To: &sink{}, Format: format, Percent: 50})
		log.lines = make([]byte, 0, logLimit)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			log.takes(true)
			x.line = x.appendLog(x.line[:0], format)
			log.write(x.line)
		}), format)
	}
}

// combined is what a reader of the Combined Log Format takes a line apart with.
var combined = regexp.MustCompile(`^[^ \n]+ - - \[[^\]"\n]+\] "[^"\n]*" \d+ \d+ "[^"\n]*" "[^"\n]*" \S+ \w+ [\d.]+ [\d.]+ [\d.]+\n$`)

// pair is one of logfmt.
var pair = regexp.MustCompile(`^[a-z_]+=("([^"\\\n]|\\.)*"|[^ "=\n]*)[ \n]`)

// A request is one line with its own fields, whatever is in it.
func FuzzLogLine(f *testing.F) {
	f.Add("GET", "wiki.test", "/", "curl/8", "-")
	f.Add("G\"T", "a b", "/\n127.0.0.1 - -", "\x00\x1b[2J\xff", "\\\" 200 0")
	f.Add("", "", "", "status=200 outcome=warm", "\",\"status\":200,\"x\":\"")
	f.Fuzz(func(t *testing.T, method, host, path, agent, referer string) {
		line := lineOf(LogJSON, method, host, path, agent, referer)
		var got struct{ Method, Host, Path, Outcome string }
		if err := json.Unmarshal([]byte(line), &got); err != nil || strings.Count(line, "\n") != 1 {
			t.Fatalf("%v: %s", err, line)
		}
		if utf8.ValidString(path) && got.Path != shortened(path) || got.Outcome != outcomeWarm.String() {
			t.Fatalf("path %q became %q in %s", path, got.Path, line)
		}
		fields := 0
		for rest := lineOf(LogLogfmt, method, host, path, agent, referer); rest != ""; fields++ {
			m := pair.FindString(rest)
			if m == "" {
				t.Fatalf("no pair at %q", rest)
			}
			rest = rest[len(m):]
		}
		if want := strings.Count(lineOf(LogLogfmt, "GET", "h", "/", "a", "b"), "="); fields != want {
			t.Fatalf("%d pairs in place of %d", fields, want)
		}
		if line := lineOf(LogCLF, method, host, path, agent, referer); !combined.MatchString(line) {
			t.Fatalf("not combined: %q", line)
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
	f.Fuzz(func(t *testing.T, said string) {
		s := shortened(said)
		clf := string(append(appendCLF([]byte{'"'}, said), '"'))
		if !quotedCLF.MatchString(clf) {
			t.Fatalf("%q became %s", s, clf)
		}
		if back, err := strconv.Unquote(clf); s != "" && (err != nil || back != s) {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
		line := string(newLogLine(nil, LogLogfmt).text("a", said).text("b", "c").end())
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
