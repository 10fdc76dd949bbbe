package scaler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An instant is a platform, a prober and a store without any time of their
// own: what is left is the scaler's.
type instant struct {
	mu      sync.Mutex
	running bool
	state   workload.State
}

func (p *instant) replica() scaler.Instance {
	return scaler.Instance{Workload: "wiki", Replica: workload.Replica{ID: "1", Address: "192.0.2.1:80"}}
}

func (p *instant) Start(context.Context, workload.Workload) ([]scaler.Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = true
	return []scaler.Instance{p.replica()}, nil
}

func (p *instant) Stop(context.Context, workload.Workload) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	return nil
}

func (p *instant) List(context.Context) ([]scaler.Instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running {
		return nil, nil
	}
	return []scaler.Instance{p.replica()}, nil
}

func (p *instant) Watch(ctx context.Context, sink func(scaler.Event)) error {
	sink(scaler.Event{Kind: scaler.Resynced})
	<-ctx.Done()
	return nil
}

func (p *instant) Logs(context.Context, workload.Workload, int) ([]string, error) { return nil, nil }
func (p *instant) Update([]workload.Workload)                                     {}

func (p *instant) Probe(context.Context, workload.Workload, workload.Replica) error { return nil }

func (p *instant) Drain(_ context.Context, _ string, _ uint64, gateways []string) (all []workload.Drained, err error) {
	for _, g := range gateways {
		all = append(all, workload.Drained{Gateway: g})
	}
	return all, nil
}

func (p *instant) State(context.Context, string) (workload.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state, nil
}

func (p *instant) Current(ctx context.Context, name string) (workload.State, error) {
	return p.State(ctx, name)
}

func (p *instant) PutState(_ context.Context, s workload.State) (workload.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Revision != p.state.Revision {
		return s, scaler.ErrConflict
	}
	s.Revision++
	p.state = s
	return s, nil
}

func (p *instant) scaler() (s *scaler.Scaler, stop func()) {
	board := workload.NewBoard()
	s = scaler.New(scaler.Config{Node: "home", Logger: slog.New(slog.DiscardHandler)}, scaler.Deps{
		Runtimes: map[string]scaler.Runtime{"process": p}, Prober: p, Store: p, Drainer: p, Board: board,
	})
	s.Update([]workload.Workload{{Name: "wiki", Node: "home", Runtime: "process", WakeTimeout: time.Minute}})
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(ctx) })
	return s, func() { cancel(); run.Wait() }
}

func ExampleScaler_Wake() {
	p := &instant{}
	s, stop := p.scaler()
	defer stop()
	v := s.Wake(context.Background(), workload.Wake{ID: "1", Workload: "wiki", Trigger: workload.TriggerAPI})
	st, _ := p.State(context.Background(), "wiki")
	fmt.Println(v.Kind == scaler.Done, st.Phase, st.Replicas[0].Address)
	// Output: true ready 192.0.2.1:80
}

func ExampleStartError() {
	err := fmt.Errorf("start wiki: %w", &scaler.StartError{
		Reason: workload.Reason{Code: workload.ReasonStartError, Detail: "port 80 is taken"},
		Err:    errors.New("bind: address already in use"),
	})
	var told *scaler.StartError
	fmt.Println(errors.As(err, &told), err)
	// Output: true start wiki: start_error: port 80 is taken: bind: address already in use
}

// What a cold start costs beyond the platform, the probe and the store: the
// wake, two writes, the start and the proof. ready-ns is the part from Start
// returning to Ready being written.
func BenchmarkWake(b *testing.B) {
	p := &instant{}
	s, stop := p.scaler()
	defer stop()
	b.ReportAllocs()
	var afterStart time.Duration
	for b.Loop() {
		v := s.Wake(context.Background(), workload.Wake{ID: "1", Workload: "wiki", Trigger: workload.TriggerRequest})
		if v.Kind != scaler.Done {
			b.Fatal(v)
		}
		b.StopTimer()
		p.mu.Lock()
		afterStart += p.state.Since.Sub(p.state.Wake.StartedAt)
		p.running = false
		p.state = workload.State{Workload: "wiki", Phase: workload.Asleep, Revision: p.state.Revision + 1}
		p.mu.Unlock()
		b.StartTimer()
	}
	b.ReportMetric(float64(afterStart.Nanoseconds())/float64(b.N), "ready-ns/op")
}
