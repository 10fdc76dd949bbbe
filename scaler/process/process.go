//go:build linux

// Package process runs workloads as plain processes of this machine: the
// scaler.Runtime for everything that is a command.
//
// It owns the processes it starts, each the leader of a process group of its
// own, which is signalled, paused and ended as a whole; their logs; and one
// small record for each that runs. By the records a runtime finds what an
// earlier one started, also after that was killed. A record is believed only
// if the process has the same number, the same start time and the same boot
// as the one that was recorded, so a reused number is never mistaken for it.
// Where the scaler dies in the instant between a start and its record, the
// process is found by its environment (ROUSE_PROCESS).
//
// It guarantees that of one workload at most one process runs, that Stop
// returns once nothing of the group is left, and that the end of a process
// is told at once and by the kernel, not by polling. The exit code of one
// that was adopted is not known: it is -1.
//
// It knows nothing of readiness, phases or requests.
package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/rouse-dev/rouse/scaler"
	"github.com/rouse-dev/rouse/workload"
)

// ErrClosed is returned by Start and Stop once Close or Detach was called.
var ErrClosed = errors.New("the process runtime is closed")

// Config says where a Runtime keeps what has to outlive it.
type Config struct {
	// Dir holds logs and records. It is made if it does not exist.
	Dir string
	// Logger is slog.Default when nil.
	Logger *slog.Logger
}

// A Runtime runs workloads as processes. It is safe for concurrent use.
type Runtime struct {
	dir      string
	log      *slog.Logger
	detached chan struct{} // closed: leave all processes alone
	owners   sync.WaitGroup

	mu     sync.Mutex // guards everything below
	known  map[string]bool
	slots  map[string]*slot // workload -> where its process goes
	ports  map[int]bool     // taken by a process that runs or is being started
	subs   map[*subscription]struct{}
	closed bool
}

var _ scaler.Runtime = (*Runtime)(nil)

// A slot has room for the one process of a workload.
type slot struct {
	turn chan struct{} // holds one token: start and stop take turns
	proc *proc         // nil: nothing runs; guarded by Runtime.mu
}

// New makes a runtime and adopts what an earlier one with the same directory
// started and still runs. It starts and ends nothing. A Close or Detach has
// to follow.
func New(cfg Config) (*Runtime, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("make the directory of the processes: %w", err)
	}
	r := &Runtime{
		dir: dir, log: cfg.Logger, detached: make(chan struct{}),
		known: map[string]bool{}, slots: map[string]*slot{}, ports: map[int]bool{},
		subs: map[*subscription]struct{}{},
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	if err := recordLost(dir); err != nil {
		return nil, err
	}
	names, err := recorded(dir)
	if err != nil {
		return nil, fmt.Errorf("read the records of the processes: %w", err)
	}
	for _, name := range names {
		r.current(name)
	}
	return r, nil
}

// Update replaces the workloads that List and Watch are about.
func (r *Runtime) Update(ws []workload.Workload) {
	known := make(map[string]bool, len(ws))
	for _, w := range ws {
		known[w.Name] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = known
}

// List returns the processes that run or are paused.
func (r *Runtime) List(ctx context.Context) ([]scaler.Instance, error) {
	r.mu.Lock()
	names := make([]string, 0, len(r.known))
	for name := range r.known {
		names = append(names, name)
	}
	r.mu.Unlock()
	var list []scaler.Instance
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		if p := r.current(name); p != nil && !p.ended() {
			list = append(list, p.instance())
		}
	}
	return list, nil
}

// slot finds the place of a workload, or makes it.
func (r *Runtime) slot(name string) *slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slotLocked(name)
}

func (r *Runtime) slotLocked(name string) *slot {
	s := r.slots[name]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1)}
		s.turn <- struct{}{}
		r.slots[name] = s
	}
	return s
}

// enter waits for the turn to start or stop a workload; leave gives it back.
func (s *slot) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slot) leave() { s.turn <- struct{}{} }

// current is the process of a workload, adopted by its record if it is not
// known yet: another runtime may have started it. Nil if there is none.
func (r *Runtime) current(name string) *proc {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.slotLocked(name)
	if s.proc != nil || r.closed {
		return s.proc
	}
	rec, err := loadRecord(r.dir, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	p, err := adopt(rec, err)
	if err != nil {
		r.log.Info("record of a process that is gone", "workload", name, "pid", rec.PID, "reason", err)
		removeRecord(r.dir, rec)
		return nil
	}
	r.log.Info("process adopted", "workload", name, "pid", p.PID, "port", p.Port)
	r.ownLocked(p)
	return p
}

// ownLocked puts the process into its slot and gives it its owner. The caller
// holds mu.
func (r *Runtime) ownLocked(p *proc) {
	r.slots[p.Workload].proc = p
	r.ports[p.Port] = true
	r.owners.Add(1)
	go func() {
		defer r.owners.Done()
		r.own(p)
	}()
}

// own watches over a process to its end.
func (r *Runtime) own(p *proc) {
	ended := p.supervise(r.detached, func(code int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.emitLocked(p, scaler.Event{Kind: scaler.Died, ExitCode: code})
	})
	if ended {
		removeRecord(r.dir, p.record)
	}
	p.left = !ended
	r.mu.Lock()
	r.slots[p.Workload].proc = nil
	delete(r.ports, p.Port)
	r.mu.Unlock()
	close(p.gone)
}
