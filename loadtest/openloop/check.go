//go:build linux

package openloop

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

// Echo tells where the request's id must come back, as a proof that the
// answer is this request's.
type Echo int

// The places.
const (
	Nowhere  Echo = iota // it is not looked for
	InBody               // anywhere in the body
	AsBody               // the body is the request's own, which begins with the id
	InHeader             // the header X-Request-ID
)

// Expect is what an answer must be. The zero value wants a 200.
type Expect struct {
	// Status; 0 is 200.
	Status int
	// Length of the body; 0 is any.
	Length int64
	Echo   Echo
}

func (e Expect) check(t *http1.Template) error {
	switch {
	case e.Echo == AsBody && len(t.Request.Body) < http1.IDLength:
		return errors.New("the request's body is too short to be told from another's")
	case t.Request.Method == http.MethodHead && (e.Echo == InBody || e.Echo == AsBody || e.Length > 0):
		return errors.New("the answer to a HEAD has no body to check")
	}
	return nil
}

// A check reads one answer's body and then judges it.
type check struct {
	target *target
	id     http1.ID
	length int64
	found  bool
	differ int64                // where the body first differs from the request's; -1 not yet
	carry  [http1.IDLength]byte // the last bytes before the piece to come
	window [2 * http1.IDLength]byte
}

func (c *check) reset(t *target, id http1.ID) { *c = check{target: t, id: id, differ: -1} }

// Write takes a piece of the body.
func (c *check) Write(p []byte) (int, error) {
	switch c.target.expect.Echo {
	case InBody:
		c.search(p)
	case AsBody:
		c.compare(p)
	}
	c.length += int64(len(p))
	return len(p), nil
}

// search looks for the id in the piece, and across its begin.
func (c *check) search(p []byte) {
	if c.found {
		return
	}
	if c.length > 0 {
		n := copy(c.window[:], c.carry[:])
		n += copy(c.window[n:], p)
		c.found = bytes.Contains(c.window[:n], c.id[:])
	}
	c.found = c.found || bytes.Contains(p, c.id[:])
	if len(p) >= len(c.carry) {
		copy(c.carry[:], p[len(p)-len(c.carry):])
		return
	}
	copy(c.carry[:], c.carry[len(p):])
	copy(c.carry[len(c.carry)-len(p):], p)
}

// compare notes where the piece first differs from what was sent.
func (c *check) compare(p []byte) {
	if c.differ >= 0 {
		return
	}
	at := c.length
	if at < http1.IDLength {
		n := min(len(p), http1.IDLength-int(at))
		if !bytes.Equal(p[:n], c.id[at:int(at)+n]) {
			c.differ = at
			return
		}
		p, at = p[n:], at+int64(n)
	}
	body := c.target.template.Request.Body
	rest := body[min(at, int64(len(body))):]
	if !bytes.HasPrefix(rest, p) {
		c.differ = max(at, http1.IDLength)
	}
}

// judge a complete answer: its status, and what it says the id was.
func (c *check) judge(status int, header []byte) Outcome {
	e := c.target.expect
	want, length := e.Status, e.Length
	if want == 0 {
		want = http.StatusOK
	}
	if e.Echo == AsBody {
		length = int64(len(c.target.template.Request.Body))
	}
	switch {
	case status != want:
		return WrongStatus
	case length > 0 && c.length != length:
		return WrongLength
	case e.Echo == InBody && !c.found, e.Echo == InHeader && !bytes.Equal(header, c.id[:]):
		return WrongID
	case e.Echo == AsBody && c.differ >= 0 && c.differ < http1.IDLength:
		return WrongID
	case e.Echo == AsBody && c.differ >= 0:
		return WrongBody
	}
	return OK
}
