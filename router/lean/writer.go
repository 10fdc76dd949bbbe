package lean

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// headSize is the largest head that is plain.
	headSize = 4 << 10
	// heldSize is how much of an answer of unknown length is kept back until it
	// is known whether that is all, and of any for as long as nobody flushes it:
	// as much as net/http does.
	heldSize, writeSize = 2 << 10, 4 << 10
	// lingerTimeout bounds it where the handler does not.
	lingerTimeout = time.Second
)

// A Writer writes the answer to one request, of its own or of the server that
// Send sends the request to. One goroutine uses it at a time, until the
// handler returns.
type Writer struct {
	in    [headSize]byte
	have  int  // in it
	fresh bool // not all of it has been looked at
	kept  bool // see Keep

	c    *conn
	head head
	req  http.Request
	url  url.URL
	size int    // of the head
	here []byte // of the body, after the head
	rest int64  // of the body, not read yet

	header    http.Header
	status    int
	begun     bool  // the head is sent
	completed bool  // nothing is to be written any more
	chunked   bool  // the length is not known
	left      int64 // to be written, of the length that was said
	held      []byte
	trailers  []string // that the head announces
	last      bool     // the connection ends with the answer
	broken    bool     // the answer cannot be completed
	// clientFailed says that the client took no more.
	clientFailed bool

	sending
	deadline time.Time // of reading, once the handler is done
}

func newWriter() *Writer {
	return &Writer{head: head{header: make(http.Header, 16)}, header: http.Header{}}
}

// begin takes the request whose head has been read.
func (w *Writer) begin(c *conn, size int) {
	w.c, w.size = c, size
	h := &w.head
	w.url = url.URL{Path: h.path, RawPath: h.rawPath, RawQuery: h.query, ForceQuery: h.bareQuery}
	w.req = c.blank
	w.req.Method, w.req.URL, w.req.Header, w.req.Host = h.method, &w.url, h.header, h.host
	w.req.RequestURI, w.req.ContentLength, w.req.Close = h.target, h.length, h.close
	w.last = h.close
	w.take()
	if missing := int(w.rest); w.rest > 0 && missing <= len(w.in)-w.have {
		w.have += c.readMore(w.in[w.have : w.have+missing])
		w.take()
	}
	w.req.Body = http.NoBody
	if h.length > 0 {
		w.req.Body = (*requestBody)(w)
	}
}

// take finds what there is of the body.
func (w *Writer) take() {
	n := min(int64(w.have-w.size), w.head.length)
	w.here = w.in[w.size : w.size+int(n)]
	w.rest = w.head.length - n
}

// readMore reads what is there already.
func (c *conn) readMore(p []byte) (n int) {
	_ = c.raw.Read(func(fd uintptr) bool {
		n, _ = readSocket(fd, p) // an error comes again
		return true
	})
	return max(n, 0)
}

// Keep makes the strings of the request, and of its header, ones that may be
// kept. It costs the buffer that they are in.
func (w *Writer) Keep() { w.kept = true }

// Know keeps something about the client for as long as its connection lasts;
// Known gives it, nil at first.
func (w *Writer) Know(v any) { w.c.known = v }

// Known gives what Know has kept.
func (w *Writer) Known() any { return w.c.known }

// Rest is how much of the request's body is still to be read from the
// connection; what came with the head is not in it.
func (w *Writer) Rest() int64 { return w.rest }

// Body reads what Rest tells. It ends in io.ErrUnexpectedEOF where the client
// sends no more.
func (w *Writer) Body() io.Reader { return (*restOfBody)(w) }

type restOfBody Writer

