package router_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyFront is HTTP/2 in both ways, and HTTP/1.1.
func everyFront() []front {
	return append([]front{{"HTTP/1.1", "http", func(*testing.T) rigConfig { return rigConfig{} },
		func() *http.Transport { return &http.Transport{DisableCompression: true} }}}, fronts...)
}

// cued is a workload whose answers at / go on one step with each request to
// /cue.
func cued(step func(w http.ResponseWriter, r *http.Request, cue func() bool)) func(testing.TB) string {
	return func(t testing.TB) string {
		cues := make(chan struct{})
		return upstream(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/cue" {
				select {
				case cues <- struct{}{}:
				case <-r.Context().Done():
				}
				return
			}
			step(w, r, func() bool {
				select {
				case <-cues:
					return true
				case <-r.Context().Done():
					return false
				}
			})
		})
	}
}

// ask sends one request over a front.
func (f front) ask(t *testing.T, rig *rig, via *http.Transport, path string, header ...string) *http.Response {
	t.Helper()
	req := rig.request(t.Context(), http.MethodGet, "wiki.test", path, nil, header...)
	req.URL.Scheme = f.scheme
	res, err := via.RoundTrip(req)
	require.NoError(t, err)
	return res
}

// An event is not made before the one before it has been read, so that none
// can have waited for another.
func TestServerSentEventsComeOneByOne(t *testing.T) {
	for _, f := range everyFront() {
		t.Run(f.name, func(t *testing.T) {
			warmAndCold(t, cued(func(w http.ResponseWriter, r *http.Request, cue func() bool) {
				w.Header().Set("Content-Type", "text/event-stream")
				for i := range 5 {
					fmt.Fprintf(w, "id: %d\ndata: %s\n\n", i, r.Header.Get("Last-Event-Id"))
					_ = http.NewResponseController(w).Flush()
					if !cue() {
						return
					}
				}
			}), func(t *testing.T, rig *rig) {
				transport := f.client()
				defer transport.CloseIdleConnections()
				res := f.ask(t, rig, transport, "/", "Accept", "text/event-stream", "Last-Event-Id", "41")
				defer res.Body.Close()
				events := bufio.NewReader(res.Body)
				for i := range 5 {
					for _, want := range []string{fmt.Sprintf("id: %d\n", i), "data: 41\n", "\n"} {
						line, err := events.ReadString('\n')
						require.NoError(t, err)
						assert.Equal(t, want, line)
					}
					body(t, f.ask(t, rig, transport, "/cue"))
				}
				_, err := events.ReadByte()
				assert.ErrorIs(t, err, io.EOF)
			}, f.server(t))
		})
	}
}

// A long poll says nothing, not even a head, until there is something to say;
// it keeps its workload in use.
func TestLongPollIsAnsweredWhenThereIsSomething(t *testing.T) {
	for _, f := range everyFront() {
		t.Run(f.name, func(t *testing.T) {
			warmAndCold(t, cued(func(w http.ResponseWriter, _ *http.Request, cue func() bool) {
				if cue() {
					fmt.Fprint(w, "news")
				}
			}), func(t *testing.T, rig *rig) {
				transport := f.client()
				defer transport.CloseIdleConnections()
				polled := make(chan string, 1)
				go func() { polled <- body(t, f.ask(t, rig, transport, "/")) }()
				rig.inFlight("wiki", 1)
				select {
				case got := <-polled:
					t.Error("answered before there was anything: ", got)
				default:
				}
				body(t, f.ask(t, rig, transport, "/cue"))
				assert.Equal(t, "news", <-polled)
			}, f.server(t))
		})
	}
}
