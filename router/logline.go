package router

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// A logLine is written by hand: encoding/json and slog would cost more than
// the rest of the request's bookkeeping together.
type logLine struct {
	b     []byte // with what was there before
	begun int    // where the line begins in it
	json  bool   // else logfmt
}

// newLogLine begins a line behind b.
func newLogLine(b []byte, format LogFormat) logLine {
	l := logLine{b, len(b), format == LogJSON}
	if l.json {
		l.b = append(l.b, '{')
	}
	l.begun = len(l.b)
	return l
}

// end gives what there was and the line.
func (l logLine) end() []byte {
	if l.json {
		l.b = append(l.b, '}')
	}
	return append(l.b, '\n')
}

func (l logLine) key(name string) logLine {
	first := len(l.b) == l.begun
	if !l.json {
		if !first {
			l.b = append(l.b, ' ')
		}
		l.b = append(append(l.b, name...), '=')
		return l
	}
	if !first {
		l.b = append(l.b, ',')
	}
	l.b = append(append(append(l.b, '"'), name...), `":`...)
	return l
}

func (l logLine) text(name, value string) logLine {
	l, value = l.key(name), shortened(value)
	if l.json || !bare(value) {
		l.b = appendJSON(l.b, value)
	} else {
		l.b = append(l.b, value...)
	}
	return l
}

// longestValue bounds one value of what a client said, in bytes: the room for
// lines that wait is for many requests, not for a few long headers.
const longestValue = 1 << 10

// shortened leaves as much of a value, and no part of a character.
func shortened(value string) string {
	if len(value) <= longestValue {
		return value
	}
	end := longestValue
	for end > longestValue-utf8.UTFMax && !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end]
}

// bare reports a value that logfmt need not quote.
func bare(value string) bool {
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\' {
			return false
		}
	}
	return true
}

func (l logLine) number(name string, n int64) logLine {
	l = l.key(name)
	l.b = strconv.AppendInt(l.b, n, 10)
	return l
}

func (l logLine) flag(name string, v bool) logLine {
	l = l.key(name)
	l.b = strconv.AppendBool(l.b, v)
	return l
}

func (l logLine) seconds(name string, d time.Duration) logLine {
	l = l.key(name)
	l.b = appendSeconds(l.b, d)
	return l
}

func appendSeconds(b []byte, d time.Duration) []byte {
	return strconv.AppendFloat(b, d.Seconds(), 'f', 6, 64)
}

func (l logLine) time(name string, t time.Time) logLine {
	l = l.key(name)
	if l.json {
		l.b = append(l.b, '"')
	}
	l.b = t.UTC().AppendFormat(l.b, "2006-01-02T15:04:05.000000Z")
	if l.json {
		l.b = append(l.b, '"')
	}
	return l
}

const hexDigits = "0123456789abcdef"

// appendJSON writes a JSON string. What is not UTF-8 becomes the replacement
// character.
func appendJSON(b []byte, s string) []byte {
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}

// appendCLF writes what the client said as Apache does: what could be taken for
// the end of a value or a line, and all that is not ASCII, as \xHH. Nothing is
// a dash.
func appendCLF(b []byte, s string) []byte {
	if s == "" {
		return append(b, '-')
	}
	s = shortened(s)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		} else {
			b = append(b, c)
		}
	}
	return b
}
