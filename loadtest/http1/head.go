package http1

import (
	"bytes"
	"net/http"
)

// framing is what a head says about where its body ends.
type framing struct {
	length  int64 // -1: not said
	chunked bool
	close   bool
}

// readHead reads the status line and the headers, with the empty line.
func (a *Answer) readHead(head []byte) error {
	line, head, _ := bytes.Cut(head, []byte("\r\n"))
	status, err := statusOf(line)
	if err != nil {
		return err
	}
	f := framing{length: -1}
	for len(head) > 2 {
		line, head, _ = bytes.Cut(head, []byte("\r\n"))
		name, value, err := field(line)
		if err == nil {
			err = a.note(&f, name, value)
		}
		if err != nil {
			return err
		}
	}
	a.Status, a.Close = status, f.close
	return a.frame(f)
}

// statusOf reads "HTTP/1.1 200 OK". Bytes of a text may be any but controls.
func statusOf(line []byte) (int, error) {
	const start = "HTTP/1.1 "
	if len(line) < len(start)+3 || string(line[:len(start)]) != start ||
		len(line) > len(start)+3 && line[len(start)+3] != ' ' {
		return 0, malformed("status line %q", line)
	}
	code := line[len(start) : len(start)+3]
	if n, ok := decimal(code); ok && n >= 100 && !hasControl(line) {
		return int(n), nil
	}
	return 0, malformed("status line %q", line)
}

func field(line []byte) (name, value []byte, err error) {
	name, value, found := bytes.Cut(line, []byte(":"))
	if !found || !isToken(name) || hasControl(value) {
		return nil, nil, malformed("header %q", line)
	}
	return name, bytes.Trim(value, " \t"), nil
}

// note keeps what the load looks at.
func (a *Answer) note(f *framing, name, value []byte) error {
	switch {
	case is(name, "Content-Length"):
		n, ok := decimal(value)
		if !ok || f.length >= 0 {
			return malformed("Content-Length %q", value)
		}
		f.length = n
	case is(name, "Transfer-Encoding"):
		if f.chunked || !is(value, "chunked") {
			return malformed("Transfer-Encoding %q", value)
		}
		f.chunked = true
	case is(name, "Connection"):
		f.close = f.close || has(value, "close")
	case is(name, "X-Request-ID"):
		a.RequestID = append(a.RequestID[:0], value...)
	case is(name, "Server-Timing"):
		if len(a.ServerTiming) > 0 {
			a.ServerTiming = append(a.ServerTiming, ',')
		}
		a.ServerTiming = append(a.ServerTiming, value...)
	}
	return nil
}

// frame decides what follows the head (RFC 9112, section 6.3, without the
// body that ends with the connection: of such a one nobody can tell whether
// it is complete).
func (a *Answer) frame(f framing) error {
	switch {
	case f.chunked && f.length >= 0:
		return malformed("both Content-Length and Transfer-Encoding")
	case a.Status == http.StatusSwitchingProtocols:
		return malformed("status 101 without a request for it")
	case a.Status < http.StatusOK:
		a.RequestID, a.ServerTiming = a.RequestID[:0], a.ServerTiming[:0]
		return nil // informational: the head of the answer itself follows
	case a.noBody || a.Status == http.StatusNoContent || a.Status == http.StatusNotModified || f.length == 0:
		a.step = done
	case f.chunked:
		a.step = readChunkSize
	case f.length > 0:
		a.step, a.rest = readBody, f.length
	default:
		return malformed("neither Content-Length nor chunked")
	}
	return nil
}

func is(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

// has tells whether a list separated by commas has the word.
func has(list []byte, word string) bool {
	for part := range bytes.SplitSeq(list, []byte(",")) {
		if is(bytes.Trim(part, " \t"), word) {
			return true
		}
	}
	return false
}

func decimal(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, 0 < len(text) && len(text) <= 18
}

func hasControl(text []byte) bool {
	for _, c := range text {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}
