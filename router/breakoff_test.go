package router_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClientThatLeavesIsFeltUpstreamAndLoggedAs499(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan struct{})
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
		close(gone)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := client.Do(rig.request(ctx, http.MethodGet, "wiki.test", "/", nil, "X-Request-ID", "gone"))
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("the workload never heard of it")
	}
	e := rig.entryOf("gone")
	assert.Equal(t, 499, e.Status)
	assert.Equal(t, "canceled", e.Outcome)
	assert.EqualValues(t, 1, rig.counted("wiki", "canceled"))
	rig.inFlight("wiki", 0)
}

func TestClientThatLeavesInTheMiddleIsNotTheWorkloadsError(t *testing.T) {
	gone := make(chan struct{}, 2)
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		defer func() { gone <- struct{}{} }()
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		_, _ = io.Copy(w, pattern{})
	}))
	for id, request := range map[string]string{
		"upload":   "POST / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: upload\r\nContent-Length: 4000\r\n\r\nbody",
		"download": "GET / HTTP/1.1\r\nHost: wiki.test\r\nX-Request-Id: download\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", rig.addr)
		require.NoError(t, err)
		fmt.Fprint(conn, request)
		rig.inFlight("wiki", 1)
		if id == "download" {
			_, err = io.ReadFull(conn, make([]byte, 100_000))
			require.NoError(t, err)
		}
		require.NoError(t, conn.Close())
		<-gone
		e := rig.entryOf(id)
		assert.Equal(t, "canceled", e.Outcome, id)
		assert.Equal(t, map[string]int{"upload": 499, "download": 200}[id], e.Status, id)
		rig.inFlight("wiki", 0)
	}
}

func TestAnswerThatBreaksOffIsNotMadeWhole(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 10000))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	res := rig.get("wiki.test", "/", "X-Request-ID", "broken")
	_, err := io.ReadAll(res.Body)
	require.Error(t, err, "the client must see that it is not the whole")
	e := rig.entryOf("broken")
	assert.Equal(t, "error", e.Outcome)
	assert.Equal(t, http.StatusOK, e.Status)
	assert.EqualValues(t, 1, rig.counted("wiki", "error"))
	rig.inFlight("wiki", 0)
}

func TestWorkloadThatHangsUpIsABadGateway(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	res := rig.do(http.MethodPost, "wiki.test", "/", bytes.NewReader([]byte("x")))
	p := problemOf(t, res)
	assert.Equal(t, http.StatusBadGateway, p.Status)
	assert.Equal(t, "urn:rouse:problem:bad-gateway", p.Type)
}
