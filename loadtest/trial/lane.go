//go:build linux

package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rouse-dev/rouse/loadtest/latency"
	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/schedule"
)

// A plan is what the process of a lane is told.
type plan struct {
	Lane     string
	Dir      string
	Address  string
	Target   openloop.Target
	Protocol openloop.Protocol
	Conns    int
	Rate     float64
	Poisson  bool
	Seed     uint64
	Warmup   time.Duration
	Duration time.Duration
	Timeout  time.Duration
	// Burst sends so many at once in place of a rate: as fast as they go.
	Burst int
	// Upstream is where to ask for the socket of the server; empty: the
	// server is another process.
	Upstream      string
	UpstreamDelay time.Duration
	UpstreamSize  int
	// Ours are the processes whose work is part of the comparison, the
	// proxy's and the server's.
	Ours []int
	// Watched are those whose CPU per request is told.
	Watched []int
}

// A Run is what one lane of a trial came to.
type Run struct {
	Report openloop.Report `json:"report"`
	// Served is how many requests the server counted meanwhile; -1: not asked.
	Served  int64   `json:"served"`
	Machine Reading `json:"machine"`
	// Watched is the CPU of the lane's own processes, per request.
	WatchedMicroseconds float64 `json:"watched_cpu_us_per_request,omitempty"`

	intended *latency.Histogram // as in the lane's log
	fresh    bool               // each request has a connection of its own
}

// launch makes one run in a process of its own, born on the generator's CPU.
func launch(ctx context.Context, cfg Config, places Places, p plan) (*Run, error) {
	side := cfg.Direct
	if p.Lane == Routed {
		side = cfg.Routed
	}
	p.Address, p.Target, p.Watched = side.Address, side.Target, side.PIDs
	p.Protocol, p.Conns, p.Timeout = cfg.Protocol, cfg.Conns, cfg.Timeout
	p.Rate, p.Poisson, p.Warmup, p.Duration = cfg.Rate, cfg.Poisson, cfg.Warmup, cfg.Duration
	p.Upstream, p.UpstreamDelay, p.UpstreamSize = cfg.Upstream, cfg.UpstreamDelay, cfg.UpstreamSize
	if places.Known {
		p.Ours = append(append([]int{}, cfg.Direct.PIDs...), cfg.Routed.PIDs...)
	}
	before, err := served(ctx, cfg.Served)
	if err != nil {
		return nil, err
	}
	run, err := execute(ctx, cfg.Lane, places.Generator, p)
	if err != nil {
		return nil, err
	}
	if cfg.Served == "" {
		return run, nil
	}
	after, err := served(ctx, cfg.Served)
	run.Served = after - before - 1
	return run, err
}

func served(ctx context.Context, url string) (int64, error) {
	if url == "" {
		return 0, nil
	}
	return openloop.Served(ctx, url)
}

func execute(ctx context.Context, command []string, cpus []int, p plan) (*Run, error) {
	input, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var output, talk bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &output, &talk
	// On one CPU the runtime would have one thread at a time, and a collection
	// of garbage would hold up the generator's.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	if err := startOn(cmd, cpus); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, strings.TrimSpace(talk.String())), context.Cause(ctx))
	}
	run := &Run{fresh: p.Protocol == openloop.Fresh}
	if err := json.Unmarshal(output.Bytes(), run); err != nil {
		return nil, fmt.Errorf("what the lane said: %w", err)
	}
	_, err = run.readLog(p.Dir)
	return run, err
}

// startOn starts a process on some CPUs: it inherits those of the thread that
// starts it.
func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with its affinity
		set := cpuSet(cpus)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			started <- fmt.Errorf("run on CPUs %v: %w", cpus, err)
			return
		}
		started <- cmd.Start()
	}()
	return <-started
}

// readLog takes the intended latencies from the lane's log, and gives all of
// it.
func (r *Run) readLog(dir string) (map[string]*latency.Histogram, error) {
	file, err := os.Open(filepath.Join(dir, openloop.LogName))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	merged, err := latency.MergeLog(file)
	if err != nil {
		return nil, err
	}
	r.intended = latency.New()
	if h := merged[openloop.TagIntended]; h != nil {
		r.intended = h
	}
	return merged, nil
}

// RunLane is the process of a lane: it reads its plan, makes the run, leaves
// the files in the plan's directory, and writes what it came to.
func RunLane(ctx context.Context, in io.Reader, out io.Writer) error {
	var p plan
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return fmt.Errorf("lane: plan: %w", err)
	}
	run, err := p.run(ctx)
	if err != nil {
		return fmt.Errorf("lane: %w", err)
	}
	if err := json.NewEncoder(out).Encode(run); err != nil {
		return fmt.Errorf("lane: %w", err)
	}
	return nil
}

func (p plan) run(ctx context.Context) (*Run, error) {
	files, err := openloop.NewFiles(p.Dir)
	if err != nil {
		return nil, err
	}
	upstream, release, err := p.upstream()
	if err != nil {
		return nil, errors.Join(err, files.Close(nil))
	}
	defer release()
	meter := newMeter(p.Ours, p.Watched)
	if p.Burst > 0 { // everything is where this is
		meter.cpus = allowedCPUs(0)
	}
	meter.start()
	result, err := openloop.Run(ctx, openloop.Config{
		Address: p.Address, Protocol: p.Protocol, Schedule: p.schedule(), Targets: []openloop.Target{p.Target},
		Conns: p.Conns, Warmup: p.Warmup, Timeout: p.Timeout, Upstream: upstream,
		Every: files.Interval, WarmedUp: func() {
			if p.Warmup > 0 {
				meter.start()
			}
		},
	})
	if err != nil {
		return nil, errors.Join(err, files.Close(nil))
	}
	reading, watched := meter.stop(result.CPU)
	run := &Run{Report: result.Report(), Machine: reading, Served: -1}
	if upstream != nil {
		run.Served = upstream.Served
	}
	run.WatchedMicroseconds = float64(watched.Nanoseconds()) / 1e3 / float64(max(1, result.Measured.Started))
	if result.Aborted {
		err = context.Cause(ctx)
	}
	return run, errors.Join(err, files.Close(result))
}

func (p plan) schedule() schedule.Schedule {
	if p.Burst > 0 {
		return schedule.Bursts{Size: p.Burst, Count: 1, Every: time.Millisecond}
	}
	rates := schedule.Constant(p.Rate, p.Warmup+p.Duration)
	rates.Poisson, rates.Seed = p.Poisson, p.Seed
	return rates
}

// upstream is the server in this process; nil if it is another's.
func (p plan) upstream() (u *openloop.Upstream, release func(), err error) {
	if p.Upstream == "" {
		return nil, func() {}, nil
	}
	socket, err := takeSocket(p.Upstream)
	if err != nil {
		return nil, nil, err
	}
	return &openloop.Upstream{Listener: int(socket.Fd()), Delay: p.UpstreamDelay, Size: p.UpstreamSize}, func() { _ = socket.Close() }, nil
}
