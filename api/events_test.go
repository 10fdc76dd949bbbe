package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/workload"
)

func TestEventStreamHasIDKindAndData(t *testing.T) {
	f := newFake()
	for _, e := range coldStart("w1", "wiki", 0) {
		f.Add(e)
	}
	f.Add(slept("blog", 500))
	w := get(f, "/api/v1/events?last=2&follow=false&workload=wiki")
	require.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	messages := strings.Split(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n")
	require.Len(t, messages, 3, "a comment and two events")
	assert.True(t, strings.HasPrefix(messages[0], ":"))
	lines := strings.Split(messages[2], "\n")
	require.Len(t, lines, 3)
	var e api.Event
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines[2], "data: ")), &e))
	assert.Equal(t, "id: "+e.ID, lines[0])
	assert.Equal(t, "event: released", lines[1])
	assert.Equal(t, "w1", e.Wake.ID)
	assert.Equal(t, workload.PhaseRelease, e.Wake.Phases[5].Phase)
}

func TestEventStreamResumesBehindLastEventID(t *testing.T) {
	f := newFake()
	for i := range 5 {
		f.Add(slept("wiki", i))
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/events?follow=false", nil)
	r.Header.Set("Last-Event-ID", collect(t, f.History, api.EventQuery{Last: 2})[0].ID)
	assert.Equal(t, 1, strings.Count(serve(api.Config{}, f, r).Body.String(), "data: "))
}

func TestEventStreamRefusesWhatMakesNoSense(t *testing.T) {
	for _, query := range []string{"last=x", "last=-1", "follow=perhaps"} {
		assert.Equal(t, http.StatusBadRequest, problem(t, get(newFake(), "/api/v1/events?"+query)).Status)
	}
}

func TestEventStreamAnswersHeadWithoutStreaming(t *testing.T) {
	w := serve(api.Config{}, newFake(), httptest.NewRequest(http.MethodHead, "/api/v1/events", nil))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
}

func TestEventStreamSendsEachEventAtOnceAndEndsWithTheClient(t *testing.T) {
	f := newFake()
	ended := make(chan struct{})
	h := api.New(api.Config{}, f)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		close(ended)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/api/v1/events", nil)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for i := range 3 {
		f.Add(slept("wiki", i))
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
		}
		assert.Contains(t, lines.Text(), `"kind":"slept"`)
	}
	cancel()
	<-ended
}

// recorder is a writer whose reader goes away after some writes.
type recorder struct {
	*httptest.ResponseRecorder
	left int
}

func (r *recorder) WriteString(s string) (int, error) { return r.Write([]byte(s)) }

func (r *recorder) Write(b []byte) (int, error) {
	if r.left--; r.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return r.ResponseRecorder.Write(b)
}

func TestEventStreamShowsASilentReaderThatItLives(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 35*time.Second)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/events", nil)
		w := serve(api.Config{Heartbeat: 10 * time.Second}, newFake(), r)
		assert.Equal(t, 3, strings.Count(w.Body.String(), ": still here\n\n"))
	})
}

func TestEventStreamEndsWithItsReader(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/events", nil)
		r.Host = "localhost"
		w := &recorder{httptest.NewRecorder(), 3}
		began := time.Now()
		api.New(api.Config{}, newFake()).ServeHTTP(w, r)
		assert.Equal(t, 45*time.Second, time.Since(began), "the third heartbeat of 15 s finds nobody")
	})
}
