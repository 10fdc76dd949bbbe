package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/api"
	"github.com/rouse-dev/rouse/api/client"
	"github.com/rouse-dev/rouse/workload"
)

// backend is a Backend of one workload, wiki.
type backend struct {
	*api.History
	err    error
	checks []api.Check
	wait   time.Duration
	lines  int
}

func (b *backend) Workloads(context.Context) ([]api.Workload, error) {
	return []api.Workload{{Name: "wiki", Phase: workload.Ready}}, b.err
}

func (b *backend) Workload(_ context.Context, name string) (api.Workload, error) {
	if name != "wiki" {
		return api.Workload{}, api.ErrNoWorkload
	}
	return api.Workload{Name: name, Phase: workload.Ready}, b.err
}

func (b *backend) Problems(context.Context) []workload.Problem { return nil }

func (b *backend) Findings(context.Context) ([]api.Finding, error) { return nil, b.err }

func (b *backend) Wake(ctx context.Context, name string, wait time.Duration) (api.Workload, error) {
	b.wait = wait
	return b.Workload(ctx, name)
}

func (b *backend) Keep(ctx context.Context, name string, span time.Duration) (time.Time, error) {
	_, err := b.Workload(ctx, name)
	return time.Unix(0, 0).UTC().Add(span), err
}

func (b *backend) Sleep(context.Context, string) error { return b.err }

func (b *backend) Logs(_ context.Context, _ string, lines int) ([]string, error) {
	b.lines = lines
	return []string{"hello"}, b.err
}

func (b *backend) Ready(context.Context) []api.Check { return b.checks }

func (b *backend) Config(context.Context) (any, error) { return map[string]int{"a": 1}, b.err }

// start serves b, with a token, and gives a client of it.
func start(t *testing.T, b *backend) *client.Client {
	t.Helper()
	b.History = api.NewHistory(0, 0)
	s := httptest.NewServer(api.New(api.Config{Token: "s3cret"}, b))
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{Base: s.URL, Token: "s3cret"})
	require.NoError(t, err)
	return c
}

func woken(id string, at time.Time) workload.Event {
	return workload.Event{Workload: "wiki", Kind: workload.EventWoken, At: at, Wake: &workload.Wake{ID: id, RequestedAt: at}}
}

func TestClientReadsEveryAnswer(t *testing.T) {
	b := &backend{checks: []api.Check{{Name: "nats", OK: true}}}
	c := start(t, b)
	ctx := t.Context()
	b.Add(woken("w/1", time.Unix(1, 0)))

	list, err := c.Workloads(ctx)
	require.NoError(t, err)
	assert.Equal(t, "wiki", list.Workloads[0].Name)

	w, err := c.Workload(ctx, "wiki")
	require.NoError(t, err)
	assert.Equal(t, workload.Ready, w.Phase)

	_, err = c.Wake(ctx, "wiki", 90*time.Second)
	require.NoError(t, err)
	assert.Equal(t, 90*time.Second, b.wait)

	w, err = c.Sleep(ctx, "wiki")
	require.NoError(t, err)
	assert.Equal(t, "wiki", w.Name)

	w, err = c.Keep(ctx, "wiki", 90*time.Minute)
	require.NoError(t, err)
	assert.Equal(t, time.Unix(5400, 0).UTC(), w.KeptUntil)

	lines, err := c.Logs(ctx, "wiki", 7)
	require.NoError(t, err)
	assert.Equal(t, []string{"hello"}, lines)
	assert.Equal(t, 7, b.lines)

	wakes, err := c.Wakes(ctx, "wiki")
	require.NoError(t, err)
	assert.Len(t, wakes, 1)
	wakes, err = c.Wakes(ctx, "blog")
	require.NoError(t, err)
	assert.Empty(t, wakes)

	wake, err := c.WakeByID(ctx, "w/1")
	require.NoError(t, err)
	assert.Equal(t, "w/1", wake.ID, "an ID is one part of the path, whatever is in it")

	config, err := c.Config(ctx)
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":1}`, string(config))

	require.NoError(t, c.Health(ctx))
	ready, err := c.Ready(ctx)
	require.NoError(t, err)
	assert.Equal(t, api.Readiness{Ready: true, Checks: b.checks}, ready)
	b.checks[0].OK = false
	ready, err = c.Ready(ctx)
	require.NoError(t, err)
	assert.False(t, ready.Ready)
}

