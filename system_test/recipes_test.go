package system_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/internal/proxytest"
	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// What docs/recipes says to write into a proxy's configuration does what it
// says there, with the proxy itself.
func TestRecipes(t *testing.T) {
	t.Parallel()
	recipes := map[string]struct {
		run      func(t testing.TB, addr, conf string) proxytest.Running
		language string // of the recipe's code
		from     string // what the proxy listens to in the recipe
		to       string // in the test
	}{
		"nginx":   {proxytest.NginxWith, "nginx", "listen 80;", "listen ADDR;"},
		"haproxy": {proxytest.HaproxyWith, "haproxy", "bind :80", "bind ADDR"},
		"caddy":   {proxytest.CaddyWith, "caddyfile", "*.apps.example.com {", "http://*.test:PORT {\n\tbind 127.0.0.1"},
		"traefik": {proxytest.TraefikWith, "yml", `":80"`, `"ADDR"`},
	}
	for name, recipe := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, plan{role: "up", dir: t.TempDir(), config: mimics(t, "first", "plain", "events", "socket")})
			addr := freeAddr(t)
			conf := changed(t, block(t, name, recipe.language), "127.0.0.1:8080", strings.TrimPrefix(n.traffic, "http://"))
			conf = strings.Replace(conf, "127.0.0.1:8081", strings.TrimPrefix(n.admin, "http://"), 1)
			conf = changed(t, conf, recipe.from, strings.NewReplacer("ADDR", addr, "PORT", portOf(addr)).Replace(recipe.to))
			proxy := *n
			proxy.traffic = "http://" + recipe.run(t, addr, conf).Addr
			eventually(t, "it has its routes", func() bool {
				res, err := proxy.open(t.Context(), http.MethodGet, "first.test", "/", nil)
				return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
			})
			for _, phase := range []string{"asleep", "ready"} {
				n.waitPhase("plain", phase)
				tellsOfTheClient(t, &proxy, "plain.test")
				n.waitPhase("events", phase)
				talkEvents(t, &proxy, "events.test")
				n.waitPhase("socket", phase)
				talkWebSocket(t, &proxy, "socket.test")
			}
		})
	}
}

// block is the code of that language in a recipe.
func block(t *testing.T, recipe, language string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/recipes/" + recipe + ".md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, found, 1, language)
	return found[0][1]
}

func changed(t *testing.T, conf, from, to string) string {
	t.Helper()
	require.Equal(t, 1, strings.Count(conf, from), "%q in:\n%s", from, conf)
	return strings.Replace(conf, from, to, 1)
}

// tellsOfTheClient sends a request from an address that the proxy has not. The
// workload hears of it, and of the host and the scheme as the client used them.
func tellsOfTheClient(t *testing.T, n *node, host string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.traffic+"/told", nil)
	require.NoError(t, err)
	req.Host = host
	elsewhere := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{DialContext: elsewhere.DialContext}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	var told mimic.Report
	require.NoError(t, json.NewDecoder(res.Body).Decode(&told))
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, host, told.Host)
	assert.Equal(t, []string{host}, told.Headers["X-Forwarded-Host"])
	assert.Equal(t, []string{"http"}, told.Headers["X-Forwarded-Proto"])
	assert.Equal(t, "127.0.0.2, 127.0.0.1", strings.Join(told.Headers["X-Forwarded-For"], ", "))
}
