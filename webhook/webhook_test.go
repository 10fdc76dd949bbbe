package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	first  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	second = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD+xkPZfGLiRA="
)

// A receiver answers with each of its statuses once, and with the last one
// from then on.
type receiver struct {
	*httptest.Server
	header http.Header // of its answers

	mu       sync.Mutex
	statuses []int
	got      []*http.Request
	bodies   []string
}

func receive(t *testing.T, statuses ...int) *receiver {
	t.Helper()
	r := &receiver{statuses: statuses, header: http.Header{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got, r.bodies = append(r.got, req), append(r.bodies, string(body))
	for key, values := range r.header {
		w.Header()[key] = values
	}
	w.WriteHeader(r.statuses[0])
	if len(r.statuses) > 1 {
		r.statuses = r.statuses[1:]
	}
}

func (r *receiver) tries() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// A hook is a webhook with its log and its metrics.
type hook struct {
	*webhook.Webhook
	log *bytes.Buffer
	reg *prometheus.Registry
}

func open(t *testing.T, url string, s webhook.Schedule, secrets ...string) hook {
	t.Helper()
	if len(secrets) == 0 {
		secrets = []string{first}
	}
	keys, err := webhook.ParseSecrets(strings.Join(secrets, "\n"))
	require.NoError(t, err)
	h := hook{log: &bytes.Buffer{}, reg: prometheus.NewRegistry()}
	h.Webhook, err = webhook.New(webhook.Config{
		Name: "hook", URL: url, Secrets: keys, Agent: "rouse/test", Schedule: s,
		Logger: slog.New(slog.NewTextHandler(h.log, nil)), Registerer: h.reg,
	})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// counted are the tries by result.
func (h hook) counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := h.reg.Gather()
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		if v := m.GetCounter().GetValue(); v > 0 {
			counts[m.GetLabel()[0].GetValue()] = v
		}
	}
	return counts
}

var quick = webhook.Schedule{First: time.Millisecond, Most: 4 * time.Millisecond}

func message() webhook.Message {
	return webhook.Message{ID: "abc-1", At: time.Now(), Body: []byte(`{"workload":"wiki"}`)}
}

// The specification's own library takes what is sent, with either secret.
func TestMessageIsSignedAsTheSpecificationSays(t *testing.T) {
	r := receive(t, 204)
	h := open(t, r.URL+"/hook?a=b", quick, first, second)
	require.Equal(t, webhook.Delivered, h.Deliver(t.Context(), message()))
	got := r.got[0]
	for _, secret := range []string{first, second} {
		verifier, err := standard.NewWebhook(secret)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify([]byte(r.bodies[0]), got.Header))
		require.Error(t, verifier.Verify([]byte(r.bodies[0]+" "), got.Header))
	}
	stranger, err := standard.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 24)))
	require.NoError(t, err)
	require.Error(t, stranger.Verify([]byte(r.bodies[0]), got.Header))
	assert.Equal(t, http.MethodPost, got.Method)
	assert.Equal(t, "/hook?a=b", got.RequestURI)
	assert.Equal(t, "abc-1", got.Header.Get("webhook-id"))
	assert.Equal(t, "application/json", got.Header.Get("Content-Type"))
	assert.Equal(t, "rouse/test", got.Header.Get("User-Agent"))
	assert.JSONEq(t, `{"workload":"wiki"}`, r.bodies[0])
	assert.Equal(t, map[string]float64{"delivered": 1}, h.counted(t))
	assert.Empty(t, h.log.String())
}

func TestFailedTriesAreRepeatedWithTheSameIDAndBody(t *testing.T) {
	r := receive(t, 500, 429, 503, 502, 302, 404, 200)
	r.header.Set("Location", "/elsewhere")
	h := open(t, r.URL+"/hook", quick)
	require.Equal(t, webhook.Delivered, h.Deliver(t.Context(), message()))
	require.Len(t, r.got, 7)
	verifier, err := standard.NewWebhook(first)
	require.NoError(t, err)
	for i, got := range r.got {
		assert.Equal(t, "/hook", got.URL.Path, "no redirect is followed")
		assert.Equal(t, "abc-1", got.Header.Get("webhook-id"))
		require.NoError(t, verifier.Verify([]byte(r.bodies[i]), got.Header))
	}
	assert.Equal(t, map[string]float64{"delivered": 1, "failed": 6}, h.counted(t))
	assert.Equal(t, 1, strings.Count(h.log.String(), "not delivered"), "told once")
	assert.Contains(t, h.log.String(), "takes messages again")
	require.NoError(t, h.Trouble())
}

func TestConnectionsThatFailAreTroubleWithoutTheURL(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	defer hangs.Close()
	for name, tc := range map[string]struct{ url, message string }{
		"refused": {closed.URL, "connection refused"},
		"hangs":   {hangs.URL, "no answer in time"},
	} {
		s := quick
		s.Answer, s.Alarm = 50*time.Millisecond, time.Nanosecond
		h := open(t, strings.Replace(tc.url, "//", "//user:hunter2@", 1)+"/token", s)
		m := message()
		m.At = time.Now().Add(-25 * time.Hour)
		require.Equal(t, webhook.Dropped, h.Deliver(t.Context(), m), name)
		require.ErrorContains(t, h.Trouble(), tc.message, name)
		for _, secret := range []string{"hunter2", "token"} {
			assert.NotContains(t, h.log.String()+h.Trouble().Error(), secret, name)
		}
		assert.Equal(t, map[string]float64{"dropped": 1}, h.counted(t), name)
	}
}

