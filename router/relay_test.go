package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flushes is a client that counts what is flushed to it.
type flushes struct {
	*httptest.ResponseRecorder
	n int
}

func (f *flushes) Flush() { f.n++ }

func TestOnlyAnswersThatStreamAreFlushedPartByPart(t *testing.T) {
	const parts = 3
	next := make(chan struct{}, parts)
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = r.URL.Query()["type"]
		if r.URL.Query().Has("length") {
			w.Header().Set("Content-Length", "12")
		}
		for range parts {
			fmt.Fprint(w, "part")
			_ = http.NewResponseController(w).Flush()
			<-next // the next part is not sent together with this one
		}
	}))
	for _, c := range []struct {
		query   string
		streams bool
	}{
		{"type=text/plain", true},
		{"type=text/plain&length", false},
		{"type=text/event-stream&length", true},
		{"type=Text/Event-Stream%3B+charset=utf-8&length", true},
		{"type=text/event-streams&length", false},
	} {
		client := &flushes{ResponseRecorder: httptest.NewRecorder()}
		client.Body = nil // what is written is counted by the writer around it
		got := &written{flushes: client, part: func() { next <- struct{}{} }}
		rig.router.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "http://wiki.test/?"+c.query, nil))
		assert.Equal(t, "partpartpart", got.text.String(), c.query)
		if c.streams {
			assert.Equal(t, 1+parts, client.n, "%s: the head, and each part", c.query)
		} else {
			assert.Zero(t, client.n, c.query)
		}
	}
}

// written lets the workload go on when a part has come through.
type written struct {
	*flushes
	text strings.Builder
	part func()
}

func (w *written) Write(p []byte) (int, error) {
	w.part()
	return w.text.Write(p)
}

func TestHeadOfAStreamDoesNotWaitForItsFirstPart(t *testing.T) {
	headSeen := make(chan struct{})
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-headSeen
		fmt.Fprint(w, "first")
	}))
	res := rig.get("wiki.test", "/")
	close(headSeen)
	assert.Equal(t, "first", body(t, res))
}

func TestAnswersWithoutABodyKeepTheirHeaders(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"1"`)
		switch r.URL.Path {
		case "/304":
			w.WriteHeader(http.StatusNotModified)
		case "/204":
			w.WriteHeader(http.StatusNoContent)
		case "/length":
			w.Header().Set("Content-Length", "12345")
		default:
			_ = http.NewResponseController(w).Flush()
		}
	}))
	for _, c := range []struct {
		method, path, length string
		status               int
	}{
		{http.MethodHead, "/length", "12345", http.StatusOK},
		{http.MethodHead, "/unknown", "", http.StatusOK},
		{http.MethodGet, "/304", "", http.StatusNotModified},
		{http.MethodGet, "/204", "", http.StatusNoContent},
		{http.MethodHead, "/204", "", http.StatusNoContent},
	} {
		res, conn, answers := rig.raw(c.method + " " + c.path + " HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
		assert.Equal(t, c.status, res.StatusCode, c.path)
		assert.Equal(t, c.length, res.Header.Get("Content-Length"), c.path)
		assert.Equal(t, `"1"`, res.Header.Get("Etag"), c.path)
		fmt.Fprint(conn, "GET /204 HTTP/1.1\r\nHost: wiki.test\r\n\r\n")
		next, err := answers.ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, "HTTP/1.1 204 No Content\r\n", next, "%s %s: nothing comes after the head", c.method, c.path)
	}
}

// An answer that its workload cuts short must not end well for the client,
// neither by its length nor by its chunks nor as an HTTP/2 stream.
func TestAnswerCutShortIsCutShortForTheClient(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n40\r\npart of it",
	} {
		addr, _ := replies(t, text)
		rig := newRig(t, rigConfig{}, wiki())
		rig.ready("wiki", 1, addr)
		for id, transport := range map[string]*http.Transport{"one": {}, "two": h2c()} {
			res, err := transport.RoundTrip(rig.request(t.Context(), http.MethodGet, "wiki.test", "/", nil, "X-Request-ID", id))
			if err == nil { // else it ended before its head was out
				_, err = io.ReadAll(res.Body)
			}
			require.Error(t, err, text)
			transport.CloseIdleConnections()
			e := rig.entryOf(id)
			assert.Equal(t, "error", e.Outcome)
			assert.Equal(t, http.StatusOK, e.Status)
		}
		rig.inFlight("wiki", 0)
	}
}

func TestTrailersKeepTheirKind(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, func(w http.ResponseWriter, r *http.Request) {
		name := "X-End"
		if r.URL.Path == "/announced" {
			w.Header().Set("Trailer", name)
		} else {
			name = http.TrailerPrefix + name
		}
		fmt.Fprint(w, "short") // net/http would give it a length, if it could
		w.Header()[name] = []string{"one", "two"}
		if r.URL.Path == "/late" {
			_ = http.NewResponseController(w).Flush()
		}
	}))
	for path, announced := range map[string]bool{"/announced": true, "/late": false} {
		for _, transport := range []*http.Transport{{}, h2c()} {
			res, err := transport.RoundTrip(rig.request(t.Context(), http.MethodGet, "wiki.test", path, nil))
			require.NoError(t, err)
			_, said := res.Trailer["X-End"]
			assert.Equal(t, announced, said, "%s over %s", path, res.Proto)
			assert.NotContains(t, res.Header, "X-End")
			assert.Equal(t, "short", body(t, res))
			assert.Equal(t, []string{"one", "two"}, res.Trailer["X-End"], "%s over %s", path, res.Proto)
			transport.CloseIdleConnections()
		}
	}
}

func TestConnectionIsKeptFromAnswerToAnswer(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki())
	rig.ready("wiki", 1, upstream(t, echo))
	res, conn, answers := rig.raw("POST / HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: 3\r\n\r\none")
	assert.Equal(t, "one", body(t, res))
	for _, word := range []string{"two", strings.Repeat("three", 20_000)} {
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: wiki.test\r\nContent-Length: %d\r\n\r\n%s", len(word), word)
		res, err := http.ReadResponse(bufio.NewReader(answers), nil)
		require.NoError(t, err)
		assert.True(t, word == body(t, res))
	}
}