func (b *restOfBody) Read(p []byte) (int, error) {
	if b.rest == 0 {
		return 0, io.EOF
	}
	n, err := b.c.Read(p[:min(int64(len(p)), b.rest)])
	b.rest -= int64(n)
	switch {
	case b.rest == 0:
		err = io.EOF // together with the last of it
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A requestBody is all of it.
type requestBody Writer

func (b *requestBody) Read(p []byte) (int, error) {
	if len(b.here) == 0 {
		return (*restOfBody)(b).Read(p)
	}
	n := copy(p, b.here)
	b.here = b.here[n:]
	return n, nil
}

func (b *requestBody) Close() error { return nil }

// Header is that of the answer.
func (w *Writer) Header() http.Header { return w.header }

// WriteHeader takes the status. An informational one is sent at once.
func (w *Writer) WriteHeader(status int) {
	switch {
	case w.status != 0:
	case status < 200:
		b := appendStatus(w.out(), status)
		b = appendHeader(b, w.header, nil)
		_ = w.write(append(b, "\r\n"...)) // whatever comes next fails too
	default:
		w.status = status
	}
}

// Write writes a part of the body.
func (w *Writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	switch {
	case w.req.Method == http.MethodHead:
		return len(p), nil
	case !bodyAllowed(w.status):
		return 0, http.ErrBodyNotAllowed
	case w.begun:
		return w.writeBody(p)
	case len(w.held)+len(p) <= heldSize, w.header["Content-Length"] != nil && len(w.held)+len(p) <= writeSize:
		w.held = append(w.held, p...)
		return len(p), nil
	}
	if err := w.sendHead(false); err != nil {
		return 0, err
	}
	return w.writeBody(p)
}

func (w *Writer) writeBody(p []byte) (int, error) {
	if !w.chunked {
		if int64(len(p)) > w.left {
			return 0, http.ErrContentLength
		}
		w.left -= int64(len(p))
		return len(p), w.write(p)
	}
	return w.writeChunks(p)
}

// writeChunks writes p in chunks that are as large as there is room.
func (w *Writer) writeChunks(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		part := p[n:min(len(p), n+outSize-chunkRoom)]
		b := strconv.AppendUint(w.out(), uint64(len(part)), 16)
		b = append(b, "\r\n"...)
		b = append(b, part...)
		err = w.write(append(b, "\r\n"...))
		n += len(part)
	}
	return n, err
}

// chunkRoom is what a chunk needs besides its data.
const chunkRoom = 16

// FlushError sends what has been written.
func (w *Writer) FlushError() error {
	if w.begun {
		return nil // nothing waits any more
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.sendHead(false)
}

// EnableFullDuplex says that the answer need not wait for the body, which it
// never does; an error says that there is nothing to wait for.
func (w *Writer) EnableFullDuplex() error {
	if w.rest == 0 {
		return http.ErrNotSupported
	}
	return nil
}

// SetReadDeadline bounds the reading of the body, also after the answer.
func (w *Writer) SetReadDeadline(t time.Time) error {
	w.deadline = t
	return w.c.SetReadDeadline(t)
}

// sendHead sends the head, and what of the body has been held back; whole says
// that this is all of it.
func (w *Writer) sendHead(whole bool) error {
	w.begun = true
	exclude := map[string]bool{"Connection": true}
	w.declareTrailers(exclude)
	b := appendStatus(w.out(), w.status)
	switch said := w.header.Get("Content-Length"); {
	case !bodyAllowed(w.status):
		for _, name := range [...]string{"Content-Type", "Content-Length"} {
			exclude[name] = w.status == http.StatusNotModified || name == "Content-Length"
		}
	case w.req.Method == http.MethodHead:
	case said != "":
		n, ok := readLength(said)
		if !ok {
			w.broken = true
			return fmt.Errorf("lean: content length %q", said)
		}
		w.left = n
	case whole && len(w.trailers) == 0:
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(w.held)), 10)
		b = append(b, "\r\n"...)
		w.left = int64(len(w.held))
	default:
		w.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	b = w.appendRest(b, w.header["Date"] != nil, exclude)
	if err := w.write(b); err != nil {
		return err
	}
	held := w.held
	w.held = w.held[:0]
	if len(held) == 0 {
		return nil
	}
	_, err := w.writeBody(held)
	return err
}

// appendRest writes what every answer has, and ends the head.
func (w *Writer) appendRest(b []byte, dated bool, exclude map[string]bool) []byte {
	if !dated {
		b = w.c.server.dates.append(b, time.Now())
	}
	if len(w.header) > 0 {
		if w.header.Get("Connection") == "close" {
			w.last = true
		}
		b = appendHeader(b, w.header, exclude)
	}
	if w.last {
		b = append(b, "Connection: close\r\n"...)
	}
	return append(b, "\r\n"...)
}

// declareTrailers notes the trailers that the header announces, and keeps
// them out of the head.
func (w *Writer) declareTrailers(exclude map[string]bool) {
	for _, line := range w.header["Trailer"] {
		for name := range strings.SplitSeq(line, ",") {
			name = http.CanonicalHeaderKey(textproto.TrimString(name))
			w.trailers = append(w.trailers, name)
			exclude[name] = true
		}
	}
	for name := range w.header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			exclude[name] = true
		}
	}
}

