package router

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

var (
	errBodyUsed = errors.New("the request's body has been read already")
	errBodyOver = errors.New("the request has ended")
)

// A retryBody is a request's body that survives tries which never read it. A
// transport closes the body of a try that failed, even of a connect that was
// refused; the body is the client's and has to be there for the next try.
// Its end is the end of the request, after which net/http allows no reading,
// though a goroutine of the transport may still want to.
type retryBody struct {
	io.Reader
	expects  *expectation // nil: it comes unasked
	patience *patience    // nil: it may take its time
	limits   *limits

	over   atomic.Bool // the request has ended
	used   atomic.Bool // a byte may have left for a replica
	ended  atomic.Bool // it was read to its end
	broken atomic.Bool // the client did not send it to its end
	// malformed says that it came to no end because of its chunks.
	malformed atomic.Bool
}

// Read reads on, in whatever try.
func (b *retryBody) Read(p []byte) (int, error) {
	if b.expects != nil && !b.used.Load() && !b.expects.wait() {
		return 0, errBodyOver
	}
	if b.over.Load() {
		return 0, errBodyOver // and not the client's doing
	}
	b.used.Store(true)
	n, err := b.read(p)
	b.limits.heard()
	switch err {
	case nil:
	case io.EOF:
		b.ended.Store(true)
	default:
		b.malformed.Store(!b.over.Load() && malformed(err))
		b.broken.Store(true)
	}
	return n, err
}

func (b *retryBody) read(p []byte) (int, error) {
	if b.patience == nil {
		return b.Reader.Read(p)
	}
	return b.patience.read(func() (int, error) { return b.Reader.Read(p) })
}

// malformed reports that what a client sent as a body is none, rather than
// that it stopped sending: net/http has no names for what may be wrong.
func malformed(err error) bool {
	var lost net.Error
	return !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &lost) && !errors.Is(err, http.ErrBodyReadAfterClose) &&
		!errors.Is(err, net.ErrClosed) && !errors.Is(err, context.Canceled)
}

// end says that the request has ended.
func (b *retryBody) end() {
	b.over.Store(true)
	if b.expects != nil {
		close(b.expects.over)
	}
}

// Close does nothing, on purpose.
func (b *retryBody) Close() error { return nil }

// again hands the body to another try; it is a request's GetBody.
func (b *retryBody) again() (io.ReadCloser, error) {
	if b.used.Load() {
		return nil, errBodyUsed
	}
	return b, nil
}
