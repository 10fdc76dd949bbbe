package http1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxHead bounds an answer's status line and headers, and its trailers.
const MaxHead = 32 << 10

// ErrMalformed is an answer that is not HTTP/1.1 as written down, or that
// could be read in two ways.
var ErrMalformed = errors.New("malformed answer")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// step is what an Answer reads next.
type step int

const (
	readHead step = iota
	readBody
	readChunkSize
	readChunk
	readChunkEnd
	readTrailer
	done
)

// An Answer reads one answer. Its zero value reads that of a GET and keeps
// no body.
type Answer struct {
	// Status, and the headers that a load looks at, once HeadRead is true.
	Status int
	// Close tells that the server closes the connection after it.
	Close bool
	// RequestID is the header X-Request-ID; empty for none. It is valid
	// until Reset.
	RequestID []byte
	// ServerTiming is the value of that header; of several, joined by
	// commas. It is valid until Reset.
	ServerTiming []byte
	// Length counts the bytes of the body so far.
	Length int64

	// Body is given each piece of the body as it comes; nil drops them.
	Body io.Writer

	step   step
	noBody bool   // the answer to a HEAD
	head   []byte // what came of a head, a trailer or a chunk's size so far
	rest   int64  // of the body or the chunk
}

// Reset makes it ready for the next answer; noBody for that to a HEAD.
func (a *Answer) Reset(noBody bool) {
	*a = Answer{
		RequestID: a.RequestID[:0], ServerTiming: a.ServerTiming[:0],
		Body: a.Body, head: a.head[:0], noBody: noBody,
	}
}

// Begun tells whether a byte of it came.
func (a *Answer) Begun() bool { return a.step != readHead || len(a.head) > 0 || a.Status != 0 }

// Done tells whether it is complete.
func (a *Answer) Done() bool { return a.step == done }

// Feed reads as much of b as is of this answer, and tells how much that was:
// all of it as long as the answer is not Done. Errors are ErrMalformed, or
// Body's own; after one, only Reset may follow.
func (a *Answer) Feed(b []byte) (n int, err error) {
	for n < len(b) && a.step != done && err == nil {
		var took int
		took, err = a.feed(b[n:])
		n += took
	}
	return n, err
}

func (a *Answer) feed(b []byte) (int, error) {
	switch a.step {
	case readHead:
		return a.gather(b, "\r\n\r\n", a.readHead)
	case readChunkSize:
		return a.gather(b, "\r\n", a.readChunkSize)
	case readChunkEnd:
		return a.gather(b, "\r\n", a.readChunkEnd)
	case readTrailer:
		return a.gather(b, "\r\n", a.readTrailer)
	default: // readBody, readChunk
		return a.take(b)
	}
}

// gather hands what comes up to the end mark to read, with the mark. Where
// all of it is in b, nothing is copied.
func (a *Answer) gather(b []byte, end string, read func([]byte) error) (int, error) {
	if len(a.head) == 0 {
		if i := bytes.Index(b, []byte(end)); i >= 0 && i <= MaxHead {
			return i + len(end), read(b[:i+len(end)])
		}
	}
	before := len(a.head)
	a.head = append(a.head, b...)
	i := bytes.Index(a.head[max(0, before-len(end)+1):], []byte(end))
	if i < 0 {
		if len(a.head) > MaxHead {
			return len(b), malformed("no end within %d bytes", MaxHead)
		}
		return len(b), nil
	}
	whole := max(0, before-len(end)+1) + i + len(end)
	if whole > MaxHead {
		return len(b), malformed("no end within %d bytes", MaxHead)
	}
	err := read(a.head[:whole])
	a.head = a.head[:0]
	return whole - before, err
}

// take passes on what is of the body.
func (a *Answer) take(b []byte) (int, error) {
	n := int(min(int64(len(b)), a.rest))
	a.rest -= int64(n)
	a.Length += int64(n)
	if a.Body != nil {
		if _, err := a.Body.Write(b[:n]); err != nil {
			return n, err
		}
	}
	switch {
	case a.rest > 0:
	case a.step == readChunk:
		a.step = readChunkEnd
	default:
		a.step = done
	}
	return n, nil
}

func (a *Answer) readChunkSize(line []byte) error {
	size, _, _ := bytes.Cut(line[:len(line)-2], []byte(";"))
	size = bytes.TrimRight(size, " \t") // "bad" white space that some send
	n, ok := hexadecimal(size)
	if !ok {
		return malformed("chunk size %q", line)
	}
	a.rest, a.step = n, readChunk
	if n == 0 {
		a.step = readTrailer
	}
	return nil
}

func (a *Answer) readChunkEnd(line []byte) error {
	a.step = readChunkSize
	if len(line) != 2 {
		return malformed("chunk is longer than its size")
	}
	return nil
}

func (a *Answer) readTrailer(line []byte) error {
	if len(line) == 2 {
		a.step = done
		return nil
	}
	_, _, err := field(line[:len(line)-2])
	return err
}

func hexadecimal(text []byte) (n int64, ok bool) {
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 + int64(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			n = n<<4 + int64(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return n, 0 < len(text) && len(text) <= 15
}
