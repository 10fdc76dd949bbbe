package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

// upstreamFlags say where the server is, if it is not a process of its own.
type upstreamFlags struct {
	socket string
	delay  time.Duration
	size   int
}

func (u *upstreamFlags) add(f *pflag.FlagSet) {
	f.StringVar(&u.socket, "upstream", "", "Unix socket of loadtest upstream: the server is then part of the generator")
	f.DurationVar(&u.delay, "upstream-delay", time.Millisecond, "time that it takes for an answer")
	f.IntVar(&u.size, "upstream-size", 400, "length of its answers' bodies")
}

func newUpstream() *cobra.Command {
	var listen, socket string
	cmd := &cobra.Command{
		Use:   "upstream --listen ADDR --socket PATH",
		Short: "Hold the socket of a server that is part of the generator",
		Long: `Listen at an address, and hand the socket over to each run of compare, overhead
or peers with --upstream PATH: it answers in its own thread what comes there. It
is meant to be the process of a workload.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return failed(trial.Hold(ctx, listen, socket))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on")
	cmd.Flags().StringVar(&socket, "socket", "", "Unix socket at which it is handed over")
	for _, name := range []string{"listen", "socket"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

func newOverhead() *cobra.Command {
	var cfg trial.OverheadConfig
	flags := compareFlags{targetFlags: targetFlags{warmup: 5 * time.Second}}
	cmd := &cobra.Command{
		Use:   "overhead --direct URL --routed URL --out DIR",
		Short: "Measure what a proxy adds at the highest rate that the machine carries, and below",
		Long: `Find the highest rate of fixed arrivals that the machine carries directly, and
that it carries through the proxy, then compare the two as compare does: at the
highest common rate, in five pairs of 15 s after 5 s of warm-up, and at lower
rates, in shorter ones.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.fill(&cfg.Config); err != nil {
				return err
			}
			return failed(overhead(cmd.Context(), cfg))
		},
	}
	f := cmd.Flags()
	flags.targetFlags.add(f)
	flags.addSides(f)
	addLimits(f, &cfg.Config)
	f.Float64SliceVar(&cfg.Candidates, "candidates", []float64{1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000}, "rates among which the highest is looked for, in order")
	f.DurationVar(&cfg.SearchFor, "search", 2*time.Second, "length of each run of the search")
	f.Float64SliceVar(&cfg.Lower, "lower", []float64{5000, 2000, 1000}, "rates to compare at besides")
	f.DurationVar(&cfg.LowerFor, "lower-duration", 2*time.Second, "length of each run at those")
	f.DurationVar(&cfg.Duration, "duration", 15*time.Second, "length of each run at the highest rate, after its warm-up")
	f.IntVar(&cfg.Trials, "trials", 5, "pairs at each rate")
	f.StringVar(&cfg.Out, "out", "", "directory for overhead.json, table.md and a directory for each rate")
	for _, name := range []string{"direct", "routed", "out"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

func overhead(ctx context.Context, cfg trial.OverheadConfig) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := prepare(&cfg.Lane, cfg.Out); err != nil {
		return err
	}
	cfg.Progress, cfg.Manifest = os.Stderr, trial.NewManifest(version, os.Args)
	o, err := trial.MeasureOverhead(ctx, cfg)
	if saved := o.Save(cfg.Out); saved != nil {
		return saved
	}
	for _, s := range o.Rates {
		if shown := s.Text(os.Stdout); shown != nil {
			return shown
		}
	}
	if err == nil && !o.Complete() {
		err = errors.New("not all trials were accepted")
	}
	return err
}

// prepare names the command of a lane and makes the directory.
func prepare(lane *[]string, out string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	*lane = []string{self, laneCommand}
	return os.MkdirAll(out, 0o755)
}

// peersFlags are what trial.PeersConfig does not hold as it is.
type peersFlags struct {
	targetFlags
	upstreamFlags
	direct, host string
	peers        []string
}

func newPeers() *cobra.Command {
	var cfg trial.PeersConfig
	var flags peersFlags
	cmd := &cobra.Command{
		Use:   "peers --direct URL --peer NAME=URL... --upstream PATH --out DIR",
		Short: "Put proxies side by side: CPU a request, and latency added",
		Long: `Let each proxy in turn carry the same requests to the same server, round robin,
the order reversed in every second round: with everything on one core, for the
CPU that a request costs by the scheduler's account, compared with the first
peer's in the same round; and at a rate, with the proxy on a core of its own, for
the latency that it adds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.fill(&cfg); err != nil {
				return err
			}
			return failed(peers(cmd.Context(), cfg))
		},
	}
	f := cmd.Flags()
	flags.targetFlags.add(f)
	flags.upstreamFlags.add(f)
	f.StringVar(&flags.direct, "direct", "", "URL at the server itself")
	f.StringArrayVar(&flags.peers, "peer", nil, "a proxy: NAME=URL, or NAME=URL,PID... where its processes cannot be found by the port; repeatable")
	f.StringVar(&flags.host, "host", "", "Host header to ask all with, if not the URL's")
	f.IntVar(&cfg.Rounds, "rounds", 10, "rounds")
	f.IntVar(&cfg.Requests, "requests", 6000, "requests of a turn on one core")
	f.Float64Var(&cfg.Rate, "rate", 2000, "requests per second of a turn at a rate")
	f.DurationVar(&cfg.Duration, "duration", 1500*time.Millisecond, "length of one")
	f.Float64Var(&cfg.Limits.Foreign, "limit-foreign", 0.15, "most that others may use, in cores")
	f.StringVar(&cfg.Out, "out", "", "directory for summary.json and table.md")
	for _, name := range []string{"direct", "peer", "upstream", "out"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

func (p *peersFlags) fill(cfg *trial.PeersConfig) (err error) {
	cfg.Upstream, cfg.UpstreamDelay, cfg.UpstreamSize, cfg.Conns = p.socket, p.delay, p.size, p.conns
	sides := compareFlags{targetFlags: p.targetFlags}
	if cfg.Direct, err = sides.side(p.direct, p.host, nil); err != nil {
		return err
	}
	for _, peer := range p.peers {
		name, rest, found := strings.Cut(peer, "=")
		if !found {
			return fmt.Errorf("--peer %q: want NAME=URL", peer)
		}
		url, numbers, _ := strings.Cut(rest, ",")
		pids, err := parsePIDs(numbers)
		if err != nil {
			return fmt.Errorf("--peer %q: %w", peer, err)
		}
		side, err := sides.side(url, p.host, pids)
		if err != nil {
			return err
		}
		cfg.Peers = append(cfg.Peers, trial.Peer{Name: name, Side: side})
	}
	return nil
}

func parsePIDs(text string) (pids []int, err error) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.IntSliceVar(&pids, "pid", nil, "")
	if text != "" {
		err = f.Set("pid", text)
	}
	return pids, err
}

func peers(ctx context.Context, cfg trial.PeersConfig) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := prepare(&cfg.Lane, cfg.Out); err != nil {
		return err
	}
	cfg.Progress = os.Stderr
	manifest := trial.NewManifest(version, os.Args)
	summary, err := trial.ComparePeers(ctx, cfg)
	if err != nil {
		return err
	}
	summary.Manifest = manifest
	if err := summary.Save(cfg.Out); err != nil {
		return err
	}
	if err := summary.Text(os.Stdout); err != nil {
		return err
	}
	if !summary.Complete() {
		return errors.New("a proxy has no turn that counts")
	}
	return nil
}
