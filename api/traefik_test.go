package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
)

func TestTraefikGetsARouteForEachWorkloadWithAHost(t *testing.T) {
	f := newFake()
	f.workloads = []api.Workload{
		{Name: "wiki", Hosts: []string{"wiki.example.com"}},
		{Name: "app", Hosts: []string{"b.example.com", "*.a.example.com"}, Path: "/app"},
		{Name: "db"},
	}
	w := get(f, "/api/v1/traefik?url=http://rouse:8080&entrypoint=web&entrypoint=websecure&certresolver=le&middleware=auth@file")
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	assert.JSONEq(t, `{"http": {
		"routers": {
			"rouse-wiki": {"rule": "Host(\"wiki.example.com\")", "service": "rouse",
				"entryPoints": ["web", "websecure"], "middlewares": ["auth@file"], "tls": {"certResolver": "le"}},
			"rouse-app": {"rule": "(HostRegexp(\"^[^.]+\\\\.a\\\\.example\\\\.com$\") || Host(\"b.example.com\")) && (Path(\"/app\") || PathPrefix(\"/app/\"))", "service": "rouse",
				"entryPoints": ["web", "websecure"], "middlewares": ["auth@file"], "tls": {"certResolver": "le"}}
		},
		"services": {"rouse": {"loadBalancer": {"servers": [{"url": "http://rouse:8080"}]}}}
	}}`, w.Body.String())
}

func TestTraefikIsToldWhatItAsksWrong(t *testing.T) {
	for query, want := range map[string]string{
		"":                                "want that of the gateway",
		"?url=rouse:8080":                 "like http://rouse:8080",
		"?url=ftp://rouse":                "like http://rouse:8080",
		"?url=http://rouse&entrypoints=a": "is unknown: want url, entrypoint",
	} {
		w := get(newFake(), "/api/v1/traefik"+query)
		assert.Equal(t, http.StatusBadRequest, w.Code, query)
		assert.Contains(t, decode[api.ProblemDetails](t, w.Body).Detail, want, query)
	}
}
