package mimic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/bubble"
	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// start runs a workload on a free port; stop drains it and gives Run's error.
func start(t *testing.T, cfg mimic.Config) (url string, stop func() error) {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	server := mimic.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	url = "http://" + server.Address()
	stop = func() error {
		cancel()
		err := <-ended
		ended <- err // for the clean-up
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return url, stop
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	answer, err := http.Get(url)
	require.NoError(t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer, string(body)
}

func TestReportTellsWhoAnsweredAndWhatArrived(t *testing.T) {
	before := time.Now().UnixNano()
	url, _ := start(t, mimic.Config{})
	_, _ = get(t, url)
	_, _ = get(t, url+"/healthz") // not counted
	_, body := get(t, url+"/some/page?a=b")

	var report mimic.Report
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	assert.Equal(t, int64(2), report.Served)
	assert.Equal(t, os.Getpid(), report.PID)
	assert.Equal(t, "/some/page", report.Path)
	assert.Equal(t, "a=b", report.Query)
	assert.Equal(t, strings.TrimPrefix(url, "http://"), report.Host)
	assert.GreaterOrEqual(t, report.ListeningAt, before)
	assert.LessOrEqual(t, report.ListeningAt, time.Now().UnixNano())
}

func TestReportHasAtLeastTheSizeAskedFor(t *testing.T) {
	for _, size := range []int{1, 700, 701, 5000} {
		server := mimic.New(mimic.Config{Size: size})
		record := httptest.NewRecorder()
		server.Handler().ServeHTTP(record, httptest.NewRequest(http.MethodGet, "/", nil))
		assert.GreaterOrEqual(t, record.Body.Len(), size)
		assert.True(t, json.Valid(record.Body.Bytes()))
		if size == 5000 {
			assert.Equal(t, size, record.Body.Len())
		}
	}
}

func TestListensOnlyAfterItsStartup(t *testing.T) {
	begun := time.Now()
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0", Startup: 30 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	<-server.Listening()
	assert.GreaterOrEqual(t, time.Since(begun), 30*time.Millisecond)
	cancel()
	assert.NoError(t, <-ended)
}

func TestListensOnlyOnceTheFileThatItAwaitsIsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go")
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0", Await: file})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	select {
	case <-server.Listening():
		t.Fatal("it listens")
	case <-time.After(50 * time.Millisecond):
	}
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	<-server.Listening()
	cancel()
	assert.NoError(t, <-ended)
}

func TestItsRehearsalShowsInNoCountAndNoDelay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		server := mimic.New(mimic.Config{Startup: time.Hour, Delay: time.Hour, ExitAfter: time.Minute})
		begun := time.Now()
		var exit *mimic.ExitError
		require.ErrorAs(t, server.Run(t.Context()), &exit)
		assert.Equal(t, time.Minute, time.Since(begun), "nothing else took its time")
	})
	url, _ := start(t, mimic.Config{})
	_, body := get(t, url)
	assert.Contains(t, body, `"served":1,"canceled":0,`)
}

func TestStoppedWhileStartingItEndsAtOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		err := mimic.New(mimic.Config{Startup: time.Hour}).Run(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

func TestExitAfterEndsItWithItsCodeEvenBeforeItListens(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cfg := mimic.Config{Startup: time.Hour, ExitAfter: time.Minute, ExitCode: 7}
		err := mimic.New(cfg).Run(t.Context())
		var exit *mimic.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 7, exit.Code)
	})
}

func TestCrashCutsTheConnectionAndEndsWithCodeOne(t *testing.T) {
	url, stop := start(t, mimic.Config{})
	_, err := http.Get(url + "/crash")
	require.Error(t, err)
	var exit *mimic.ExitError
	require.ErrorAs(t, stop(), &exit)
	assert.Equal(t, 1, exit.Code)
}

func TestDrainAnswersWhatIsInFlight(t *testing.T) {
	url, stop := start(t, mimic.Config{})
	answer, err := http.Get(url + "/chunked?n=3&every=20ms") // headers are here: it is in flight
	require.NoError(t, err)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()

	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, "chunk 1\nchunk 2\nchunk 3\n", string(body))
	require.NoError(t, <-stopped)
	_, err = http.Get(url)
	assert.Error(t, err, "the listener is closed")
}

