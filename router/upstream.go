package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rouse-dev/rouse/router/lean"
	"github.com/rouse-dev/rouse/workload"
)

const (
	// dialTimeout bounds one connect: replicas are near, and a retry is
	// better than a wait.
	dialTimeout     = 250 * time.Millisecond
	idleConnTimeout = 90 * time.Second
	maxAnswerHeader = 1 << 20
	copyBufferSize  = 32 << 10
)

// An upstream is one replica with its own connections. They belong to the
// replica's ID: when its address passes to another container, that one is
// another upstream and never meets a connection of this one.
type upstream struct {
	workload string
	http1    *http.Transport
	http2    *http.Transport // cleartext HTTP/2; connects only when used
	plain    lean.Pool       // of HTTP/1.1 without net/http
}

func newUpstream(name string, r workload.Replica) *upstream {
	dialer := &net.Dialer{Timeout: dialTimeout}
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, r.Address)
		if err != nil {
			return nil, &dialError{replica: r, err: err}
		}
		return conn, nil
	}
	return &upstream{
		workload: name,
		http1:    newTransport(dial, (*http.Protocols).SetHTTP1),
		http2:    newTransport(dial, (*http.Protocols).SetUnencryptedHTTP2),
		plain: lean.Pool{
			Dial: func() (net.Conn, error) { return dial(context.Background(), "tcp", "") },
			Drop: hopByHop,
		},
	}
}

// newTransport makes a transport that speaks one protocol and changes nothing
// in what passes through it.
func newTransport(dial func(context.Context, string, string) (net.Conn, error), set func(*http.Protocols, bool)) *http.Transport {
	protocols := &http.Protocols{}
	set(protocols, true)
	return &http.Transport{
		DialContext:            dial,
		Protocols:              protocols,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    1024,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: maxAnswerHeader,
	}
}

// transport gives the one for a request; callers use it for HTTP/2 only where
// the request needs it.
func (u *upstream) transport(http2 bool) *http.Transport {
	if http2 {
		return u.http2
	}
	return u.http1
}

// close ends the idle connections now and the busy ones as they become idle.
func (u *upstream) close() {
	u.http1.CloseIdleConnections()
	u.http2.CloseIdleConnections()
	u.plain.Close()
}

// upstreams are the replicas that requests were sent to. Safe for concurrent
// use; get of a known replica takes no lock and does not allocate.
type upstreams struct {
	known atomic.Pointer[map[string]*upstream] // replica ID -> its upstream; the map never changes
	mu    sync.Mutex                           // held while known is replaced
}

func newUpstreams() *upstreams {
	u := &upstreams{}
	u.known.Store(&map[string]*upstream{})
	return u
}

// get finds the upstream of a replica, or makes it.
func (u *upstreams) get(name string, r workload.Replica) *upstream {
	if found := (*u.known.Load())[r.ID]; found != nil {
		return found
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	known := *u.known.Load()
	if found := known[r.ID]; found != nil {
		return found
	}
	made := newUpstream(name, r)
	known = maps.Clone(known)
	known[r.ID] = made
	u.known.Store(&known)
	return made
}

// sweep closes the connections that have been idle for too long, where no
// transport does.
func (u *upstreams) sweep(now time.Time) {
	for _, up := range *u.known.Load() {
		up.plain.Sweep(now, idleConnTimeout)
	}
}

// retain forgets every replica that keep does not want, and closes its
// connections.
func (u *upstreams) retain(keep func(workload, id string) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known := *u.known.Load()
	var gone []string
	for id, up := range known {
		if !keep(up.workload, id) {
			gone = append(gone, id)
		}
	}
	if gone == nil {
		return
	}
	kept := maps.Clone(known)
	for _, id := range gone {
		delete(kept, id)
	}
	u.known.Store(&kept)
	for _, id := range gone {
		known[id].close()
	}
}

// A dialError is a connect that failed: no byte of the request was sent.
type dialError struct {
	replica workload.Replica
	err     error
}

func (e *dialError) Error() string {
	return fmt.Sprintf("connect to replica %s: %v", e.replica.ID, e.err)
}

func (e *dialError) Unwrap() error { return e.err }

// refusedBy reports a connect that failed on the replica's side, as opposed
// to this machine having no more sockets, ports or memory.
func refusedBy(err error) bool {
	var failed *dialError
	if !errors.As(err, &failed) {
		return false
	}
	for _, own := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// broken reports a connection that ended before an answer came.
func broken(err error) bool {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// buffers lends the buffers that bodies are copied through.
type buffers struct{ pool sync.Pool }

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([copyBufferSize]byte) }}}
}

func (b *buffers) get() *[copyBufferSize]byte { return b.pool.Get().(*[copyBufferSize]byte) }

func (b *buffers) put(buf *[copyBufferSize]byte) { b.pool.Put(buf) }
