package sablier_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/activator"
	"github.com/rouse-dev/rouse/workload"
)

// What the plugins put on the wire, to the letter.
var plugins = map[string]string{
	"Caddy, blocking": "GET /api/strategies/blocking?group=office&session_duration=30m0s&timeout=1m0s HTTP/1.1\r\n" +
		"Host: sablier:10000\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n\r\n",
	"Caddy, dynamic": "GET /api/strategies/dynamic?display_name=My+wiki&names=wiki&names=mail&refresh_frequency=2s&session_duration=30m0s&show_details=true&theme=hacker-terminal HTTP/1.1\r\n" +
		"Host: sablier:10000\r\nUser-Agent: Go-http-client/1.1\r\nAccept-Encoding: gzip\r\n\r\n",
	"Traefik, blocking": "GET /api/strategies/blocking?group=office&session_duration=1m&timeout=30s HTTP/1.1\r\n" +
		"Host: sablier:10000\r\nUser-Agent: sablier-traefik-plugin/1.3.0\r\nAccept-Encoding: gzip\r\n\r\n",
	"Traefik, dynamic": "GET /api/strategies/dynamic?display_name=my-middleware%40file&group=office&session_duration=1m HTTP/1.1\r\n" +
		"Host: sablier:10000\r\nUser-Agent: sablier-traefik-plugin/1.3.0\r\nAccept-Encoding: gzip\r\n\r\n",
	"proxy-wasm": "GET /api/strategies/dynamic?session_duration=1m&names=wiki&names=mail&show_details=true&theme=ghost HTTP/1.1\r\n" +
		"Host: sablier:10000\r\nUser-Agent: sablier-proxywasm-plugin/1.0.0\r\nx-request-id: 6e3b\r\nx-envoy-expected-rq-timeout-ms: 5000\r\n\r\n",
}

func TestRequestsOfThePluginsAreAnsweredAsTheyTakeIt(t *testing.T) {
	for name, wire := range plugins {
		inBubble(t, activator.Config{}, office(), func(t *testing.T, r *rig) {
			call := func() *httptest.ResponseRecorder {
				req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire)))
				require.NoError(t, err)
				rec := httptest.NewRecorder()
				r.api.ServeHTTP(rec, req)
				return rec
			}
			answer := make(chan *httptest.ResponseRecorder, 1)
			go func() { answer <- call() }()
			synctest.Wait()
			if strings.Contains(name, "dynamic") || name == "proxy-wasm" {
				first := come(t, answer)
				assert.Equal(t, http.StatusOK, first.Code, name)
				assert.Equal(t, "not-ready", first.Header().Get(statusHeader), name)
				assert.Contains(t, first.Header().Get("Content-Type"), "text/html", name)
				assert.NotEmpty(t, first.Header().Get("Content-Length"), "a plugin copies it")
				r.see("wiki", workload.Ready)
				r.see("mail", workload.Ready)
				answer <- call()
			}
			r.see("wiki", workload.Ready)
			r.see("mail", workload.Ready)
			last := come(t, answer)
			assert.Equal(t, http.StatusOK, last.Code, name)
			assert.Equal(t, "ready", last.Header().Get(statusHeader), name)
		})
	}
}
