package events_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/events"
	"github.com/rouse-dev/rouse/events/eventstest"
	"github.com/rouse-dev/rouse/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 20 * time.Second // for what must happen
	prompt   = 2 * time.Second  // for what must happen without waiting out a timeout
)

// background runs a blocking part until the test ends, or until stop, and
// fails the test when it returns an error.
func background(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, within time.Duration, condition func() bool, msg string) {
	t.Helper()
	require.Eventually(t, condition, within, 2*time.Millisecond, msg)
}

func receive[T any](t *testing.T, c <-chan T, within time.Duration) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(within):
		require.FailNow(t, "nothing received", "within %s", within)
		panic("unreachable")
	}
}

// A view is what a follower was told last.
type view struct {
	mu     sync.Mutex
	states map[string]workload.State
	resets int
}

func follow(t *testing.T, b *events.Bus) *view {
	t.Helper()
	v := &view{states: map[string]workload.State{}}
	background(t, func(ctx context.Context) error { return b.FollowStates(ctx, v.observe, v.reset) })
	return v
}

// observe drops old news, as a gate does.
func (v *view) observe(s workload.State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.Revision > v.states[s.Workload].Revision {
		v.states[s.Workload] = s
	}
}

func (v *view) reset() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.resets++
	for name, s := range v.states {
		s.Revision = 0
		v.states[name] = s
	}
}

func (v *view) of(name string) workload.State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.states[name]
}

func (v *view) all() map[string]workload.State {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.states)
}

func (v *view) timesReset() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.resets
}

// mustPut writes on top of whatever is stored, through trouble.
func mustPut(t *testing.T, b *events.Bus, s workload.State) workload.State {
	t.Helper()
	var stored workload.State
	eventually(t, patience, func() bool {
		now, err := b.State(t.Context(), s.Workload)
		if err != nil {
			return false
		}
		s.Revision = now.Revision
		stored, err = b.PutState(t.Context(), s)
		return err == nil
	}, "state is written")
	return stored
}

// admin is a plain client, to do what operators do.
func admin(t *testing.T, s *eventstest.Server) jetstream.JetStream {
	t.Helper()
	user, password := s.Credentials()
	closed := make(chan struct{})
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo(user, password),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }))
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close(); <-closed })
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}
