package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/workload"
)

const webhookPatience = 30 * time.Second

// A receiver verifies what it gets, and answers with its status.
type receiver struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	status int
	tries  int
	got    []api.Event // those answered with 2xx
}

func receive(t *testing.T, status int) *receiver {
	t.Helper()
	r := &receiver{t: t, status: status}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the sender was ended
	}
	verifier, err := standard.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	assert.NoError(r.t, err)
	assert.NoError(r.t, verifier.Verify(body, req.Header))
	var e api.Event
	assert.NoError(r.t, json.Unmarshal(body, &e))
	assert.Equal(r.t, req.Header.Get("webhook-id"), e.ID)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	if r.status < 300 {
		r.got = append(r.got, e)
	}
	w.WriteHeader(r.status)
}

func (r *receiver) answer(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status = status
}

func (r *receiver) tried() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tries
}

// generations are those of what was taken, which tell the events apart.
func (r *receiver) generations() []uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gs []uint64
	for _, e := range r.got {
		gs = append(gs, e.Generation)
	}
	return gs
}

func (r *receiver) awaits(t *testing.T, generations ...uint64) {
	t.Helper()
	require.EventuallyWithT(t, func(t *assert.CollectT) { assert.Equal(t, generations, r.generations()) },
		webhookPatience, 5*time.Millisecond)
}

// A sender is one process's webhooks.
type sender struct {
	*webhooks
	stop func()
}

// send runs the webhooks of one process until the test ends, or until stop.
func send(t *testing.T, s *eventstest.Server, name string, hooks ...WebhookConfig) sender {
	t.Helper()
	cfg := defaultConfig()
	cfg.Gateway, cfg.Webhooks = name, hooks
	c := newCore(cfg, io.Discard)
	c.bus = s.Bus(name)
	h, err := newWebhooks(c, func() {})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return sender{h, stop}
}

func hookOf(t *testing.T, name string, r *receiver) WebhookConfig {
	t.Helper()
	return WebhookConfig{Name: name, URL: r.URL, SecretFile: secretFile(t, soundSecret), place: "rouse.yaml:3:5"}
}

func happen(t *testing.T, s *eventstest.Server, kind workload.EventKind, generations ...uint64) {
	t.Helper()
	b := s.Bus("scaler")
	defer b.Close()
	for _, generation := range generations {
		require.NoError(t, b.RecordEvent(t.Context(), workload.Event{Workload: "wiki", Kind: kind, At: at0(0), Generation: generation}))
	}
}

func TestWebhookGetsEventsInTheFormOfTheAPI(t *testing.T) {
	s := eventstest.Start(t)
	r := receive(t, 204)
	all, some := hookOf(t, "all", r), hookOf(t, "some", receive(t, 200))
	some.Kinds = []workload.EventKind{workload.EventSlept}
	send(t, s, "one", all, some)
	b := s.Bus("scaler")
	for _, e := range []workload.Event{readyEvent("w1"), failedEvent("w2")} {
		require.NoError(t, b.RecordEvent(t.Context(), e))
	}
	r.awaits(t, 4, 2)
	for i, e := range []workload.Event{readyEvent("w1"), failedEvent("w2")} {
		want := api.EventOf(e)
		want.ID = r.got[i].ID
		wanted, err := json.Marshal(want)
		require.NoError(t, err)
		got, err := json.Marshal(r.got[i])
		require.NoError(t, err)
		assert.JSONEq(t, string(wanted), string(got))
	}
}

// A receiver that fails, and one that never answers, hold up neither the
// others nor the end of the process; what they missed comes after a restart.
func TestDeadReceiverHoldsNobodyUpAndMissesNothing(t *testing.T) {
	s := eventstest.Start(t)
	dead, sound := receive(t, 503), receive(t, 200)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	hooks := []WebhookConfig{hookOf(t, "dead", dead), hookOf(t, "sound", sound), hookOf(t, "silent", dead)}
	hooks[2].URL = silent.URL
	first := send(t, s, "one", hooks...)
	happen(t, s, workload.EventReady, 1, 2, 3)
	sound.awaits(t, 1, 2, 3)
	require.Eventually(t, func() bool { return dead.tried() > 0 }, webhookPatience, time.Millisecond)
	first.stop()
	happen(t, s, workload.EventSlept, 4)
	s.Restart()
	dead.answer(200)
	send(t, s, "two", hooks...)
	dead.awaits(t, 1, 2, 3, 4)
	sound.awaits(t, 1, 2, 3, 4)
}

