package system_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What happened while a receiver was away comes once it is back, also when
// all of Rouse was killed meanwhile, each event of the history in its order.
func TestWebhookMissesNothingWhenRouseIsKilled(t *testing.T) {
	var back atomic.Bool
	var mu sync.Mutex
	var kinds []string
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !back.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		var e struct{ ID, Kind string }
		assert.NoError(t, json.Unmarshal(body, &e))
		assert.Equal(t, r.Header.Get("webhook-id"), e.ID)
		mu.Lock()
		defer mu.Unlock()
		kinds = append(kinds, e.Kind)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	config := fmt.Sprintf(`docker: { host: "" }
webhooks:
  - { url: %q, secret_file: secret, kinds: [woken, ready, slept] }
workloads:
  - name: wiki
    host: [wiki.localhost]
    process: { command: [%q, mimic, --listen, "127.0.0.1:{port}"] }
`, receiver.URL, binary(t, "loadtest"))
	n := start(t, plan{role: "up", dir: dir, config: config})
	require.Equal(t, http.StatusOK, n.get("wiki.localhost", "/").status)
	eventually(t, "it is in the history", func() bool {
		resp, err := client.Get(n.admin + "/api/v1/events?follow=false")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "event: ready")
	})
	n.kill()
	back.Store(true)
	n = start(t, plan{role: "up", dir: dir, config: config})
	eventually(t, "the receiver has what it missed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(kinds) >= 2 && kinds[0] == "woken" && kinds[1] == "ready"
	})
	putToSleep(t, n, []string{"wiki"})
	eventually(t, "and what comes", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return kinds[len(kinds)-1] == "slept"
	})
}

// A receiver that wants no more is a problem that is shown at once.
func TestWebhookThatIsGoneIsAProblem(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusGone)
	}))
	t.Cleanup(receiver.Close)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600))
	n := start(t, plan{role: "up", dir: dir, config: fmt.Sprintf(`docker: { host: "" }
webhooks: [{ name: home, url: %q, secret_file: secret }]
workloads:
  - name: wiki
    host: [wiki.localhost]
    process: { command: [%q, mimic, --listen, "127.0.0.1:{port}"] }
`, receiver.URL, binary(t, "loadtest"))})
	require.Equal(t, http.StatusOK, n.get("wiki.localhost", "/").status)
	eventually(t, "the problem is shown", func() bool {
		resp, err := client.Get(n.admin + "/api/v1/workloads")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && strings.Contains(string(text), "webhook home: the receiver answered 410")
	})
	require.Equal(t, http.StatusOK, n.get("wiki.localhost", "/").status)
}
