package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestTokenIsAskedForEverywhereButForHealth(t *testing.T) {
	cfg := api.Config{Token: "s3cret"}
	for _, path := range []string{"/metrics", "/api/v1/days", "/api/v1/added", "/api/v1/findings", "/api/v1/nats", "/api/v1/live", "/api/v1/workloads", "/api/v1/workloads/wiki", "/api/v1/workloads/wiki/logs", "/api/v1/wakes", "/api/v1/wakes/x", "/api/v1/events", "/api/v1/config", "/nowhere"} {
		w := serve(cfg, newFake(), httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, http.StatusUnauthorized, problem(t, w).Status, path)
		assert.Equal(t, `Bearer realm="rouse"`, w.Header().Get("WWW-Authenticate"))
	}
	f := newFake()
	for _, path := range []string{"/api/v1/workloads/wiki/wake", "/api/v1/workloads/wiki/sleep", "/api/v1/workloads/wiki/keep?for=1h"} {
		assert.Equal(t, http.StatusUnauthorized, serve(cfg, f, httptest.NewRequest(http.MethodPost, path, nil)).Code)
	}
	assert.Empty(t, f.waits)
	assert.Empty(t, f.slept)
	assert.Empty(t, f.kept)
	for _, path := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, serve(cfg, newFake(), httptest.NewRequest(http.MethodGet, path, nil)).Code, path)
	}
}

func TestOnlyTheRightBearerTokenIsLetIn(t *testing.T) {
	for header, want := range map[string]int{
		"Bearer s3cret":  200,
		"bearer s3cret":  200,
		"Bearer  s3cret": 200,
		"Bearer s3cre":   401,
		"Bearer s3crett": 401,
		"Bearer":         401,
		"Bearer ":        401,
		"Basic s3cret":   401,
		"s3cret":         401,
		"":               401,
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/workloads", nil)
		r.Header.Set("Authorization", header)
		assert.Equal(t, want, serve(api.Config{Token: "s3cret"}, newFake(), r).Code, "%q", header)
	}
}

func TestTokenInTheURLIsRefusedEverywhere(t *testing.T) {
	for _, path := range []string{"/?token=s3cret", "/api/v1/workloads?access_token=s3cret", "/healthz?token=", "/nowhere?bearer=x", "/?ToKeN=1", "/?a;token=x", "/?%74oken=x"} {
		for _, token := range []string{"", "s3cret"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Authorization", "Bearer s3cret") // even beside the right one
			p := problem(t, serve(api.Config{Token: token}, newFake(), r))
			assert.Equal(t, http.StatusBadRequest, p.Status, path)
			assert.Contains(t, p.Detail, "Authorization: Bearer")
			assert.NotContains(t, p.Detail, "s3cret")
		}
	}
}

func TestTheTokenItselfIsRefusedInTheURLUnderAnyName(t *testing.T) {
	for query, want := range map[string]int{"?t=s3cret": 400, "?s3cret": 400, "?a=1;t=%733cret": 400, "?workload=wiki": 200} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/wakes"+query, nil)
		r.Header.Set("Authorization", "Bearer s3cret")
		assert.Equal(t, want, serve(api.Config{Token: "s3cret"}, newFake(), r).Code, query)
	}
}

func TestTokenWorksUnderAnyHost(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/api/v1/workloads", nil)
	r.Host = "admin.example.org"
	r.Header.Set("Authorization", "Bearer s3cret")
	assert.Equal(t, http.StatusOK, serve(api.Config{Token: "s3cret"}, newFake(), r).Code)
}

func TestWritesFromOtherSitesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name          string
		site, origin  string
		authorization string
		want          int
	}{
		{"no browser", "", "", "", 200},
		{"the page itself", "same-origin", "http://127.0.0.1:8081", "", 200},
		{"typed by the person", "none", "", "", 200},
		{"another site", "cross-site", "https://evil.example", "", 403},
		{"another site without an origin", "cross-site", "", "", 403},
		{"another port of the same host", "same-site", "http://127.0.0.1:9000", "", 403},
		{"old browser, the page itself", "", "http://127.0.0.1:8081", "", 200},
		{"old browser, another site", "", "https://evil.example", "", 403},
		{"old browser, opaque origin", "", "null", "", 403},
		{"another site with the token", "cross-site", "https://evil.example", "Bearer s3cret", 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake()
			r := httptest.NewRequest(http.MethodPost, "/api/v1/workloads/wiki/wake", nil)
			for key, value := range map[string]string{"Sec-Fetch-Site": c.site, "Origin": c.origin, "Authorization": c.authorization} {
				if value != "" {
					r.Header.Set(key, value)
				}
			}
			cfg := api.Config{Token: strings.TrimPrefix(c.authorization, "Bearer ")}
			assert.Equal(t, c.want, serve(cfg, f, r).Code)
			assert.Equal(t, c.want == 200, len(f.waits) == 1, "the wake must follow the answer")
		})
	}
}

func TestWithoutATokenAForeignNameForThisMachineIsRefused(t *testing.T) {
	for host, want := range map[string]int{
		"127.0.0.1:8081": 200, "[::1]:8081": 200, "[::1]": 200, "localhost": 200, "LOCALHOST.:8081": 200,
		"rouse.localhost:8081": 200, "10.0.0.7": 200, "": 200,
		"evil.example": 403, "evil.example:8081": 403, "localhost.evil.example": 403, "notlocalhost": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/config", nil)
		r.Host = host
		w := httptest.NewRecorder()
		api.New(api.Config{}, newFake()).ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, "%q", host)
	}
	r := httptest.NewRequest(http.MethodGet, "/readyz", nil)
	r.Host = "rouse.svc"
	w := httptest.NewRecorder()
	api.New(api.Config{}, newFake()).ServeHTTP(w, r)
	assert.Equal(t, http.StatusOK, w.Code, "a health check comes by any name")
}

func TestEachRouteAnswersItsMethodAlone(t *testing.T) {
	for path, allow := range map[string]string{
		"/": "GET, HEAD", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET, HEAD",
		"/api/v1/workloads": "GET, HEAD", "/api/v1/workloads/wiki": "GET, HEAD", "/api/v1/workloads/wiki/logs": "GET, HEAD",
		"/api/v1/wakes": "GET, HEAD", "/api/v1/events": "GET, HEAD", "/api/v1/config": "GET, HEAD",
		"/api/v1/workloads/wiki/wake": "POST", "/api/v1/workloads/wiki/sleep": "POST",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if strings.Contains(allow, method) {
				continue
			}
			w := serve(api.Config{}, newFake(), httptest.NewRequest(method, path, nil))
			assert.Equal(t, http.StatusMethodNotAllowed, problem(t, w).Status, "%s %s", method, path)
			assert.Equal(t, allow, w.Header().Get("Allow"))
		}
	}
}

func TestUnknownPathIsAProblemToo(t *testing.T) {
	assert.Equal(t, http.StatusNotFound, problem(t, get(newFake(), "/api/v2/workloads")).Status)
}

func TestLargeBodyIsRefused(t *testing.T) {
	f := newFake()
	r := httptest.NewRequest(http.MethodPost, "/api/v1/workloads/wiki/wake", strings.NewReader(strings.Repeat("x", 5000)))
	assert.Equal(t, http.StatusRequestEntityTooLarge, problem(t, serve(api.Config{}, f, r)).Status)
	assert.Empty(t, f.waits)
}

func TestEveryAnswerIsProtected(t *testing.T) {
	for _, path := range []string{"/", "/healthz", "/nowhere", "/api/v1/workloads"} {
		h := get(newFake(), path).Header()
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "DENY", h.Get("X-Frame-Options"))
		assert.Equal(t, "no-store", h.Get("Cache-Control"))
		assert.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		assert.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		assert.Empty(t, h.Get("Access-Control-Allow-Origin"))
	}
}

func TestRequestIDIsJoinedOrMade(t *testing.T) {
	for given, kept := range map[string]bool{"abc-123": true, "": false, "two words": false, "line\nbreak": false, strings.Repeat("x", 129): false} {
		r := httptest.NewRequest(http.MethodGet, "/nowhere", nil)
		r.Header.Set("X-Request-ID", given)
		got := problem(t, serve(api.Config{}, newFake(), r)).RequestID
		require.NotEmpty(t, got)
		assert.Equal(t, kept, got == given, "%q", given)
	}
}
