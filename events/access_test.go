package events_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/events/natsd"
	"github.com/rouse-dev/rouse/workload"
)

// role gives the rights that are shipped in deploy/nats to an embedded server.
func role(t *testing.T, name string) natsd.User {
	t.Helper()
	for _, u := range accounts(t).Users {
		if u.Username == name {
			require.NotNil(t, u.Permissions.Response, "requests that arrive may be answered")
			return natsd.User{Name: name, Password: u.Password, Publish: u.Permissions.Publish.Allow, Subscribe: u.Permissions.Subscribe.Allow}
		}
	}
	require.FailNow(t, "no such role", name)
	panic("unreachable")
}

// accounts reads the file as the server does.
func accounts(t *testing.T) *server.Options {
	t.Helper()
	t.Setenv("GATEWAY_PASSWORD", "g")
	t.Setenv("SCALER_PASSWORD", "s")
	opts, err := server.ProcessConfigFile("../deploy/nats/accounts.conf")
	require.NoError(t, err)
	assert.Zero(t, opts.HTTPPort, "no monitoring port")
	return opts
}

func as(t *testing.T, s *eventstest.Server, user, password string) *events.Bus {
	t.Helper()
	b, err := events.Connect(t.Context(), events.Config{
		URL: "nats://" + user + ":" + password + "@" + s.Addr(), Name: user + "-1", Role: user,
	})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	return b
}

func TestRolesWorkWithTheirRightsAlone(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"), role(t, "scaler"))
	gateway, scaler := as(t, s, "gateway", "g"), as(t, s, "scaler", "s")
	provisioned := make(chan error, 1)
	go func() { provisioned <- gateway.Provision(within(t, patience)) }() // waits for the scaler
	require.NoError(t, scaler.Provision(within(t, patience)))
	require.NoError(t, receive(t, provisioned, patience))

	v := follow(t, gateway)
	history := make(chan workload.Event, 10)
	background(t, func(ctx context.Context) error {
		return gateway.FollowEvents(ctx, events.EventFilter{}, func(e workload.Event) { history <- e })
	})
	gate(t, gateway, "gateway-1", 0)
	background(t, func(ctx context.Context) error {
		return scaler.ServeSleep(ctx, "n", func(context.Context, string) error { return nil })
	})
	serve(t, scaler, "n", func(_ context.Context, w workload.Wake) events.Verdict {
		mustPut(t, scaler, workload.State{Workload: w.Workload, Phase: workload.Ready})
		record(t, scaler, w.Workload, workload.EventReady, 1)
		return events.Done()
	})
	queued, _ := serveEvents(t, scaler, events.EventQueue{Name: "hook", From: time.Now(), Kinds: []workload.EventKind{workload.EventReady, workload.EventSlept}})
	require.NoError(t, scaler.ReplaceWorkloads(t.Context(), "n", named("wiki")))
	awaitNames(t, lists(t, gateway), "n/wiki")

	problems := make(chan []workload.Problem, 10)
	background(t, func(ctx context.Context) error {
		return gateway.FollowProblems(ctx, func(ps []workload.Problem) { problems <- ps })
	})
	require.NoError(t, scaler.ReplaceProblems(t.Context(), "n", []workload.Problem{{Place: "box", Message: "bad port"}}))
	eventually(t, patience, func() bool { return len(receive(t, problems, patience)) == 1 }, "problems are told")

	publish(t, gateway, "n", "wiki")
	eventually(t, patience, func() bool { return v.of("wiki").Phase == workload.Ready }, "it is woken")
	receive(t, history, patience)
	assert.Equal(t, "wiki", receive(t, queued, patience).Workload)
	_, err := scaler.Drain(within(t, patience), "wiki", 1, []string{"gateway-1"})
	require.NoError(t, err)
	eventually(t, patience, func() bool { return gateway.AskSleep(t.Context(), "n", "wiki") == nil }, "it sleeps")
	require.NoError(t, gateway.PublishActivity(workload.Activity{Gateway: "gateway-1"}))
	record(t, gateway, "wiki", workload.EventReleased, 1)
	require.NoError(t, gateway.Err())
	require.NoError(t, scaler.Err())
}

func TestWhatARoleMayNotIsAClearErrorAtOnce(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"), role(t, "scaler"))
	s.Bus("provisioner")
	gateway := as(t, s, "gateway", "g")
	ctx := within(t, patience)
	for name, try := range map[string]func() error{
		"write a state": func() error {
			_, err := gateway.PutState(ctx, workload.State{Workload: "wiki"})
			return err
		},
		"write a workload": func() error { return gateway.PutWorkload(ctx, workload.Workload{Name: "wiki"}) },
		"take wakes": func() error {
			return gateway.ServeWakes(ctx, "n", 1, func(context.Context, workload.Wake) events.Verdict { return events.Done() })
		},
		"take events": func() error {
			return gateway.ServeEvents(ctx, events.EventQueue{Name: "q"}, func(context.Context, events.Recorded) events.Verdict { return events.Done() })
		},
		"answer as a scaler": func() error {
			return gateway.ServeSleep(ctx, "n", func(context.Context, string) error { return nil })
		},
		"drain": func() error {
			_, err := gateway.Drain(ctx, "wiki", 1, []string{"g"})
			return err
		},
		"write history": func() error {
			return gateway.RecordEvent(ctx, workload.Event{Workload: "wiki", Kind: workload.EventReady})
		},
	} {
		begun := time.Now()
		err := try()
		require.ErrorIs(t, err, events.ErrDenied, name)
		assert.Less(t, time.Since(begun), prompt, name)
	}
	require.ErrorIs(t, gateway.Err(), events.ErrDenied, "readiness shows it")
}

