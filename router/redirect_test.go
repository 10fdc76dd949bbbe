package router_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/rouse-dev/rouse/workload"
)

func TestRedirectLeadsToTheSamePlaceOverTLS(t *testing.T) {
	rig := newRig(t, rigConfig{}, wiki(func(w *workload.Workload) { w.Hosts = append(w.Hosts, "*.wild.test", "::1") }))
	for _, c := range []struct{ port, host, target, want string }{
		{"443", "wiki.test", "/", "https://wiki.test/"},
		{"443", "wiki.test:80", "/a%2Fb//c?x=1;y=%zz&&z", "https://wiki.test/a%2Fb//c?x=1;y=%zz&&z"},
		{"8443", "wiki.test", "/?", "https://wiki.test/?"},
		{"8443", "wiki.test:8080", "/a", "https://wiki.test:8443/a"},
		{"443", "WIKI.test.", "//evil.test/x", "https://wiki.test//evil.test/x"},
		{"443", "a.wild.test", "/", "https://a.wild.test/"},
		{"8443", "[::1]:80", "/", "https://[::1]:8443/"},
		{"443", "[::1]", "/", "https://[::1]/"},
		{"443", "wiki.test", "http://evil.test/x", ""},
		{"443", "evil.test", "/", ""},
		{"443", "wiki.test@evil.test", "/", ""},
		{"443", "wiki.test:80@evil.test", "/", "https://wiki.test/"},
		{"443", "", "/", ""},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := httptest.NewRequest(method, c.target, nil)
			if req.URL.Host == "" { // else the target decides, as in net/http
				req.Host = c.host
			}
			got := httptest.NewRecorder()
			rig.router.RedirectToHTTPS(c.port).ServeHTTP(got, req)
			assert.Equal(t, c.want, got.Header().Get("Location"), "%s %s", c.host, c.target)
			if c.want == "" {
				assert.Equal(t, http.StatusNotFound, got.Code)
			} else {
				assert.Equal(t, http.StatusPermanentRedirect, got.Code)
			}
		}
	}
	assert.Zero(t, rig.wakeCount())
}