// A message that a receiver refuses does not hold up the others for ever; one
// that it has no time for is kept.
func TestMessageIsGivenUpWhenItIsRefusedOften(t *testing.T) {
	for status, dropped := range map[int]bool{400: true, 401: true, 422: true, 308: true, 408: false, 429: false, 500: false} {
		r := receive(t, status, status, status, status, 200)
		s := quick
		s.Refusals = 3
		h := open(t, r.URL, s)
		want := map[string]float64{"failed": 4, "delivered": 1}
		outcome := webhook.Delivered
		if dropped {
			want, outcome = map[string]float64{"failed": 2, "dropped": 1}, webhook.Dropped
		}
		assert.Equal(t, outcome, h.Deliver(t.Context(), message()), status)
		assert.Equal(t, want, h.counted(t), status)
	}
}

func TestGoneEndsIt(t *testing.T) {
	r := receive(t, 410)
	h := open(t, r.URL, quick)
	require.Equal(t, webhook.Gone, h.Deliver(t.Context(), message()))
	require.ErrorIs(t, h.Trouble(), webhook.ErrGone)
	assert.Equal(t, map[string]float64{"gone": 1}, h.counted(t))
}

func TestDeliverEndsWithItsContext(t *testing.T) {
	r := receive(t, 500)
	h := open(t, r.URL, webhook.Schedule{First: time.Hour, Most: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan webhook.Outcome, 1)
	go func() { ended <- h.Deliver(ctx, message()) }()
	require.Eventually(t, func() bool { return r.tries() == 1 }, 20*time.Second, time.Millisecond)
	cancel()
	assert.Equal(t, webhook.Interrupted, <-ended)
}

func TestReceiverSaysWhenToComeAgain(t *testing.T) {
	r := receive(t, 503, 200)
	r.header.Set("Retry-After", "1")
	s := quick
	s.Most = time.Hour
	begun := time.Now()
	require.Equal(t, webhook.Delivered, open(t, r.URL, s).Deliver(t.Context(), message()))
	assert.GreaterOrEqual(t, time.Since(begun), time.Second)

	r = receive(t, 503, 200) // but no later than the schedule has it
	r.header.Set("Retry-After", "99999999999")
	require.Equal(t, webhook.Delivered, open(t, r.URL, quick).Deliver(t.Context(), message()))
}

func TestTroubleIsToldOnceItHasLasted(t *testing.T) {
	r := receive(t, 500, 200)
	s := quick
	s.First, s.Most, s.Alarm = time.Hour, time.Hour, time.Hour
	h := open(t, r.URL, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan webhook.Outcome, 1)
	go func() { ended <- h.Deliver(ctx, message()) }()
	require.Eventually(t, func() bool { return h.counted(t)["failed"] == 1 }, 20*time.Second, time.Millisecond)
	require.NoError(t, h.Trouble(), "it is young")
	cancel()
	<-ended
}

func TestBadConfigIsRefused(t *testing.T) {
	key, err := webhook.ParseSecrets(first)
	require.NoError(t, err)
	for _, url := range []string{"", "hooks.example.com/x", "ftp://a/b", "http://", "http://a:hunter2@%zz/"} {
		_, err := webhook.New(webhook.Config{Name: "hook", URL: url, Secrets: key})
		require.ErrorContains(t, err, "webhook hook: not an http or https url", url)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	_, err = webhook.New(webhook.Config{Name: "hook", URL: "https://a"})
	require.ErrorContains(t, err, "no secret")
}

func TestWebhooksShareARegistry(t *testing.T) {
	reg := prometheus.NewRegistry()
	key, err := webhook.ParseSecrets(first)
	require.NoError(t, err)
	for _, name := range []string{"a", "b"} {
		_, err := webhook.New(webhook.Config{Name: name, URL: "https://a", Secrets: key, Registerer: reg})
		require.NoError(t, err)
	}
	assert.Equal(t, 8, testutil.CollectAndCount(reg, "rouse_webhook_deliveries_total"))
}

func TestSecretsAreReadLineByLine(t *testing.T) {
	for text, wrong := range map[string]string{
		first: "", first + "\n": "", "\r\n# old one\r\n  " + second + "\r\n" + first: "",
		"":                                "it has no secret",
		"# nothing":                       "it has no secret",
		first + "\nwhsec_c2hvcnQ=":        "line 2 has 5 bytes where 24 are the least",
		"correct horse battery":           "line 1 is not base64",
		"whpk_" + strings.Repeat("A", 32): "line 1 is not base64",
	} {
		keys, err := webhook.ParseSecrets(text)
		if wrong == "" {
			require.NoError(t, err, text)
			assert.NotEmpty(t, keys)
		} else {
			require.EqualError(t, err, wrong, text)
		}
	}
}
