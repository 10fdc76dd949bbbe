package system_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// probeEnv makes this program, started again, the probe of a storm: what
// sends a storm must not delay what measures it, so they are two processes.
const probeEnv = "ROUSE_TEST_PROBE"

// A lane is one way to an awake workload.
type lane struct {
	Name string
	URL  string
	Host string
}

// A sample is one request of the probe.
type sample struct {
	lane int
	due  time.Time
	lag  time.Duration // how late the probe itself was
	took time.Duration // from due to the end of the answer
	good bool
}

// A probe asks all of its lanes steadily.
type probe struct {
	lanes []lane
	cmd   *exec.Cmd
	stdin io.Closer
	out   io.Reader
}

// probePlan is what the probe's process is told.
type probePlan struct {
	Lanes []lane
	Every time.Duration // between two requests of one lane
}

func startProbe(t *testing.T, p probePlan) *probe {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	cmd := exec.Command("nice", "-n", "-10", os.Args[0]) // without the right to it: as it is
	cmd.Env = append(os.Environ(), probeEnv+"="+string(text))
	cmd.Stderr = io.Discard
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &probe{p.Lanes, cmd, stdin, out}
}

// end stops the probe and gives all that it saw.
func (p *probe) end(t *testing.T) []sample {
	t.Helper()
	require.NoError(t, p.stdin.Close())
	var samples []sample
	lines := bufio.NewScanner(p.out)
	for lines.Scan() {
		var s sample
		var due, lag, took int64
		_, err := fmt.Sscan(lines.Text(), &s.lane, &due, &lag, &took, &s.good)
		require.NoError(t, err, lines.Text())
		s.due, s.lag, s.took = time.Unix(0, due), time.Duration(lag), time.Duration(took)
		samples = append(samples, s)
	}
	return samples
}

// probeMain sends until its input ends, and then writes what it saw.
func probeMain(text string) int {
	var p probePlan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	out := bufio.NewWriter(os.Stdout)
	for _, s := range p.run(ctx) {
		fmt.Fprintln(out, s.lane, s.due.UnixNano(), int64(s.lag), int64(s.took), s.good)
	}
	if out.Flush() != nil {
		return 1
	}
	return 0
}

// A shot is a request that is due.
type shot struct {
	number int64
	due    time.Time
	lag    time.Duration
}

// run sends at fixed times, whatever became of earlier requests: a request
// that finds all connections busy waits, and the wait is part of its latency.
func (p probePlan) run(ctx context.Context) []sample {
	const connections = 16
	var mu sync.Mutex
	var samples []sample
	var workers sync.WaitGroup
	queues := make([]chan shot, len(p.Lanes))
	for i, l := range p.Lanes {
		queues[i] = make(chan shot, 1<<16) // what a stall of minutes leaves
		asker := newAsker(l)
		for range connections {
			workers.Go(func() {
				for shot := range queues[i] {
					s := asker.ask(shot)
					s.lane = i
					mu.Lock()
					samples = append(samples, s)
					mu.Unlock()
				}
			})
		}
	}
	p.pace(ctx, queues)
	for _, q := range queues {
		close(q)
	}
	workers.Wait()
	slices.SortFunc(samples, func(a, b sample) int { return a.due.Compare(b.due) })
	return samples
}

// pace hands out the requests when they are due; which lane goes first
// changes each time.
func (p probePlan) pace(ctx context.Context, queues []chan shot) {
	sleep := sharpSleep()
	began := time.Now()
	lanes := len(queues)
	step := p.Every / time.Duration(lanes)
	for i := 0; ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * step)
		sleep(time.Until(due))
		round := i / lanes
		queues[(i+round)%lanes] <- shot{int64(i), due, time.Since(due)}
	}
}

// An asker sends the requests of one lane.
type asker struct {
	lane   lane
	client *http.Client
}

func newAsker(l lane) *asker {
	return &asker{l, &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true},
	}}
}

func (a *asker) ask(s shot) sample {
	result := sample{due: s.due, lag: s.lag}
	result.good = a.answered(fmt.Sprintf("probe-%d", s.number))
	result.took = time.Since(s.due)
	return result
}

// answered reports that the workload answered this very request.
func (a *asker) answered(id string) bool {
	req, err := http.NewRequest(http.MethodGet, a.lane.URL+"/", nil)
	if err != nil {
		return false
	}
	req.Host = a.lane.Host
	req.Header.Set("X-Request-Id", id)
	resp, err := a.client.Do(req)
	if err != nil {
		return false
	}
	return resp.StatusCode == http.StatusOK && strings.Contains(drainAll(resp), `"`+id+`"`)
}
