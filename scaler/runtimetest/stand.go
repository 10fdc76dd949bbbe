package runtimetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// A stand is a runtime that is watched, as the scaler watches it.
type stand struct {
	t  *testing.T
	rt scaler.Runtime

	mu     sync.Mutex
	events []scaler.Event // all so far; guarded by mu
}

// stage makes a runtime that knows the workloads, and returns once it is
// watched and has resynced.
func stage(t *testing.T, f Fixture, ws ...workload.Workload) *stand {
	t.Helper()
	s := &stand{t: t, rt: f.New(t)}
	s.rt.Update(ws)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.rt.Watch(ctx, s.hear) }()
	t.Cleanup(func() {
		cancel()
		err := <-ended
		if err != nil {
			assert.ErrorIs(t, err, context.Canceled)
		}
	})
	s.await(func(e scaler.Event) bool { return e.Kind == scaler.Resynced })
	return s
}

func (s *stand) hear(e scaler.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *stand) heard() []scaler.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// await returns the first event that fits, whether it came already or not.
func (s *stand) await(fits func(scaler.Event) bool) scaler.Event {
	s.t.Helper()
	var found scaler.Event
	eventually(s.t, func() error {
		events := s.heard()
		if i := slices.IndexFunc(events, fits); i >= 0 {
			found = events[i]
			return nil
		}
		return fmt.Errorf("no such event among %+v", events)
	})
	return found
}

// died awaits the end of one start.
func (s *stand) died(i scaler.Instance) scaler.Event {
	s.t.Helper()
	return s.await(func(e scaler.Event) bool { return e.Kind == scaler.Died && e.ID == i.ID })
}

// start brings up the one replica of w.
func (s *stand) start(w workload.Workload) scaler.Instance {
	s.t.Helper()
	got, err := s.rt.Start(s.t.Context(), w)
	require.NoError(s.t, err)
	require.Len(s.t, got, 1)
	return got[0]
}

// startAndStop brings it up and ends it again.
func (s *stand) startAndStop(w workload.Workload) scaler.Instance {
	s.t.Helper()
	i := s.start(w)
	s.stop(w)
	return i
}

func (s *stand) stop(w workload.Workload) {
	s.t.Helper()
	require.NoError(s.t, s.rt.Stop(s.t.Context(), w))
}

// running lists what runs of w and is not paused.
func (s *stand) running(w workload.Workload) []scaler.Instance {
	s.t.Helper()
	all, err := s.rt.List(s.t.Context())
	require.NoError(s.t, err)
	return slices.DeleteFunc(all, func(i scaler.Instance) bool { return i.Workload != w.Name || i.Paused })
}

// same checks that two views of one start agree. Times may differ in how they
// are held.
func same(t *testing.T, want, got scaler.Instance) {
	t.Helper()
	require.Equal(t, want.Workload, got.Workload)
	require.Equal(t, want.ID, got.ID)
	require.Equal(t, want.Address, got.Address)
	require.True(t, want.StartedAt.Equal(got.StartedAt), "started at %v and %v", want.StartedAt, got.StartedAt)
}

// answers waits until the instance answers, and returns what it says.
func (s *stand) answers(i scaler.Instance) report {
	s.t.Helper()
	var r report
	eventually(s.t, func() (err error) {
		r, err = get(i.Address, "/")
		return err
	})
	return r
}

// eventually tries until it works; the last error is what a failure shows.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatalf("gave up after %v: %v", patience, err)
}

// A report is the part of the sample workload's answer that tells one start
// from another.
type report struct {
	ListeningAt int64 `json:"listening_at_unix_ns"`
}

// get asks by hand: the scaler's packages do not speak HTTP.
func get(address, path string) (report, error) {
	conn, err := net.DialTimeout("tcp", address, 250*time.Millisecond)
	if err != nil {
		return report{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return report{}, err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.0\r\n\r\n", path); err != nil {
		return report{}, err
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return report{}, err
	}
	_, body, _ := bytes.Cut(answer, []byte("\r\n\r\n"))
	var r report
	if err := json.Unmarshal(body, &r); err != nil {
		return report{}, fmt.Errorf("answer %q: %w", answer, err)
	}
	return r, nil
}
