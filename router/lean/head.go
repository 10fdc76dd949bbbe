package lean

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"unsafe"
)

// A verdict is what reading some bytes came to.
type verdict uint8

const (
	more  verdict = iota // plain so far, and not at its end
	plain                // whole, and as plain as can be
	odd                  // anything else: net/http's to read, and to judge
)

// maxFields is the most fields of a head that is plain.
const maxFields = 64

// A head is that of a request, read in place: its strings are parts of the
// bytes that it was read from.
type head struct {
	line
	header http.Header

	values [maxFields]string
	fields int
}

// A line is what a head comes to besides its fields.
type line struct {
	method, target string
	path           string // decoded
	rawPath        string // as it came; empty: the same
	query          string
	bareQuery      bool // the target ends in "?"
	host           string
	length         int64
	close          bool // the client wants it to be the last
	pragma         bool // it may ask for a field that net/http would add
}

func (h *head) reset() {
	clear(h.header)
	clear(h.values[:h.fields])
	h.line, h.fields = line{}, 0
}

// read reads a head from the beginning of b, and gives its size. It accepts
// what every server reads in the same way, and is strict about all else: each
// line ends in CRLF and holds printable ASCII alone. It changes b in nothing
// but the case of the names of fields.
func (h *head) read(b []byte) (size int, v verdict) {
	h.reset()
	first, size, v := cutLine(b)
	if v != plain {
		return 0, v
	}
	if !h.readRequestLine(first) {
		return 0, odd
	}
	hosts, lengths := 0, 0
	for {
		line, n, v := cutLine(b[size:])
		if v != plain {
			return 0, v
		}
		size += n
		if len(line) == 0 {
			break
		}
		name, value, ok := cutField(line)
		if !ok || h.fields == maxFields {
			return 0, odd
		}
		switch name {
		case "Host":
			hosts++
			h.host = value
			continue
		case "Content-Length":
			lengths++
			if h.length, ok = readLength(value); !ok {
				return 0, odd
			}
		case "Connection":
			if h.header["Connection"] != nil || !h.readConnection(value) {
				return 0, odd
			}
		case "Transfer-Encoding", "Expect", "Upgrade", "Te", "Trailer", "Http2-Settings":
			return 0, odd
		case "Pragma":
			h.pragma = true
		}
		h.add(name, value)
	}
	if hosts != 1 || lengths > 1 || !plainHost(h.host) {
		return 0, odd
	}
	if h.pragma && h.header["Cache-Control"] == nil {
		return 0, odd
	}
	return size, plain
}

func (h *head) add(name, value string) {
	h.values[h.fields] = value
	one := h.values[h.fields : h.fields+1 : h.fields+1]
	h.fields++
	if before, ok := h.header[name]; ok {
		one = append(before, value)
	}
	h.header[name] = one
}

const protocol = " HTTP/1.1"

func (h *head) readRequestLine(line []byte) bool {
	space := bytes.IndexByte(line, ' ')
	end := len(line) - len(protocol)
	if space <= 0 || end <= space+1 || string(line[end:]) != protocol {
		return false
	}
	for _, c := range line[:space] {
		if class[c]&token == 0 {
			return false
		}
	}
	h.method, h.target = text(line[:space]), text(line[space+1:end])
	return h.method != http.MethodConnect && h.readTarget()
}

// readTarget reads a target of the usual form, whose path is written as
// net/url would write it.
func (h *head) readTarget() bool {
	t := h.target
	if t[0] != '/' || len(t) > 1 && t[1] == '/' {
		return false
	}
	end, escaped := len(t), false
	for i := range len(t) {
		c := t[i]
		if c == '?' {
			end = i
			break
		}
		if class[c]&inPath == 0 {
			return false
		}
		escaped = escaped || c == '%'
	}
	h.path = t[:end]
	if escaped {
		decoded, err := url.PathUnescape(h.path)
		if err != nil {
			return false
		}
		h.path, h.rawPath = decoded, h.path
	}
	if end == len(t) {
		return true
	}
	h.query = t[end+1:]
	h.bareQuery = h.query == ""
	return strings.IndexByte(h.query, ' ') < 0 && strings.IndexByte(h.query, '#') < 0
}

func (h *head) readConnection(value string) bool {
	h.close = strings.EqualFold(value, "close")
	return h.close || strings.EqualFold(value, "keep-alive")
}

// plainHost reports the host of a name or an address, with or without a port.
func plainHost(host string) bool {
	for i := range len(host) {
		if class[host[i]]&inHost == 0 {
			return false
		}
	}
	return host != ""
}

// maxLengthDigits keeps a length within an int64.
const maxLengthDigits = 18

func readLength(digits string) (n int64, ok bool) {
	if digits == "" || len(digits) > maxLengthDigits {
		return 0, false
	}
	for i := range len(digits) {
		c := digits[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// cutLine gives the first line of b without its end, and how much of b it
// is with it.
func cutLine(b []byte) (line []byte, size int, v verdict) {
	end := bytes.IndexByte(b, '\n')
	switch {
	case end > 0 && b[end-1] == '\r':
		if line = b[:end-1]; printable(line) {
			return line, end + 1, plain
		}
		return nil, 0, odd
	case end >= 0:
		return nil, 0, odd
	}
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	if printable(b) {
		return nil, 0, more
	}
	return nil, 0, odd
}

func printable(line []byte) bool {
	for _, c := range line {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// cutField reads a line of a head, and writes the name in it in its canonical
// form.
func cutField(line []byte) (name, value string, ok bool) {
	upper := true
	for i, c := range line {
		switch {
		case class[c]&token != 0:
			switch {
			case upper && 'a' <= c && c <= 'z':
				line[i] = c - ('a' - 'A')
			case !upper && 'A' <= c && c <= 'Z':
				line[i] = c + ('a' - 'A')
			}
			upper = c == '-'
		case c == ':' && i > 0:
			return text(line[:i]), text(trim(line[i+1:])), true
		default:
			return "", "", false
		}
	}
	return "", "", false
}

func trim(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// text is a string that shares its bytes with b. Nobody may keep it for longer
// than they stay as they are: that is until the end of the request, see
// Writer.Keep.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// The classes of characters: of tokens (RFC 9110, section 5.6.2), of a path
// that net/url writes as it read it, and of a host with its port.
const (
	token = 1 << iota
	inPath
	inHost
)

var class = func() (class [256]uint8) {
	set := func(chars string, bit uint8) {
		for _, c := range []byte(chars) {
			class[c] |= bit
		}
	}
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	set(letters+"!#$%&'*+-.^_`|~", token)
	set(letters+"-_.~!$&'()*+,;=:@[]/%", inPath)
	set(letters+"-_.:[]", inHost)
	return class
}()
