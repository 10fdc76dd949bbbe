package lean

import (
	"errors"
	"io"
	"net/http"
	"os"
)

const (
	// spliceFrom is the size from which a body goes from socket to socket
	// without passing through this process.
	spliceFrom = 64 << 10
	// spliceStep is how much of it at once: few calls, and not so much that a
	// client that is slow but reads is taken for one that does not.
	spliceStep = 256 << 10
)

// Status is that of the answer that Send got.
func (w *Writer) Status() int {
	if w.res != nil {
		return w.res.StatusCode
	}
	return w.answer.status
}

// Response is the answer as net/http read it, whose body is to be closed; nil:
// it is plain, and Relay passes it on.
func (w *Writer) Response() *http.Response { return w.res }

var ownFields = map[string]bool{"Connection": true}

// Relay passes a plain answer on, after WriteHeader, with what the handler has
// put into Header besides. It gives the bytes of the body that the client got.
// ClientFailed tells whose doing an error is.
func (w *Writer) Relay() (int64, error) {
	a := &w.answer
	body := w.work.up[a.size:w.got]
	excess := int64(len(body)) > a.length
	if excess {
		body = body[:a.length]
	}
	left := a.length - int64(len(body))
	if left == 0 {
		if excess {
			w.drop()
		} else {
			w.done()
		}
	}
	w.begun = true
	b := a.appendFields(appendStatus(w.out(), a.status))
	b = w.appendRest(b, a.dated, ownFields)
	if len(b)+len(body) <= outSize {
		b, body = append(b, body...), nil
	}
	written := a.length - left - int64(len(body))
	if err := w.write(b); err != nil {
		return 0, err
	}
	if len(body) > 0 {
		if err := w.write(body); err != nil {
			return written, err
		}
		written += int64(len(body))
	}
	if left == 0 {
		return written, nil
	}
	n, err := w.relayRest(left)
	if err != nil {
		w.broken = true
	}
	return written + n, err
}

// relayRest passes on what has not been read yet.
func (w *Writer) relayRest(left int64) (n int64, err error) {
	front, ok := w.c.Conn.(io.ReaderFrom)
	for err == nil && n < left {
		var some int64
		if ok && left-n >= spliceFrom {
			some, err = w.splice(front, min(left-n, spliceStep))
		} else {
			some, err = w.copy(left - n)
		}
		n += some
	}
	if err == nil {
		w.done()
	}
	return n, err
}

func (w *Writer) copy(most int64) (int64, error) {
	n, err := w.link.Read(w.work.up[:min(upSize, most)])
	if n > 0 {
		if err := w.write(w.work.up[:n]); err != nil {
			return 0, err
		}
		return int64(n), nil // an error comes again
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return 0, err
}

// splice has the system carry up to most bytes.
func (w *Writer) splice(front io.ReaderFrom, most int64) (int64, error) {
	w.part = io.LimitedReader{R: w.link.Conn, N: most}
	n, err := front.ReadFrom(&w.part)
	w.part.R = nil
	switch {
	case err == nil && n < most:
		return n, io.ErrUnexpectedEOF
	case err != nil:
		w.clientFailed = w.clientGone() || errors.Is(err, os.ErrDeadlineExceeded) && !w.c.hasAborted()
	}
	return n, err
}

func (w *Writer) clientGone() (gone bool) {
	var look lookout
	look.hungUp([]int{w.c.fd}, func(int) { gone = true })
	return gone
}

// ClientFailed reports that an error in writing was the client's.
func (w *Writer) ClientFailed() bool { return w.clientFailed }
