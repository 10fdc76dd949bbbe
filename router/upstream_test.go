package router

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

func TestUpstreamsAreOnePerReplicaAndForgottenWithIt(t *testing.T) {
	u := newUpstreams()
	a := u.get("wiki", workload.Replica{ID: "a", Address: "127.0.0.1:1"})
	b := u.get("wiki", workload.Replica{ID: "b", Address: "127.0.0.1:1"})
	assert.NotSame(t, a, b, "one address, two replicas")
	assert.Same(t, a, u.get("wiki", workload.Replica{ID: "a", Address: "127.0.0.1:1"}))
	u.retain(func(name, id string) bool { return name == "wiki" && id == "b" })
	assert.Len(t, *u.known.Load(), 1)
	assert.Same(t, b, u.get("wiki", workload.Replica{ID: "b"}))
	assert.Zero(t, testing.AllocsPerRun(100, func() { u.get("wiki", workload.Replica{ID: "b"}) }))
}

func TestServesOnlyWhileReady(t *testing.T) {
	s := workload.State{Phase: workload.Ready, Replicas: []workload.Replica{{ID: "a"}}}
	assert.True(t, serves(s, "a"))
	assert.False(t, serves(s, "b"))
	s.Phase = workload.Draining
	assert.False(t, serves(s, "a"), "it is on its way to sleep, and must not wait for idle connections")
}

func TestOnlyTheReplicasRefusalIsRetried(t *testing.T) {
	for err, want := range map[error]bool{
		&dialError{err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}:  true,
		&dialError{err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}}:  true,
		&dialError{err: &net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}}:                               true,
		&dialError{err: &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}}: false,
		&dialError{err: &net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}}:         false,
		&net.OpError{Op: "read", Err: syscall.ECONNRESET}:                                                    false,
		io.ErrUnexpectedEOF: false,
		context.Canceled:    false,
	} {
		assert.Equal(t, want, refusedBy(err), "%v", err)
	}
}

// What net/http does with a body when the connect fails is the reason for
// retryBody: it closes it.
func TestBodySurvivesAFailedConnect(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	up := newUpstream("wiki", workload.Replica{ID: "a", Address: listener.Addr().String()})
	defer up.close()
	inner := &closable{Reader: strings.NewReader("body")}
	for _, http2 := range []bool{false, true} {
		retry := &retryBody{Reader: inner}
		req, err := http.NewRequest(http.MethodPost, "http://"+listener.Addr().String(), retry)
		require.NoError(t, err)
		_, err = up.transport(http2).RoundTrip(req)
		require.Error(t, err)
		assert.True(t, refusedBy(err), "%v", err)
		assert.False(t, inner.closed)
		again, err := retry.again()
		require.NoError(t, err, "not a byte was taken")
		assert.Same(t, retry, again)
	}
	text, err := io.ReadAll(inner)
	require.NoError(t, err)
	assert.Equal(t, "body", string(text))
}

type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }

func TestUsedBodyIsNotSentTwice(t *testing.T) {
	b := &retryBody{Reader: io.MultiReader(strings.NewReader("x"), failingReader{})}
	_, err := b.Read(make([]byte, 1))
	require.NoError(t, err)
	_, err = b.again()
	require.ErrorIs(t, err, errBodyUsed)
	assert.False(t, b.broken.Load())
	_, err = b.Read(make([]byte, 1))
	require.Error(t, err)
	assert.True(t, b.broken.Load())
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("gone") }

func TestBuffersAreUsedAgainWithoutAllocating(t *testing.T) {
	b := newBuffers()
	b.put(b.get())
	assert.Len(t, b.get(), copyBufferSize)
}

func TestMetersForgetAWorkload(t *testing.T) {
	m, err := newMeters(nil)
	require.NoError(t, err)
	m.of("wiki").requests[outcomeWarm].Inc()
	m.of("other")
	m.forget("wiki")
	gone := prometheus.Labels{"workload": "wiki"}
	assert.Zero(t, m.requests.DeletePartialMatch(gone))
	assert.Zero(t, m.added.DeletePartialMatch(gone))
	assert.NotZero(t, m.requests.DeletePartialMatch(prometheus.Labels{"workload": "other"}))
}
