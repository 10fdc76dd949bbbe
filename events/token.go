package events

import (
	"fmt"
	"strings"
)

// errToken is wrapped by the errors of decodeToken.
var errToken = fmt.Errorf("%w subject token", ErrMalformed)

const hexDigits = "0123456789ABCDEF"

// plainByte reports the bytes that stand for themselves in a token: those
// that subjects, keys and consumer names all take.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// encodeToken makes one subject token of any name: plain bytes as they are,
// every other as = and two hex digits. The empty name is a lone "=". Two
// names never share a token.
func encodeToken(name string) string {
	if name == "" {
		return "="
	}
	odd := 0
	for i := range len(name) {
		if !plainByte(name[i]) {
			odd++
		}
	}
	if odd == 0 {
		return name
	}
	var b strings.Builder
	b.Grow(len(name) + 2*odd)
	for i := range len(name) {
		if c := name[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'=', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// decodeToken undoes encodeToken, and refuses whatever it never makes.
func decodeToken(token string) (string, error) {
	if token == "=" {
		return "", nil
	}
	if token == "" {
		return "", fmt.Errorf("%w: empty", errToken)
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '=' {
			var ok bool
			if c, ok = unhex(token[i:]); !ok {
				return "", fmt.Errorf("%w: %q", errToken, token)
			}
			i += 2
		} else if !plainByte(c) {
			return "", fmt.Errorf("%w: %q", errToken, token)
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

// unhex reads =XX, where XX is not a byte that stands for itself.
func unhex(s string) (byte, bool) {
	if len(s) < 3 {
		return 0, false
	}
	high, low := strings.IndexByte(hexDigits, s[1]), strings.IndexByte(hexDigits, s[2])
	if high < 0 || low < 0 {
		return 0, false
	}
	c := byte(high<<4 | low)
	return c, !plainByte(c)
}
