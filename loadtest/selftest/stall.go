//go:build linux

package selftest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rouse-dev/rouse/loadtest/http1"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// ask is a request for a path that must come back with its id.
func ask(s *server, path string) openloop.Target {
	return openloop.Target{
		Request: http1.Request{Host: s.address(), Path: path},
		Expect:  openloop.Expect{Echo: openloop.InBody},
	}
}

// A freezer answers at once, but for one stretch of time, in which nothing
// is answered.
type freezer struct {
	after, length time.Duration
	once          sync.Once
	gate          sync.RWMutex // held while it is frozen
	thawed        chan struct{}
}

func (f *freezer) behave(conn net.Conn, _, id string) bool {
	f.once.Do(func() { go f.freeze() })
	f.gate.RLock()
	defer f.gate.RUnlock()
	return answer(conn, "200 OK", id)
}

func (f *freezer) freeze() {
	defer close(f.thawed)
	time.Sleep(f.after)
	f.gate.Lock()
	time.Sleep(f.length)
	f.gate.Unlock()
}

// stall freezes a server for one part in ten. One request in ten is due
// while it is frozen, and they wait from 0 to the whole of it: of all
// requests, one in twenty waits for half of it or more.
func stall(ctx context.Context, cfg Config) ([]Check, error) {
	f := &freezer{after: 4 * cfg.Stall, length: cfg.Stall, thawed: make(chan struct{})}
	s, err := serve(f.behave)
	if err != nil {
		return nil, err
	}
	defer s.close()
	r, err := openloop.Run(ctx, openloop.Config{
		Address: s.address(), Schedule: schedule.Constant(cfg.Rate, 10*cfg.Stall), Conns: 32,
		Targets: []openloop.Target{ask(s, "/")}, Timeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	if r.Measured.Started > 0 {
		<-f.thawed
	}
	p95 := r.Times.Intended.Quantile(0.95)
	return []Check{{
		Name: fmt.Sprintf("a server frozen for %v in %v", cfg.Stall, 10*cfg.Stall),
		Want: fmt.Sprintf("an intended p95 of at least %v, no failure, no new connection", cfg.Stall/2),
		Got: fmt.Sprintf("%v, p99 %v, %d failures, %d connections (by the send of each request, as most tools count, p95 %v)",
			p95.Round(time.Microsecond), r.Times.Intended.Quantile(0.99).Round(time.Microsecond),
			r.Measured.Failed(), r.DialsMeasured, r.Times.Service.Quantile(0.95).Round(time.Microsecond)),
		OK: p95 >= cfg.Stall/2 && r.Measured.Failed() == 0 && r.Measured.Conserved() && r.DialsMeasured == 0,
	}}, nil
}
