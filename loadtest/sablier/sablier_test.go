package sablier_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/loadtest/sablier"
)

// A fake is a Rouse with two workloads, on one address.
type fake struct {
	mu         sync.Mutex
	generation int // of the one that wakes; guarded by mu
	asleep     bool
	sleeps     int
	coldCalls  int
	// What it gets wrong.
	neverIsReady, lies, staysAwake bool // stays awake while it says that it sleeps
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/sleep"):
		f.asleep = true
		f.sleeps++
	case strings.HasSuffix(path, "/never/wake"):
	case strings.HasSuffix(path, "/wake"):
		f.wake()
	case strings.HasSuffix(path, "/workloads/never"):
		f.view(w, !f.neverIsReady, "waking")
	case strings.HasSuffix(path, "/workloads/app"):
		f.view(w, f.asleep, "asleep")
	case r.URL.Query().Get("names") == "never":
		f.answer(w, "not-ready", http.StatusOK)
	case strings.HasPrefix(path, "/api/"):
		f.call(w)
		f.answer(w, "ready", http.StatusOK)
	case r.Host == "never.localhost":
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		f.call(w)
		fmt.Fprint(w, `{"listening_at_unix_ns":1}`)
	}
}

func (f *fake) call(http.ResponseWriter) {
	if f.asleep {
		f.coldCalls++
		f.wake()
	}
}

func (f *fake) wake() {
	if f.asleep {
		f.asleep = false
		if !f.staysAwake {
			f.generation++
		}
	}
}

func (f *fake) view(w http.ResponseWriter, is bool, phase string) {
	if !is {
		phase = "ready"
	}
	fmt.Fprintf(w, `{"phase":%q,"generation":%d}`, phase, f.generation)
}

func (f *fake) answer(w http.ResponseWriter, state string, status int) {
	if f.lies {
		state = "not-" + strings.TrimPrefix(state, "not-")
	}
	w.Header().Set("X-Sablier-Session-Status", state)
	w.WriteHeader(status)
}

func config(t *testing.T, f *fake) sablier.Config {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return sablier.Config{
		Proxy: server.URL, API: server.URL, Admin: server.URL, Workload: "app", Group: "g", Host: "app.localhost",
		Never: "never", NeverHost: "never.localhost", PID: os.Getpid(), Conns: 2, Duration: 20 * time.Millisecond, Cold: 2, Calls: 50,
		Timeout: 20 * time.Second,
	}
}

func TestEveryScenarioIsMadeAsItSays(t *testing.T) {
	f := &fake{}
	s, err := sablier.Run(t.Context(), config(t, f))
	require.NoError(t, err)
	var made []string
	for _, r := range s.Rows {
		made = append(made, r.Subject+", "+r.Scenario)
		assert.Equal(t, r.Calls, r.Times.Count)
		assert.Positive(t, r.MemoryBefore)
		assert.Positive(t, r.MemoryAfter)
		if strings.Contains(r.Scenario, "cold") {
			assert.EqualValues(t, 2, r.Calls)
			assert.Zero(t, r.Rate)
		} else {
			assert.Positive(t, r.Rate, r.Scenario)
		}
	}
	assert.Equal(t, []string{
		"Rouse as the proxy, blocking warm", "Rouse as the proxy, blocking cold", "Rouse as the proxy, dynamic warm", "Rouse as the proxy, dynamic not-ready",
		"the compatible API, blocking warm", "the compatible API, blocking cold", "the compatible API, dynamic warm", "the compatible API, dynamic not-ready",
		"the compatible API, blocking warm, 50 calls",
	}, made)
	assert.EqualValues(t, 50, s.Rows[8].Calls)
	assert.Equal(t, 4, f.sleeps, "before each cold call")
	assert.Equal(t, 4, f.coldCalls)

	dir := t.TempDir()
	require.NoError(t, s.Save(dir))
	text, err := os.ReadFile(filepath.Join(dir, "table.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| the compatible API | dynamic not-ready |")
	encoded, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	require.NoError(t, err)
	var back sablier.Summary
	require.NoError(t, json.Unmarshal(encoded, &back))
	assert.Equal(t, s.Rows, back.Rows)
}

// There is no figure for what is not the scenario.
func TestWhatIsNotTheScenarioIsAnError(t *testing.T) {
	for want, f := range map[string]*fake{
		"never is ready and not waking":   {neverIsReady: true},
		"not the answer of this scenario": {lies: true},
		"the call was not cold":           {staysAwake: true},
	} {
		_, err := sablier.Run(t.Context(), config(t, f))
		require.ErrorContains(t, err, want)
	}
}
