// Package http1 is the HTTP/1.1 of a load generator: requests that are
// written once and sent many times, and a reader of answers that takes bytes
// as they come and allocates nothing for a plain one.
//
// It owns the bytes; it opens no socket and knows no clock.
//
// Guarantees: an answer is complete only when its framing says so
// (Content-Length, chunked, or a status without a body); what could be read
// in two ways is an error, never a guess. So an answer that was cut off is
// always seen as one.
package http1

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// IDLength is the length of a request's id.
const IDLength = 16

// An ID is 16 hexadecimal digits that no other request of a run has.
type ID [IDLength]byte

// NewID writes a number down.
func NewID(n uint64) ID {
	var id ID
	const digits = "0123456789abcdef"
	for i := range id {
		id[i] = digits[n>>(60-4*i)&15]
	}
	return id
}

// A Request is what to ask for. Each is sent with an X-Request-ID.
type Request struct {
	// Method is GET if empty, POST if there is a Body.
	Method string
	// Path with the query; "/" if empty.
	Path string
	Host string
	// Header has "Name: value" lines.
	Header []string
	// Body is sent with its Content-Length. Where it is as long as an id, it
	// begins with the request's id instead of its own first bytes.
	Body []byte
	// Close asks the server to close the connection after its answer.
	Close bool
}

// bodyInHead is how much of a body is written together with the head; the
// rest is the same memory for all requests.
const bodyInHead = 4096

// A Template is a request but for its id. It is safe for concurrent use.
type Template struct {
	Request Request
	head    []byte
	idAt    int
	bodyAt  int // of the id in the body; 0 for none
	rest    []byte
}

// NewTemplate writes a request down. Nothing in it may hold a control byte,
// and no header may be one that frames the message.
func NewTemplate(r Request) (*Template, error) {
	r = r.filled()
	if err := r.check(); err != nil {
		return nil, err
	}
	t := &Template{Request: r}
	w := func(parts ...string) { t.head = append(t.head, strings.Join(parts, "")...) }
	w(r.Method, " ", r.Path, " HTTP/1.1\r\nHost: ", r.Host, "\r\nX-Request-ID: ")
	t.idAt = len(t.head)
	w(strings.Repeat("0", IDLength), "\r\n")
	for _, line := range r.Header {
		w(line, "\r\n")
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" || r.Method == "PATCH" {
		w("Content-Length: ", strconv.Itoa(len(r.Body)), "\r\n")
	}
	if r.Close {
		w("Connection: close\r\n")
	}
	w("\r\n")
	if len(r.Body) >= IDLength {
		t.bodyAt = len(t.head)
	}
	cut := min(len(r.Body), bodyInHead)
	t.head = append(t.head, r.Body[:cut]...)
	t.rest = r.Body[cut:]
	return t, nil
}

// Append adds the request's bytes but for Rest.
func (t *Template) Append(b []byte, id ID) []byte {
	start := len(b)
	b = append(b, t.head...)
	copy(b[start+t.idAt:], id[:])
	if t.bodyAt > 0 {
		copy(b[start+t.bodyAt:], id[:])
	}
	return b
}

// Rest is to be sent after what Append gave.
func (t *Template) Rest() []byte { return t.rest }

func (r Request) filled() Request {
	if r.Method == "" {
		r.Method = "GET"
		if len(r.Body) > 0 {
			r.Method = "POST"
		}
	}
	if r.Path == "" {
		r.Path = "/"
	}
	return r
}

func (r Request) check() error {
	switch {
	case !isToken(r.Method):
		return fmt.Errorf("method %q: not a token", r.Method)
	case r.Method == "CONNECT":
		return errors.New("method CONNECT: has no answer with a length")
	case r.Host == "" || strings.ContainsFunc(r.Host, notVisible):
		return fmt.Errorf("host %q: want visible characters", r.Host)
	case r.Path[0] != '/' || strings.ContainsFunc(r.Path, notVisible):
		return fmt.Errorf("path %q: want a slash and visible characters", r.Path)
	}
	for _, line := range r.Header {
		name, value, found := strings.Cut(line, ":")
		if !found || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("header %q: want Name: value", line)
		}
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding", "connection", "host", "x-request-id", "expect", "upgrade":
			return fmt.Errorf("header %q: is not for the caller to set", line)
		}
	}
	return nil
}

func notVisible(r rune) bool { return r <= ' ' || r == 0x7f }

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

func isToken[T string | []byte](text T) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return len(text) > 0
}
