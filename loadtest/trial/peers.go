//go:build linux

package trial

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// PeersConfig says which proxies to put side by side. Direct, Peers, Upstream,
// Out and Lane must be set.
type PeersConfig struct {
	Direct Side
	// Peers are in front of the same server as Direct; the first is what the
	// others are compared with.
	Peers []Peer
	// Upstream, UpstreamDelay, UpstreamSize, Limits, Out, Lane and Progress are
	// as in Config. The delay is only kept in what is measured at a rate.
	Upstream      string
	UpstreamDelay time.Duration
	UpstreamSize  int
	Limits        Limits
	Out           string
	Lane          []string
	Progress      io.Writer
	// Rounds, in each of which each peer has its turns; 0 is 10.
	Rounds int
	// Requests of a turn for the CPU, over Conns connections, as fast as they
	// go; 0 is 6,000 over 64.
	Requests, Conns int
	// Rate and Duration of a turn for the latency; 0 is 2,000 for 1.5 s.
	Rate     float64
	Duration time.Duration
}

// settle is how long a process that was moved is left alone.
const settle = 50 * time.Millisecond

// A Peer is a proxy with a name.
type Peer struct {
	Name string `json:"name"`
	Side
}

// A Turn is one peer in one round.
type Turn struct {
	Round int    `json:"round"`
	Peer  string `json:"peer"`
	// CPU of the peer's processes for each request, in microseconds, with
	// everything on one core.
	CPU float64 `json:"cpu_us_per_request"`
	// PerSecond is how many that one core has answered.
	PerSecond float64 `json:"per_second"`
	// Added quantiles of the intended latency at the rate, over those of the
	// direct turn of the round, in milliseconds.
	Added [3]float64 `json:"added_p50_p95_p99_ms"`
	// Foreign work meanwhile, in cores: on the one core, and on all at the rate.
	ForeignCPU  float64 `json:"foreign_cores_cpu"`
	ForeignRate float64 `json:"foreign_cores_rate"`
	// Rejected have the reasons why CPU and PerSecond do not count, or Added.
	RejectedCPU  []string `json:"rejected_cpu"`
	RejectedRate []string `json:"rejected_rate"`
}

// A Standing is what one peer's turns come to.
type Standing struct {
	Peer string   `json:"peer"`
	CPU  Estimate `json:"cpu_us_per_request"`
	// Ratio of its CPU to that of the first peer in the same round: what
	// others do to the machine falls on both.
	Ratio     Estimate    `json:"cpu_ratio"`
	PerSecond Estimate    `json:"per_second_one_core"`
	Added     [3]Estimate `json:"added_p50_p95_p99_ms"`
}

// PeersSummary is what the rounds come to.
type PeersSummary struct {
	Schema    string     `json:"schema"`
	Began     time.Time  `json:"began"`
	Ended     time.Time  `json:"ended"`
	Manifest  Manifest   `json:"manifest"`
	Rounds    int        `json:"rounds"`
	Requests  int        `json:"requests"`
	Conns     int        `json:"connections"`
	Rate      float64    `json:"rate"`
	Seconds   float64    `json:"seconds"`
	Delay     float64    `json:"upstream_delay_ms"`
	Standings []Standing `json:"standings"`
	Turns     []Turn     `json:"turns"`
}

// ComparePeers puts proxies side by side, round robin, the order reversed in
// every second round. Two things are measured: the CPU that each request
// costs, by the scheduler's account of the proxy's threads, with generator,
// server and proxy all on one core, which no idle core has to be woken for; and
// the latency added at a rate, with the proxy on a core of its own.
func ComparePeers(ctx context.Context, cfg PeersConfig) (*PeersSummary, error) {
	cfg.Rounds, cfg.Requests, cfg.Conns = cmp.Or(cfg.Rounds, 10), cmp.Or(cfg.Requests, 6000), cmp.Or(cfg.Conns, 64)
	cfg.Rate, cfg.Duration = cmp.Or(cfg.Rate, 2000), cmp.Or(cfg.Duration, 1500*time.Millisecond)
	cfg.Limits = cfg.Limits.filled()
	if len(cfg.Peers) == 0 || cfg.Upstream == "" {
		return nil, errors.New("peers: want peers, and an upstream")
	}
	s := &PeersSummary{
		Schema: "loadtest/peers/1", Began: time.Now(), Rounds: cfg.Rounds, Requests: cfg.Requests, Conns: cfg.Conns,
		Rate: cfg.Rate, Seconds: cfg.Duration.Seconds(), Delay: cfg.UpstreamDelay.Seconds() * 1000,
	}
	for round := range cfg.Rounds {
		if err := s.round(ctx, cfg, round); err != nil {
			return nil, fmt.Errorf("peers: round %d: %w", round+1, err)
		}
	}
	s.Ended = time.Now()
	s.conclude(cfg.Peers)
	return s, nil
}