func TestDrainEndsEndlessStreams(t *testing.T) {
	url, stop := start(t, mimic.Config{})
	answer, err := http.Get(url + "/sse?every=1h")
	require.NoError(t, err)
	event := make([]byte, len("id: 1\ndata: 1\n\n"))
	_, err = io.ReadFull(answer.Body, event)
	require.NoError(t, err, "the first event comes at once")
	assert.Equal(t, "id: 1\ndata: 1\n\n", string(event))

	socket, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1)+"/ws", nil)
	require.NoError(t, err)
	require.NoError(t, socket.Write(t.Context(), websocket.MessageText, []byte("hello")))
	_, message, err := socket.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "hello", string(message))
	closed := make(chan error, 1)
	go func() {
		_, _, err := socket.Read(context.WithoutCancel(t.Context()))
		closed <- err
	}()

	require.NoError(t, stop())
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(<-closed))
}

func TestSpeaksHTTP2WithoutTLSOnTheSamePort(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: protocols}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, 2, answer.ProtoMajor)
	answer, _ = get(t, url)
	assert.Equal(t, 1, answer.ProtoMajor)
}

func TestEchoAnswersWhileTheBodyIsStillComing(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	read, write := io.Pipe()
	request, err := http.NewRequest(http.MethodPut, url+"/echo", read)
	require.NoError(t, err)
	request.Header.Set("Content-Type", "text/x-test")
	go func() { _, _ = io.WriteString(write, "one") }()
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	part := make([]byte, 3)
	_, err = io.ReadFull(answer.Body, part)
	require.NoError(t, err)
	assert.Equal(t, "one", string(part))
	assert.Equal(t, "text/x-test", answer.Header.Get("Content-Type"))

	go func() { _, _ = io.WriteString(write, "two"); _ = write.Close() }()
	rest, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.Equal(t, "two", string(rest))
}

func TestTrailersTellWhatArrived(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	request, err := http.NewRequest(http.MethodPost, url+"/trailers", struct{ io.Reader }{strings.NewReader("12345")})
	require.NoError(t, err)
	request.Trailer = http.Header{"Mimic-Sent": {"yes"}}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	_, err = io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, "5", answer.Trailer.Get("Mimic-Length"))
	assert.Equal(t, "yes", answer.Trailer.Get("Mimic-Received"))
}

func TestHangCountsTheClientsThatLeft(t *testing.T) {
	url, _ := start(t, mimic.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/hang", nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(request)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Eventually(t, func() bool {
		_, body := get(t, url)
		return strings.Contains(body, `"canceled":1,`)
	}, 5*time.Second, 5*time.Millisecond)
}

func TestAnswersAsThePathSays(t *testing.T) {
	server := mimic.New(mimic.Config{HealthzStatus: http.StatusServiceUnavailable})
	front := httptest.NewServer(server.Handler())
	defer front.Close()
	cases := []struct {
		path   string
		status int
		length int64 // -1: not looked at
	}{
		{"/healthz", 503, -1},
		{"/status/418", 418, 0},
		{"/status/103", 200, 0},
		{"/status/101", 400, -1},
		{"/status/7", 400, -1},
		{"/status/x", 400, -1},
		{"/bytes/0", 200, 0},
		{"/bytes/100000", 200, 100000},
		{"/bytes/-1", 400, -1},
		{"/delay/1", 200, -1},
		{"/delay/never", 400, -1},
		{"/sse?every=0s", 400, -1},
		{"/chunked?every=soon", 400, -1},
		{"/ws", 426, -1},
	}
	for _, c := range cases {
		answer, body := get(t, front.URL+c.path)
		assert.Equal(t, c.status, answer.StatusCode, c.path)
		if c.length >= 0 {
			assert.Len(t, body, int(c.length), c.path)
			assert.Equal(t, c.length, answer.ContentLength, c.path)
		}
	}
}

func TestDelayPassesBeforeEachAnswerButNotBeforeHealth(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		handler := mimic.New(mimic.Config{Delay: time.Minute}).Handler()
		ask := func(path string) time.Duration {
			begun := time.Now()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
			return time.Since(begun)
		}
		assert.Equal(t, time.Minute, ask("/"))
		assert.Equal(t, time.Minute+time.Second, ask("/delay/1000"))
		assert.Zero(t, ask("/healthz"))
	})
}

func ExampleServer() {
	server := mimic.New(mimic.Config{Listen: "127.0.0.1:0", Startup: time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()

	answer, err := http.Get("http://" + server.Address() + "/healthz")
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = answer.Body.Close()
	fmt.Println(answer.Status)
	cancel()
	fmt.Println(<-ended)
	// Output:
	// 200 OK
	// <nil>
}

func BenchmarkReport(b *testing.B) {
	handler := mimic.New(mimic.Config{}).Handler()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	b.ReportAllocs()
	for b.Loop() {
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
}
