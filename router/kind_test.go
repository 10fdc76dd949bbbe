package router

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/workload"
)

const html = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

// FIELD section 4, row by row: over https or localhost, and to a plain http
// name of the local network.
func TestWhatBrowsersAndClientsSendIsToldApart(t *testing.T) {
	policy := newPolicy(Config{NoWake: NoWake{Prefetch: true, Paths: []string{"/favicon.ico"}, Methods: []string{"PROPFIND"}, UserAgents: []string{"Uptime-Kuma"}}})
	w := &workload.Workload{NoWake: []string{"/health"}}
	type h = map[string]string
	for _, c := range []struct {
		name, method, path string
		headers            h
		page, quiet        bool
	}{
		{"navigation", "GET", "/", h{"Accept": html, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Upgrade-Insecure-Requests": "1"}, true, false},
		{"navigation, LAN", "GET", "/", h{"Accept": html, "Upgrade-Insecure-Requests": "1"}, true, false},
		{"navigation, HEAD", "HEAD", "/", h{"Accept": html}, true, false},
		{"under a service worker", "GET", "/", h{"Accept": html, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "empty"}, true, false},
		{"under a service worker, LAN", "GET", "/", h{"Accept": "text/html"}, true, false},
		{"link prefetch", "GET", "/", h{"Accept": html, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty", "Sec-Purpose": "prefetch"}, false, true},
		{"link prefetch, LAN", "GET", "/", h{"Accept": html, "Purpose": "prefetch"}, false, true},
		{"speculation rules", "GET", "/", h{"Accept": html, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Purpose": "prefetch;prerender"}, false, true},
		{"fetch", "GET", "/", h{"Accept": "*/*", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, false, false},
		{"fetch of HTML", "GET", "/", h{"Accept": "text/html", "Sec-Fetch-Mode": "cors"}, false, false},
		{"XHR of HTML, LAN", "GET", "/", h{"Accept": "text/html, */*; q=0.01", "X-Requested-With": "XMLHttpRequest"}, false, false},
		{"style sheet", "GET", "/a.css", h{"Accept": "text/css,*/*;q=0.1", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "style"}, false, false},
		{"style sheet, LAN", "GET", "/a.css", h{"Accept": "text/css,*/*;q=0.1"}, false, false},
		{"script", "GET", "/a.js", h{"Accept": "*/*", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, false, false},
		{"image, LAN", "GET", "/a.png", h{"Accept": "image/avif,image/webp,*/*;q=0.8"}, false, false},
		{"EventSource", "GET", "/e", h{"Accept": "text/event-stream", "Sec-Fetch-Mode": "cors"}, false, false},
		{"EventSource, LAN", "GET", "/e", h{"Accept": "text/event-stream"}, false, false},
		{"WebSocket", "GET", "/ws", h{"Connection": "Upgrade", "Upgrade": "websocket"}, false, false},
		{"WebSocket that accepts HTML", "GET", "/ws", h{"Accept": html, "Connection": "Upgrade", "Upgrade": "websocket"}, false, false},
		{"form", "POST", "/", h{"Accept": html, "Sec-Fetch-Mode": "navigate", "Upgrade-Insecure-Requests": "1"}, false, false},
		{"form, LAN", "POST", "/", h{"Accept": html, "Upgrade-Insecure-Requests": "1"}, false, false},
		{"favicon", "GET", "/favicon.ico", h{"Accept": "image/*", "Sec-Fetch-Mode": "no-cors"}, false, true},
		{"curl", "GET", "/", h{"Accept": "*/*"}, false, false},
		{"Go", "GET", "/", nil, false, false},
		{"refuses HTML", "GET", "/", h{"Accept": "application/json, text/html;q=0"}, false, false},
		{"uptime monitor", "GET", "/", h{"Accept": html, "User-Agent": "Uptime-Kuma/1.23"}, true, true},
		{"method", "PROPFIND", "/", nil, false, true},
		{"the workload's own path", "GET", "/health/live", nil, false, true},
		{"not that path", "GET", "/healthy", nil, false, false},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		assert.Equal(t, c.page, navigation(r), "%s: page", c.name)
		assert.Equal(t, c.quiet, policy.quiet(r, w), "%s: no wake", c.name)
	}
}

func TestNothingIsQuietWithoutBeingNamed(t *testing.T) {
	none := newPolicy(Config{})
	r := httptest.NewRequest(http.MethodGet, "/favicon.ico", nil)
	r.Header.Set("Sec-Purpose", "prefetch")
	r.Header.Set("User-Agent", "Uptime-Kuma")
	assert.False(t, none.quiet(r, &workload.Workload{}))
}

func TestOnlyGRPCOverHTTP2GoesOnAsHTTP2(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Content-Type", "application/grpc+proto")
	assert.False(t, grpc(r))
	r.ProtoMajor = 2
	assert.True(t, grpc(r))
	r.Header.Set("Content-Type", "application/json")
	assert.False(t, grpc(r))
}