// round lets each peer have its turns. The direct one at the rate comes
// first and last.
func (s *PeersSummary) round(ctx context.Context, cfg PeersConfig, round int) error {
	order := slices.Clone(cfg.Peers)
	if round%2 == 1 {
		slices.Reverse(order)
	}
	direct, err := cfg.paced(ctx, round, Peer{Name: Direct, Side: cfg.Direct})
	if err != nil {
		return err
	}
	for _, peer := range order {
		turn := Turn{Round: round + 1, Peer: peer.Name}
		busy, err := cfg.busy(ctx, round, peer)
		if err != nil {
			return fmt.Errorf("%s: %w", peer.Name, err)
		}
		paced, err := cfg.paced(ctx, round, peer)
		if err != nil {
			return fmt.Errorf("%s: %w", peer.Name, err)
		}
		turn.fill(cfg.Limits, busy, paced, direct)
		s.Turns = append(s.Turns, turn)
		if cfg.Progress != nil {
			_, _ = fmt.Fprintf(cfg.Progress, "round %d, %s: %.1f µs a request %v, added p50 %.3f ms, p95 %.3f ms %v\n",
				round+1, peer.Name, turn.CPU, turn.RejectedCPU, turn.Added[0], turn.Added[1], turn.RejectedRate)
		}
	}
	return nil
}

func (t *Turn) fill(limits Limits, busy, paced, direct *Run) {
	t.CPU, t.PerSecond = busy.WatchedMicroseconds, busy.Report.Rate
	if elapsed := busy.Report.ElapsedSeconds; elapsed > 0 {
		t.PerSecond = float64(busy.Report.Measured.Answered) / elapsed
	}
	at, base := paced.Report.Intended, direct.Report.Intended
	t.Added = [3]float64{at.P50 - base.P50, at.P95 - base.P95, at.P99 - base.P99}
	t.ForeignCPU, t.ForeignRate = busy.Machine.Foreign, paced.Machine.Foreign
	// Of what is as fast as it goes, the generator has no time to keep, and
	// all of its core is its to use.
	hurried := limits
	hurried.OwnLag, hurried.Generator = time.Hour, math.Inf(1)
	t.RejectedCPU = append([]string{}, busy.faults(hurried)...)
	t.RejectedRate = append(paced.faults(limits), prefixed("direct: ", direct.faults(limits))...)
}

func prefixed(prefix string, texts []string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = prefix + text
	}
	return all
}

// busy has everything on one core, and no delay.
func (c PeersConfig) busy(ctx context.Context, round int, peer Peer) (*Run, error) {
	cpus := allowedCPUs(0)
	return c.run(ctx, peer, cpus[:1], cpus[:1], plan{
		Dir:   filepath.Join(c.Out, "turns", fmt.Sprintf("%02d-%s-cpu", round+1, peer.Name)),
		Burst: c.Requests, Conns: c.Conns,
	})
}

// paced has the proxy on the rest of the CPUs, if there is a rest.
func (c PeersConfig) paced(ctx context.Context, round int, peer Peer) (*Run, error) {
	cpus := allowedCPUs(0)
	rest := cpus
	if len(cpus) > 1 {
		rest = cpus[1:]
	}
	return c.run(ctx, peer, cpus[:1], rest, plan{
		Dir:  filepath.Join(c.Out, "turns", fmt.Sprintf("%02d-%s-rate", round+1, peer.Name)),
		Rate: c.Rate, Warmup: 500 * time.Millisecond, Duration: c.Duration, Conns: c.Conns, UpstreamDelay: c.UpstreamDelay,
	})
}