func TestOneProcessOfManySendsAnEvent(t *testing.T) {
	s := eventstest.Start(t)
	r := receive(t, 200)
	hook := hookOf(t, "hook", r)
	for _, name := range []string{"one", "two", "three"} {
		send(t, s, name, hook)
	}
	happen(t, s, workload.EventReady, 1, 2, 3, 4, 5, 6, 7, 8)
	r.awaits(t, 1, 2, 3, 4, 5, 6, 7, 8)
	assert.Equal(t, 8, r.tried())
}

func TestGoneStopsTheWebhookUntilTheNextStart(t *testing.T) {
	s := eventstest.Start(t)
	r, other := receive(t, 410), receive(t, 200)
	hooks := []WebhookConfig{hookOf(t, "hook", r), hookOf(t, "other", other)}
	first := send(t, s, "one", hooks...)
	happen(t, s, workload.EventReady, 1, 2)
	other.awaits(t, 1, 2)
	require.Eventually(t, func() bool { return len(first.problems()) == 1 }, webhookPatience, time.Millisecond)
	assert.Equal(t, workload.Problem{
		Place: "rouse.yaml:3:5", Message: "webhook hook: the receiver answered 410: it wants no more messages",
		Fix: "remove it; or mend the receiver and start rouse again, which sends what waits",
	}, first.problems()[0])
	assert.Equal(t, 1, r.tried())
	first.stop()
	r.answer(200)
	again := send(t, s, "two", hooks...)
	r.awaits(t, 1, 2)
	assert.Empty(t, again.problems())
}

// An event that NATS hands out again while it is being delivered here is not
// delivered twice at a time.
func TestEventIsDeliveredOnceAtATime(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-end
	}))
	t.Cleanup(slow.Close)
	s := eventstest.Start(t)
	hook := hookOf(t, "hook", receive(t, 200))
	hook.URL = slow.URL
	h := send(t, s, "one", hook)
	e := events.Recorded{Event: readyEvent("w1"), ID: "id", At: time.Now()}
	first := make(chan events.Verdict)
	go func() {
		v, _ := h.send(context.Background(), h.hooks[0], e)
		first <- v
	}()
	<-began
	v, goesOn := h.send(t.Context(), h.hooks[0], e)
	assert.Equal(t, events.Later(webhookRetry), v)
	assert.True(t, goesOn)
	close(end)
	assert.Equal(t, events.Done(), <-first)
}

// Rights that are older than webhooks are a problem that is told, and end
// nothing.
func TestQueueThatMayNotBeServedIsAProblem(t *testing.T) {
	s := eventstest.Start(t, natsd.User{Name: "scaler", Password: "s", Publish: []string{"rouse.>", "$JS.API.STREAM.INFO.*"}})
	s.Bus("provisioner")
	cfg := defaultConfig()
	cfg.Webhooks = []WebhookConfig{hookOf(t, "hook", receive(t, 200))}
	c := newCore(cfg, io.Discard)
	c.bus = s.Connect(events.Config{URL: "nats://scaler:s@" + s.Addr(), Name: "one", Role: "scaler"})
	h, err := newWebhooks(c, func() {})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.run(ctx) }()
	require.Eventually(t, func() bool { return len(h.problems()) == 1 }, webhookPatience, time.Millisecond)
	assert.Contains(t, h.problems()[0].Error(), "rouse.yaml:3:5: webhook hook: denied by the nats server")
	assert.Contains(t, h.problems()[0].Error(), "deploy/nats/accounts.conf")
	cancel()
	require.NoError(t, <-ended)
}
