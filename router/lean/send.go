package lean

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// upSize and outSize are the room for what comes from a server, and for
	// what goes out.
	upSize, outSize = 16 << 10, 16 << 10
	// maxAnswerHead bounds the head of an answer that is not plain.
	maxAnswerHead = 1 << 20
	// maxHints bounds the informational answers before the final one.
	maxHints = 32
)

var (
	errAborted    = errors.New("lean: the request was broken off")
	errAnswerHead = errors.New("lean: the head of the answer is too long")
	errHints      = errors.New("lean: too many informational answers")
)

// An Order is how a request is to be sent. Its zero value sends the head and
// what has been read of the body.
type Order struct {
	// Body is read for what Writer.Rest tells, by another goroutine, while the
	// answer may have begun.
	Body io.Reader
	// Again allows it to reach a server twice, should a connection that was used
	// before turn out to be dead.
	Again bool
	// Parsed has even a plain answer read by net/http, see Writer.Response.
	Parsed bool
	// Sent is called when it has gone out whole, by another goroutine where there
	// is a Body, and perhaps when the handler has returned; nil is nobody.
	Sent func()
	// Caller hears of the rest; it must not be nil.
	Caller Caller
}

func (o *Order) hasSent() {
	if o.Sent != nil {
		o.Sent()
	}
}

// A Caller hears how a request that is sent gets on.
type Caller interface {
	// Inform takes an informational answer.
	Inform(status int, header textproto.MIMEHeader) error
}

// sending is the part of a Writer that has to do with the server.
type sending struct {
	work   *work
	pool   *Pool
	order  Order
	link   *link // that the answer is read from; nil: not any more
	got    int   // bytes of work.up that have been read
	answer answer
	res    *http.Response // nil: the answer is plain
	part   io.LimitedReader

	uploaded chan struct{} // closed: the body is sent, or not to be; nil: there is none
	sent     bool          // it is sent; good once uploaded is closed

	watched bool        // by the server's watch
	place   int         // in it
	gone    atomic.Bool // the client has left
}

// work is the room that a request needs.
type work struct {
	up   [upSize]byte
	room [outSize]byte
}

var works = sync.Pool{New: func() any { return new(work) }}

// out is the room for what goes out next.
func (w *Writer) out() []byte {
	if w.work == nil {
		w.work = works.Get().(*work)
	}
	return w.work.room[:0]
}

func (w *Writer) release() {
	if w.work != nil {
		works.Put(w.work)
		w.work = nil
	}
	w.pool, w.order, w.got, w.res, w.answer.fields = nil, Order{}, 0, nil, nil
	w.gone.Store(false)
}

// Send sends the request to a server: its header is that of the request, but
// for what is about the message itself. It blocks until the head of the answer
// is there, see Status. The error is Pool.Dial's as long as nothing was sent.
// Every other one tells of a request that a server may have seen.
func (w *Writer) Send(p *Pool, o Order) error {
	w.pool, w.order = p, o
	l, err := p.get()
	for {
		if err != nil {
			return err
		}
		var seen bool
		if seen, err = w.try(l); err == nil {
			return nil
		}
		w.drop()
		if !l.reused || seen && !(o.Again && w.got == 0) || w.c.hasAborted() {
			return err
		}
		p.Purge() // its server has closed it, and so the others
		l, err = p.dial()
	}
}

// try sends the request over one connection. seen: the server may have seen
// some of it.
func (w *Writer) try(l *link) (seen bool, err error) {
	w.link, w.got = l, 0
	if !w.c.attach(l) {
		return false, errAborted
	}
	b := append(w.appendRequest(w.out()), w.here...)
	if w.rest == 0 && !w.order.Parsed {
		w.watch()
		var sent int
		sent, w.got, err = l.ask(b, w.work.up[:])
		switch {
		case err != nil:
			return sent > 0, err
		case w.got > 0:
			w.order.hasSent()
			return true, w.readHead()
		}
		b, seen = b[sent:], sent > 0
	}
	n, err := l.Write(b)
	if err != nil {
		return seen || n > 0, err
	}
	if w.rest > 0 {
		w.upload()
	} else {
		w.order.hasSent()
		w.watch()
	}
	return true, w.readHead()
}

