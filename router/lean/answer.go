package lean

import (
	"bytes"
	"net/http"
	"strings"
)

// An answer is the head of a plain one, read in place: a final one with a
// body whose length is said, of a connection that stays.
type answer struct {
	status int
	length int64
	size   int // of the head
	fields []byte
	// Lines that are not passed on, by their places in fields; in order.
	dropped [maxDropped]span
	drops   int
	dated   bool
}

type span struct{ from, to int }

// maxDropped is the most lines of a plain answer that are not passed on.
const maxDropped = 4

// read reads an answer from the beginning of b. drop says which fields, by
// their canonical names, are not passed on.
func (a *answer) read(b []byte, drop func(name string) bool) verdict {
	*a = answer{length: -1}
	line, size, v := cutLine(b)
	if v != plain {
		return v
	}
	if !a.readStatusLine(line) {
		return odd
	}
	begin := size
	for {
		line, n, v := cutLine(b[size:])
		if v != plain {
			return v
		}
		if len(line) == 0 {
			a.fields, a.size = b[begin:size], size+n
			break
		}
		name, value, ok := cutField(line)
		if !ok {
			return odd
		}
		switch name {
		case "Content-Length":
			if a.length >= 0 {
				return odd
			}
			if a.length, ok = readLength(value); !ok {
				return odd
			}
		case "Connection":
			if !strings.EqualFold(value, "keep-alive") {
				return odd
			}
		case "Transfer-Encoding", "Upgrade", "Trailer", "Te":
			return odd
		case "Date":
			a.dated = true
		}
		if drop(name) {
			if a.drops == maxDropped {
				return odd
			}
			a.dropped[a.drops] = span{size - begin, size - begin + n}
			a.drops++
		}
		size += n
	}
	if a.length < 0 {
		return odd
	}
	return plain
}

// readStatusLine takes the final answers that have a body.
func (a *answer) readStatusLine(line []byte) bool {
	digits, ok := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !ok || len(digits) < 3 || len(digits) > 3 && digits[3] != ' ' {
		return false
	}
	for _, c := range digits[:3] {
		if c < '0' || c > '9' {
			return false
		}
		a.status = a.status*10 + int(c-'0')
	}
	return a.status >= 200 && bodyAllowed(a.status)
}

// appendFields writes the lines that are passed on.
func (a *answer) appendFields(b []byte) []byte {
	from := 0
	for _, d := range a.dropped[:a.drops] {
		b = append(b, a.fields[from:d.from]...)
		from = d.to
	}
	return append(b, a.fields[from:]...)
}

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}