// finish completes the answer, and reports whether the connection goes on.
func (w *Writer) finish() bool {
	err := w.Complete()
	w.settle()
	if err != nil || w.broken {
		return false
	}
	if w.rest > 0 {
		w.linger()
		return false
	}
	return !w.last
}

// Complete ends the answer, of which nothing may be written any more. The
// server does so when the handler has returned; a handler whose header is of
// memory that it uses again does so itself. It blocks until all is sent, and
// tells what could not be.
func (w *Writer) Complete() error {
	if w.completed {
		return nil
	}
	w.completed = true
	err := w.complete()
	if err != nil {
		w.broken = true
	}
	return err
}

func (w *Writer) complete() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if !w.begun {
		if err := w.sendHead(true); err != nil {
			return err
		}
	}
	switch {
	case w.chunked:
		return w.write(w.appendTrailers(append(w.out(), "0\r\n"...)))
	case w.left > 0 && w.req.Method != http.MethodHead:
		return io.ErrShortWrite
	}
	return nil
}

func (w *Writer) appendTrailers(b []byte) []byte {
	trailer := http.Header{}
	for _, name := range w.trailers {
		if values, ok := w.header[name]; ok {
			trailer[name] = values
		}
	}
	for name, values := range w.header {
		if plain, ok := strings.CutPrefix(name, http.TrailerPrefix); ok {
			trailer[plain] = values
		}
	}
	return append(appendHeader(b, trailer, nil), "\r\n"...)
}

// linger reads on for a moment: a connection that is closed with something to
// read in it may take the answer with it.
func (w *Writer) linger() {
	c, ok := w.c.Conn.(interface{ CloseWrite() error })
	if !ok || c.CloseWrite() != nil {
		return
	}
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(lingerTimeout)
	}
	_ = w.c.SetReadDeadline(w.deadline) // it is closed already
	_, _ = io.CopyN(io.Discard, w.c.Conn, w.rest)
}

// end forgets the request, and gives the end of what it took of the input.
func (w *Writer) end() (used int) {
	used = min(w.size+int(w.head.length), w.have)
	if w.head.length > int64(w.have) {
		used = w.have
	}
	if !w.kept {
		w.head.reset()
	}
	if len(w.header) > 0 {
		clear(w.header)
	}
	w.req, w.url = http.Request{}, url.URL{}
	w.c, w.here, w.held, w.trailers = nil, nil, w.held[:0], nil
	w.status, w.begun, w.completed, w.chunked, w.left, w.rest = 0, false, false, false, 0, 0
	w.last, w.broken, w.clientFailed, w.deadline = false, false, false, time.Time{}
	w.release()
	return used
}

// write sends bytes to the client.
func (w *Writer) write(b []byte) error {
	_, err := w.c.Write(b)
	if err != nil {
		w.broken, w.clientFailed = true, true
	}
	return err
}

func appendStatus(b []byte, status int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	if phrase := http.StatusText(status); phrase != "" {
		b = append(b, phrase...)
	} else {
		b = append(b, "status code "...)
		b = strconv.AppendInt(b, int64(status), 10)
	}
	return append(b, "\r\n"...)
}

// appendHeader writes a header as net/http does.
func appendHeader(b []byte, h http.Header, exclude map[string]bool) []byte {
	buf := bytes.NewBuffer(b)
	_ = h.WriteSubset(buf, exclude) // a buffer takes everything
	return buf.Bytes()
}