func (c PeersConfig) run(ctx context.Context, peer Peer, generator, proxy []int, p plan) (*Run, error) {
	for _, pid := range peer.PIDs {
		if err := place(pinned{pid, proxy}); err != nil {
			return nil, err
		}
	}
	time.Sleep(settle)
	p.Lane, p.Address, p.Target, p.Watched = peer.Name, peer.Address, peer.Target, peer.PIDs
	p.Timeout, p.Upstream, p.UpstreamSize = 30*time.Second, c.Upstream, c.UpstreamSize
	for _, one := range c.Peers {
		p.Ours = append(p.Ours, one.PIDs...)
	}
	return execute(ctx, c.Lane, generator, p)
}

func (s *PeersSummary) conclude(peers []Peer) {
	reference := map[int]float64{} // round -> CPU of the first peer
	for _, t := range s.Turns {
		if t.Peer == peers[0].Name && len(t.RejectedCPU) == 0 {
			reference[t.Round] = t.CPU
		}
	}
	for _, peer := range peers {
		s.Standings = append(s.Standings, s.standing(peer.Name, reference))
	}
}

func (s *PeersSummary) standing(peer string, reference map[int]float64) Standing {
	var cpu, ratio, rate []float64
	var added [3][]float64
	for _, t := range s.Turns {
		if t.Peer != peer {
			continue
		}
		if len(t.RejectedCPU) == 0 {
			cpu, rate = append(cpu, t.CPU), append(rate, t.PerSecond)
			if reference[t.Round] > 0 {
				ratio = append(ratio, t.CPU/reference[t.Round])
			}
		}
		for i := range added {
			if len(t.RejectedRate) == 0 {
				added[i] = append(added[i], t.Added[i])
			}
		}
	}
	return Standing{
		peer, EstimateOf(cpu), EstimateOf(ratio), EstimateOf(rate), [3]Estimate{EstimateOf(added[0]), EstimateOf(added[1]), EstimateOf(added[2])},
	}
}

// Complete tells whether each peer has turns that count.
func (s *PeersSummary) Complete() bool {
	return !slices.ContainsFunc(s.Standings, func(one Standing) bool { return one.CPU.N == 0 || one.Added[0].N == 0 })
}

// Text writes the summary for a person.
func (s *PeersSummary) Text(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(table, format, args...) }
	p("CPU a request, everything on one core; latency added at %g per second, server takes %g ms; %d rounds\n\n", s.Rate, s.Delay, s.Rounds)
	p("proxy\tcount\tµs\tinterval\tto first\tinterval\tper second\tp50 ms\tp95\tp99\t\n")
	for _, one := range s.Standings {
		p("%s\t%d, %d\t%.1f\t%.1f to %.1f\t%.2f\t%.2f to %.2f\t%.0f\t%+.3f\t%+.3f\t%+.3f\t\n", one.Peer, one.CPU.N, one.Added[0].N, one.CPU.Median, one.CPU.Low, one.CPU.High,
			one.Ratio.Median, one.Ratio.Low, one.Ratio.High, one.PerSecond.Median, one.Added[0].Median, one.Added[1].Median, one.Added[2].Median)
	}
	return table.Flush()
}

// WriteTable writes a row of Markdown for each peer.
func (s *PeersSummary) WriteTable(w io.Writer) error {
	_, err := io.WriteString(w, "| proxy | rounds that count | CPU a request, µs | to the first, in the same round | requests per second, all on one core | added p50, ms | added p95, ms | added p99, ms |\n|---|---|---|---|---|---|---|---|\n")
	interval := func(e Estimate, digits int) string {
		return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, e.Median, digits, e.Low, digits, e.High)
	}
	for _, one := range s.Standings {
		_, rowErr := fmt.Fprintf(w, "| %s | %d and %d of %d | %s | %s | %.0f | %s | %s | %.3f |\n", one.Peer, one.CPU.N, one.Added[0].N, s.Rounds,
			interval(one.CPU, 1), interval(one.Ratio, 2), one.PerSecond.Median, interval(one.Added[0], 3), interval(one.Added[1], 3), one.Added[2].Median)
		err = errors.Join(err, rowErr)
	}
	return err
}

// Save writes summary.json, and table.md for a document.
func (s *PeersSummary) Save(dir string) error {
	encoded, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "summary.json"), append(encoded, '\n'), 0o644)
	}
	file, fileErr := os.Create(filepath.Join(dir, "table.md"))
	if err = errors.Join(err, fileErr); err != nil {
		return fmt.Errorf("save peers: %w", err)
	}
	return errors.Join(s.WriteTable(file), file.Close())
}
