package router

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/workload"
)

// outgoingOf is the outgoing request of one that came in.
func outgoingOf(t *testing.T, w http.ResponseWriter, in *http.Request) *outgoing {
	t.Helper()
	x := &exchange{router: &Router{}}
	x.begin(w, in)
	x.route = &route{workload: &workload.Workload{}}
	out, err := x.outgoing()
	require.NoError(t, err)
	return out
}

func TestHintsThatComeTooLateGoNowhere(t *testing.T) {
	client := httptest.NewRecorder()
	out := outgoingOf(t, client, httptest.NewRequest(http.MethodGet, "/", nil))
	pass := httptrace.ContextClientTrace(out.req.Context()).Got1xxResponse
	out.hints.end()
	require.NoError(t, pass(http.StatusEarlyHints, textproto.MIMEHeader{"Link": {"</late>"}}))
	assert.Empty(t, client.Header(), "it is the next answer's by now")
}

type contextKey struct{}

func TestOutgoingContextIsTheClients(t *testing.T) {
	for name, parent := range map[string]context.Context{
		"as it is":     t.Context(),
		"with a trace": httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{}),
	} {
		parent, cancel := context.WithCancelCause(context.WithValue(parent, contextKey{}, "value"))
		deadline, stop := context.WithTimeout(parent, time.Hour)
		in := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(deadline)
		out := outgoingOf(t, httptest.NewRecorder(), in)
		ctx := out.req.Context()
		assert.Equal(t, "value", ctx.Value(contextKey{}), name)
		assert.Same(t, &out.trace, httptrace.ContextClientTrace(ctx), name)
		_, bounded := ctx.Deadline()
		assert.True(t, bounded, name)
		child, stopChild := context.WithCancel(ctx)
		cancel(errCutOff)
		<-child.Done()
		assert.ErrorIs(t, context.Cause(child), errCutOff, name)
		stopChild()
		stop()
	}
}

func TestOutgoingLeavesTheRequestAndItsURLAlone(t *testing.T) {
	in := httptest.NewRequest(http.MethodPost, "/a%2Fb?x=1;y", strings.NewReader("body"))
	in.Close = true
	before, at := *in, *in.URL
	out := outgoingOf(t, httptest.NewRecorder(), in)
	out.url.Host = "replica"
	assert.Equal(t, at, *in.URL)
	assert.Equal(t, before.Host, in.Host)
	assert.True(t, before.Body == in.Body)
	assert.True(t, in.Close)
	assert.False(t, out.req.Close)
	assert.Equal(t, "/a%2Fb?x=1;y", out.req.URL.RequestURI())
}

func TestBodyIsNotReadAfterItsRequest(t *testing.T) {
	b := &retryBody{Reader: strings.NewReader("body")}
	b.over.Store(true)
	n, err := b.Read(make([]byte, 4))
	assert.Zero(t, n)
	require.ErrorIs(t, err, errBodyOver)
	assert.False(t, b.broken.Load(), "it was not the client who broke off")
	left, err := io.ReadAll(b.Reader)
	require.NoError(t, err)
	assert.Equal(t, "body", string(left))
}