func TestClientGivesTheErrorsOfTheServerBack(t *testing.T) {
	b := &backend{}
	c := start(t, b)
	_, err := c.Workload(t.Context(), "blog")
	require.ErrorIs(t, err, api.ErrNoWorkload)
	for _, want := range []error{api.ErrInUse, api.ErrNotReady, api.ErrFailed, api.ErrUnavailable} {
		b.err = fmt.Errorf("wiki: %w", want)
		_, err := c.Wake(t.Context(), "wiki", 0)
		require.ErrorIs(t, err, want)
		assert.NotErrorIs(t, err, client.ErrUnreachable)
		assert.Equal(t, b.err.Error(), err.Error())
		var p *api.ProblemDetails
		require.ErrorAs(t, err, &p)
		assert.Equal(t, "wiki", p.Workload)
	}
}

func TestClientWithoutTheTokenIsToldSo(t *testing.T) {
	s := httptest.NewServer(api.New(api.Config{Token: "s3cret"}, &backend{}))
	defer s.Close()
	c, err := client.New(client.Config{Base: s.URL})
	require.NoError(t, err)
	_, err = c.Workloads(t.Context())
	var p *api.ProblemDetails
	require.ErrorAs(t, err, &p)
	assert.Equal(t, http.StatusUnauthorized, p.Status)
	require.ErrorAs(t, c.Events(t.Context(), api.EventQuery{}, nil), &p)
	require.NoError(t, c.Health(t.Context()), "health needs none")
}

func TestClientTellsAnUnreachableServerFromOneThatRefuses(t *testing.T) {
	s := httptest.NewServer(nil)
	c, err := client.New(client.Config{Base: s.URL})
	require.NoError(t, err)
	_, err = c.Workloads(t.Context()) // an empty mux answers 404 in plain text
	require.ErrorIs(t, err, client.ErrUnreachable)
	assert.Contains(t, err.Error(), "something else answers there")
	require.ErrorIs(t, c.Health(t.Context()), client.ErrUnreachable)
	_, err = c.Ready(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
	s.Close()
	for _, err := range []error{
		c.Health(t.Context()),
		second(c.Workloads(t.Context())),
		second(c.Ready(t.Context())),
		c.Events(t.Context(), api.EventQuery{Follow: true}, nil),
	} {
		require.ErrorIs(t, err, client.ErrUnreachable)
		assert.Contains(t, err.Error(), "cannot reach Rouse at "+s.URL+": dial")
	}
}

func second[T any](_ T, err error) error { return err }

func TestClientTakesAnAddressWithoutAScheme(t *testing.T) {
	for base, want := range map[string]string{
		"127.0.0.1:8081":        "http://127.0.0.1:8081",
		"https://admin.example": "https://admin.example",
		"http://host/rouse":     "http://host/rouse",
	} {
		c, err := client.New(client.Config{Base: base})
		require.NoError(t, err)
		assert.Equal(t, want, c.Base())
	}
	for _, base := range []string{"", "ftp://host", "http://", "http://a b", "unix:///run/rouse"} {
		_, err := client.New(client.Config{Base: base})
		assert.Error(t, err, base)
	}
}

func TestEventsFollowsResumesAndTellsOfTheEnd(t *testing.T) {
	b := &backend{History: api.NewHistory(0, 0)}
	h := api.New(api.Config{}, b)
	s := httptest.NewServer(h)
	defer s.Close()
	c, err := client.New(client.Config{Base: s.URL})
	require.NoError(t, err)
	for i := range 3 {
		b.Add(woken(fmt.Sprint("w", i), time.Unix(int64(i), 0)))
	}

	var got []api.Event
	keep := func(e api.Event) error { got = append(got, e); return nil }
	require.NoError(t, c.Events(t.Context(), api.EventQuery{Last: 2}, keep))
	require.Len(t, got, 2)
	assert.Equal(t, "w1", got[0].Wake.ID)

	q := api.EventQuery{After: got[0].ID, Workload: "wiki", Follow: true}
	err = c.Events(t.Context(), q, func(e api.Event) error {
		assert.Equal(t, "w2", e.Wake.ID)
		s.CloseClientConnections()
		return nil
	})
	assert.ErrorIs(t, err, client.ErrUnreachable)
	assert.ErrorIs(t, err, client.ErrEnded)

	boom := errors.New("boom")
	assert.Equal(t, boom, c.Events(t.Context(), api.EventQuery{Last: 1, Follow: true}, func(api.Event) error { return boom }))
}

func TestClientBelievesNothingThatIsNotJSON(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("data: <html>\n\n"))
	}))
	defer s.Close()
	c, err := client.New(client.Config{Base: s.URL})
	require.NoError(t, err)
	_, err = c.Workloads(t.Context())
	require.ErrorIs(t, err, client.ErrUnreachable)
	require.ErrorIs(t, c.Events(t.Context(), api.EventQuery{}, nil), client.ErrUnreachable)
}