// appendRequest writes the head.
func (w *Writer) appendRequest(b []byte) []byte {
	b = append(b, w.req.Method...)
	b = append(b, ' ')
	b = append(b, w.head.target...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, w.req.Host...)
	b = append(b, "\r\n"...)
	if w.head.length > 0 || bodyUsual(w.req.Method) {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, w.head.length, 10)
		b = append(b, "\r\n"...)
	}
	for name, values := range w.req.Header {
		if aboutMessage(name) || name == "User-Agent" && values[0] == "" {
			continue
		}
		for _, value := range values {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// aboutMessage reports a field that this hop says itself, if at all.
func aboutMessage(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

// bodyUsual reports a method whose request says how long its body is, also
// when it has none.
func bodyUsual(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// upload sends the rest of the body, while the answer may come already.
func (w *Writer) upload() {
	l, c, o, done := w.link, w.c, w.order, make(chan struct{})
	w.uploaded, w.sent = done, false
	go func() {
		defer close(done)
		room := works.Get().(*work)
		defer works.Put(room)
		for {
			n, err := o.Body.Read(room.up[:])
			if n > 0 {
				if _, err := l.Write(room.up[:n]); err != nil {
					return // the answer tells why
				}
			}
			switch err {
			case nil:
			case io.EOF:
				w.sent = true
				o.hasSent()
				w.watch()
				return
			default:
				c.abort()
				return
			}
		}
	}()
}

// watch has the client watched from now on.
func (w *Writer) watch() {
	if !w.watched {
		w.watched = true
		w.c.server.watch.add(w)
	}
}

func (w *Writer) unwatch() {
	if w.watched {
		w.watched = false
		w.c.server.watch.remove(w)
	}
}

// Left reports that the client has left while its answer was waited for.
func (w *Writer) Left() bool { return w.gone.Load() }

// Breaker gives what breaks off the sending of this request, and does nothing
// once it is over.
func (w *Writer) Breaker() func() {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.request
	return func() { c.abortRequest(number) }
}

// BodyBreaker gives what ends the reading of this request's body, and does
// nothing once the request is over.
func (w *Writer) BodyBreaker() func() error {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.request
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.request != number {
			return nil
		}
		return c.SetReadDeadline(longAgo)
	}
}

// readHead reads the head of the final answer, of which some may be there.
func (w *Writer) readHead() error {
	for {
		if w.got > 0 {
			switch v := w.answer.read(w.work.up[:w.got], w.pool.Drop); {
			case v == odd || w.req.Method == http.MethodHead || w.order.Parsed || w.got == upSize && v == more:
				return w.readResponse()
			case v == plain:
				return nil
			}
		}
		n, err := w.link.Read(w.work.up[w.got:])
		w.got += n
		if n == 0 && err == io.EOF && w.got > 0 {
			return io.ErrUnexpectedEOF
		}
		if n == 0 && err != nil {
			return err
		}
	}
}

// readResponse has net/http read an answer that is not plain.
func (w *Writer) readResponse() error {
	from := &answerReader{early: w.work.up[:w.got], link: w.link, left: maxAnswerHead}
	in := bufio.NewReader(from)
	for range maxHints {
		res, err := http.ReadResponse(in, &w.req)
		if err != nil {
			return err
		}
		if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
			from.left = -1
			w.res = res
			w.wrap(in)
			return nil
		}
		if err := w.order.Caller.Inform(res.StatusCode, textproto.MIMEHeader(res.Header)); err != nil {
			return err
		}
	}
	return errHints
}

// An answerReader begins with what has been read of an answer.
type answerReader struct {
	early []byte
	link  *link
	left  int // that may be read; below 0: anything
}

func (r *answerReader) Read(p []byte) (n int, err error) {
	switch {
	case r.left == 0:
		return 0, errAnswerHead
	case r.left > 0:
		p = p[:min(len(p), r.left)]
	}
	if len(r.early) > 0 {
		n = copy(p, r.early)
		r.early = r.early[n:]
	} else {
		n, err = r.link.Read(p)
	}
	if r.left > 0 {
		r.left -= n
	}
	return n, err
}

// wrap has the connection given back at the end of the answer.
func (w *Writer) wrap(in *bufio.Reader) {
	b := &responseBody{ReadCloser: w.res.Body, w: w, in: in, last: w.res.Close || w.res.StatusCode < 200}
	if b.ReadCloser == http.NoBody {
		b.end()
		return
	}
	w.res.Body = b
}

// A responseBody is that of an answer that net/http reads.
type responseBody struct {
	io.ReadCloser
	w    *Writer
	in   *bufio.Reader
	last bool // of its connection
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, err
}

func (b *responseBody) end() {
	if from := b.in.Buffered(); from == 0 && !b.last {
		b.w.done()
	} else {
		b.w.drop()
	}
}

// Close gives up what has not been read.
func (b *responseBody) Close() error {
	b.w.drop()
	return nil
}

// done gives the connection back: the answer has been read to its end, and
// nothing besides.
func (w *Writer) done() {
	l := w.link
	if l == nil {
		return
	}
	w.link = nil
	if w.c.detach() && w.wholeSent() {
		w.pool.put(l)
	} else {
		l.close()
	}
}

// wholeSent reports that there is nothing more to send.
func (w *Writer) wholeSent() bool {
	if w.uploaded == nil {
		return true
	}
	select {
	case <-w.uploaded:
		return w.sent
	default:
		return false
	}
}

// drop closes the connection.
func (w *Writer) drop() {
	if l := w.link; l != nil {
		w.link = nil
		w.c.detach()
		l.close()
	}
}

// settle ends whatever goes on for the request.
func (w *Writer) settle() {
	w.drop()
	if w.uploaded != nil {
		select {
		case <-w.uploaded:
		default:
			_ = w.c.SetReadDeadline(longAgo) // it is closed already
			<-w.uploaded
			_ = w.c.SetReadDeadline(time.Time{})
		}
		w.uploaded = nil
	}
	w.unwatch()
}