func TestRoleThatHearsNoAnswersSaysSo(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"), role(t, "scaler"))
	s.Bus("provisioner")
	b, err := events.Connect(t.Context(), events.Config{ // the rights are for _INBOX_gateway
		URL: "nats://gateway:g@" + s.Addr(), Name: "g", Role: "wrong",
	})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	for range 2 { // the server tells it once
		require.ErrorIs(t, b.PublishWake(t.Context(), "n", workload.Wake{Workload: "wiki"}), events.ErrDenied)
	}
}

func TestConnectTellsWhatIsWrong(t *testing.T) {
	s := eventstest.Start(t, role(t, "gateway"))
	broken := filepath.Join(t.TempDir(), "creds")
	require.NoError(t, os.WriteFile(broken, []byte("not credentials"), 0o600))
	for name, tc := range map[string]struct {
		cfg events.Config
		is  error
	}{
		"wrong password": {events.Config{URL: "nats://gateway:no@" + s.Addr()}, events.ErrDenied},
		"no password":    {events.Config{URL: s.URL()}, events.ErrDenied},
		"no file":        {events.Config{URL: s.URL(), Creds: "/does/not/exist"}, os.ErrNotExist},
		"nowhere":        {events.Config{}, nil},
		"malformed":      {events.Config{URL: "nats://user:secret@host:port"}, nil},
	} {
		_, err := events.Connect(within(t, patience), tc.cfg)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		assert.NotContains(t, err.Error(), "secret", name)
		if tc.is != nil {
			require.ErrorIs(t, err, tc.is, name)
		}
	}
}

func TestConnectWaitsForAServerThatIsNotThereYet(t *testing.T) {
	s := eventstest.Start(t)
	s.Stop()
	_, err := events.Connect(within(t, 200*time.Millisecond), events.Config{URL: s.URL()})
	require.ErrorIs(t, err, context.DeadlineExceeded)

	connected := make(chan error, 1)
	go func() {
		// The first of two is never there.
		b, err := events.Connect(within(t, patience), events.Config{URL: "127.0.0.1:1, " + s.URL()})
		if err == nil {
			b.Close()
		}
		connected <- err
	}()
	s.Resume()
	require.NoError(t, receive(t, connected, patience))
}

func TestMissingStreamIsAClearError(t *testing.T) {
	s := eventstest.Start(t)
	b, err := events.Connect(t.Context(), events.Config{Server: s})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	_, err = b.State(t.Context(), "wiki")
	require.ErrorIs(t, err, events.ErrNoStream)
	_, err = b.PutState(t.Context(), workload.State{Workload: "wiki"})
	require.ErrorIs(t, err, events.ErrNoStream)
	_, err = b.Events(t.Context(), events.EventFilter{})
	require.ErrorIs(t, err, events.ErrNoStream)
	require.ErrorIs(t, b.PutWorkload(t.Context(), workload.Workload{Name: "wiki"}), events.ErrNoStream)
}

func TestLostConnectionIsAClearErrorAndNothingIsSentLater(t *testing.T) {
	s := eventstest.Start(t)
	b, witness := s.TCP("gateway"), s.Bus("witness")
	s.Stop()
	eventually(t, patience, func() bool { return !b.Connected() }, "the loss is noticed")
	begun := time.Now()
	require.ErrorIs(t, b.PublishWake(t.Context(), "n", workload.Wake{Workload: "stale"}), events.ErrDisconnected)
	assert.Less(t, time.Since(begun), prompt)
	require.ErrorIs(t, b.PublishActivity(workload.Activity{Gateway: "g"}), events.ErrDisconnected)
	_, err := b.PutState(within(t, 100*time.Millisecond), workload.State{Workload: "wiki"})
	require.ErrorIs(t, err, events.ErrDisconnected, "surely not stored")

	s.Resume()
	eventually(t, patience, func() bool { return b.Connected() && witness.Connected() }, "both are back")
	got := wakesOf(t, witness, "n")
	publish(t, b, "n", "fresh")
	assert.Equal(t, "fresh", receive(t, got, patience).Workload)
	assert.Empty(t, got)
}

func TestReconnectedIsTold(t *testing.T) {
	s := eventstest.Start(t)
	told := make(chan struct{}, 10)
	s.Connect(events.Config{URL: s.URL(), Reconnected: func() { told <- struct{}{} }})
	s.Restart()
	receive(t, told, patience)
}

func TestClosedBusEndsWhatBlocks(t *testing.T) {
	s := eventstest.Start(t)
	b := s.Bus("rouse")
	ended := make(chan error, 8)
	for _, run := range []func() error{
		func() error { return b.FollowStates(t.Context(), func(workload.State) {}, nil) },
		func() error { return b.FollowWorkloads(t.Context(), func([]workload.Workload) {}) },
		func() error { return b.FollowActivity(t.Context(), func(workload.Activity, time.Time) {}) },
		func() error {
			return b.ServeWakes(t.Context(), "n", 1, func(context.Context, workload.Wake) events.Verdict { return events.Done() })
		},
		func() error {
			return b.ServeEvents(t.Context(), events.EventQueue{Name: "q"}, func(context.Context, events.Recorded) events.Verdict { return events.Done() })
		},
	} {
		go func() { ended <- run() }()
	}
	publish(t, b, "n", "wiki")
	b.Close()
	b.Close()
	for range 5 {
		require.ErrorIs(t, receive(t, ended, patience), events.ErrClosed)
	}
	require.ErrorIs(t, b.Err(), events.ErrClosed)
	require.ErrorIs(t, b.PublishWake(t.Context(), "n", workload.Wake{Workload: "wiki"}), events.ErrClosed)
}
