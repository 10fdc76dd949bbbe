package system_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/proxytest"
	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// with sends one request to the node with headers, as names and values in turn.
func (n *node) with(host, path string, header ...string) answer {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.traffic+path, nil)
	require.NoError(n.t, err)
	req.Host = host
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := client.Do(req)
	require.NoError(n.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(n.t, err)
	return answer{status: res.StatusCode, header: res.Header, body: string(body)}
}

// behind is the node as a proxy in front of it has it.
func (n *node) behind(run func(testing.TB, string, string) proxytest.Running, addr, conf string) *node {
	front := *n
	front.traffic = "http://" + run(n.t, addr, conf).Addr
	return &front
}

// loginService lets in who has the cookie, and tells who that is.
func loginService(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie, err := r.Cookie("session"); err != nil || cookie.Value != "ada" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, "log in first")
			return
		}
		w.Header().Set("X-Auth-Request-User", "ada")
		w.Header().Set("Remote-User", "ada")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestLoginRecipes(t *testing.T) {
	login := loginService(t)
	check := func(t *testing.T, n, front *node, host string) {
		t.Helper()
		name, _, _ := strings.Cut(host, ".")
		stranger := front.with(host, "/")
		assert.Equal(t, http.StatusUnauthorized, stranger.status, stranger.body)
		n.waitPhase(name, "asleep")
		v, err := n.view(name)
		require.NoError(t, err)
		assert.Zero(t, v.Generation, "a stranger wakes nothing")
		known := front.with(host, "/", "Cookie", "session=ada")
		require.Equal(t, http.StatusOK, known.status, known.body)
		var told mimic.Report
		require.NoError(t, json.Unmarshal([]byte(known.body), &told))
		assert.Equal(t, []string{"ada"}, told.Headers["Remote-User"])
	}
	n := start(t, plan{role: "up", dir: t.TempDir(), config: mimics(t, "one", "two", "wiki")})
	traffic := strings.TrimPrefix(n.traffic, "http://")

	addr := freeAddr(t)
	conf := changed(t, block(t, "login", "nginx"), "127.0.0.1:8080", traffic)
	conf = changed(t, changed(t, conf, "127.0.0.1:4180", login), "listen 80;", "listen "+addr+";")
	check(t, n, n.behind(proxytest.NginxWith, addr, conf), "one.test")

	addr = freeAddr(t)
	conf = changed(t, block(t, "login", "caddyfile"), "127.0.0.1:8080", traffic)
	conf = changed(t, changed(t, conf, "127.0.0.1:9091", login), "*.apps.example.com {", "http://*.test:"+portOf(addr)+" {\n\tbind 127.0.0.1")
	check(t, n, n.behind(proxytest.CaddyWith, addr, conf), "two.test")

	own := changed(t, changed(t, block(t, "login", "yaml"), "127.0.0.1:9091", login), "container: wiki",
		fmt.Sprintf("process: { command: [%q, mimic, --listen, \"127.0.0.1:{port}\"] }", binary(t, "loadtest")))
	own = changed(t, own, "wiki.apps.example.com", "wiki.test")
	alone := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + own})
	check(t, alone, alone, "wiki.test")
}

func TestCDNRecipe(t *testing.T) {
	settings := changed(t, block(t, "cdn", "yaml"), "hold_timeout: 25s", "hold_timeout: 1s")
	slow := fmt.Sprintf("workloads:\n  - { name: slow, host: [slow.test], process: { command: [%q, mimic, --listen, \"127.0.0.1:{port}\", --startup, 6s] } }\n", binary(t, "loadtest"))
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + settings + slow})
	addr := freeAddr(t)
	cdn := n.behind(proxytest.NginxWith, addr, fmt.Sprintf(`
server {
  listen %s;
  location / { proxy_pass %s; proxy_set_header Host $host; proxy_read_timeout 3s; }
}`, addr, n.traffic))

	call := cdn.with("slow.test", "/", "Accept", "application/json")
	assert.Equal(t, http.StatusServiceUnavailable, call.status, "it is Rouse that answers")
	assert.Equal(t, "application/problem+json", call.header.Get("Content-Type"))
	assert.NotEmpty(t, call.header.Get("Retry-After"))

	page := cdn.with("slow.test", "/", "Accept", "text/html", "Sec-Fetch-Mode", "navigate")
	assert.Equal(t, http.StatusServiceUnavailable, page.status)
	assert.Contains(t, page.body, "slow is waking up")
	assert.Equal(t, "no-store", page.header.Get("Cache-Control"))

	n.waitPhase("slow", "ready")
	assert.Equal(t, http.StatusOK, cdn.with("slow.test", "/").status, "the wake went on")
}

func TestMonitorRecipe(t *testing.T) {
	n := start(t, plan{role: "up", dir: t.TempDir(), config: noDocker + block(t, "monitors", "yaml") + processConfig(t, "tool", "    idle_timeout: 2s\n")})
	const monitor = "Uptime-Kuma/1.23.0"
	for range 3 {
		assert.Equal(t, http.StatusOK, n.with("tool.localhost", "/", "User-Agent", monitor).status, "asleep is well")
		assert.Equal(t, http.StatusOK, n.with("tool.localhost", "/healthz").status)
	}
	n.waitPhase("tool", "asleep")
	require.Equal(t, http.StatusOK, n.get("tool.localhost", "/").status)
	n.waitPhase("tool", "ready")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		for ctx.Err() == nil {
			n.with("tool.localhost", "/", "User-Agent", monitor)
			time.Sleep(100 * time.Millisecond)
		}
	}()
	n.waitPhase("tool", "asleep") // however often it is looked at
}
