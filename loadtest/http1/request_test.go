package http1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/http1"
)

func send(t *testing.T, r http1.Request, id http1.ID) *http.Request {
	t.Helper()
	template, err := http1.NewTemplate(r)
	require.NoError(t, err)
	wire := append(template.Append(nil, id), template.Rest()...)
	got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
	require.NoError(t, err)
	return got
}

func TestARequestArrivesAsItWasMeant(t *testing.T) {
	got := send(t, http1.Request{Host: "a.example", Header: []string{"Accept: */*"}}, http1.NewID(0xabc))
	assert.Equal(t, "GET", got.Method)
	assert.Equal(t, "/", got.URL.Path)
	assert.Equal(t, "a.example", got.Host)
	assert.Equal(t, "0000000000000abc", got.Header.Get("X-Request-Id"))
	assert.Equal(t, "*/*", got.Header.Get("Accept"))
	assert.Zero(t, got.ContentLength)
	assert.False(t, got.Close)
	assert.True(t, send(t, http1.Request{Host: "a", Close: true}, http1.NewID(1)).Close)
	assert.Equal(t, "0", send(t, http1.Request{Host: "a", Method: "POST"}, http1.NewID(1)).Header.Get("Content-Length"))
}

func TestABodyBeginsWithTheRequestsID(t *testing.T) {
	for _, size := range []int{1, 15, 16, 5000, 100_000} {
		body := bytes.Repeat([]byte("b"), size)
		got := send(t, http1.Request{Host: "a", Path: "/echo?x", Body: body}, http1.NewID(1<<63))
		assert.Equal(t, "POST", got.Method)
		content, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		want := string(body)
		if size >= http1.IDLength {
			want = "8000000000000000" + want[http1.IDLength:]
		}
		assert.Equal(t, want, string(content))
	}
}

func TestARequestThatWouldNotArriveAsMeantIsRefused(t *testing.T) {
	cases := []http1.Request{
		{},
		{Host: "a b"},
		{Host: "a", Method: "GE T"},
		{Host: "a", Method: "CONNECT"},
		{Host: "a", Path: "x"},
		{Host: "a", Path: "/x y"},
		{Host: "a", Path: "/x\r\n"},
		{Host: "a", Header: []string{"X"}},
		{Host: "a", Header: []string{"X: a\r\nY: b"}},
		{Host: "a", Header: []string{"content-Length: 3"}},
		{Host: "a", Header: []string{strings.Repeat(" ", 3) + ": b"}},
	}
	for _, r := range cases {
		_, err := http1.NewTemplate(r)
		assert.Error(t, err, "%+v", r)
	}
}
