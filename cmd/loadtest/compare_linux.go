package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/loadtest/report"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// laneCommand is what compare starts this program again with.
const laneCommand = "lane"

// compareFlags are what trial.Config does not hold as it is.
type compareFlags struct {
	targetFlags
	upstreamFlags
	direct, routed         string
	directHost, routedHost string
	directPIDs, routedPIDs []int
}

func newCompare() *cobra.Command {
	var cfg trial.Config
	flags := compareFlags{targetFlags: targetFlags{warmup: time.Second}}
	cmd := &cobra.Command{
		Use:   "compare --direct URL --routed URL --out DIR",
		Short: "Measure what a proxy adds, by paired trials",
		Long: `Send the same load to a server directly and through a proxy, in turn, each run
in a fresh process, in the order ABBA, and tell what was added at each
quantile, with an interval. A trial in which the generator was late, or others
used the machine, or anything failed, is kept with the reasons and made again.
The processes that listen on the URLs' ports of this machine are found by
themselves; they are kept on CPUs of their own while the trials last.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.fill(&cfg); err != nil {
				return err
			}
			return failed(compare(cmd.Context(), cfg))
		},
	}
	f := cmd.Flags()
	flags.targetFlags.add(f)
	flags.addSides(f)
	f.StringVar(&cfg.Served, "served", "", "URL of the mimic workload behind both, whose count must agree")
	f.Float64Var(&cfg.Rate, "rate", 1000, "requests per second")
	f.BoolVar(&cfg.Poisson, "poisson", false, "random distances between arrivals")
	f.Uint64Var(&cfg.Seed, "seed", 1, "what the random distances come from")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "length of each run, after its warm-up")
	f.IntVar(&cfg.Trials, "trials", 10, "trials to be accepted; at most twice as many are made")
	addLimits(f, &cfg)
	f.StringVar(&cfg.Out, "out", "", "directory for summary.json, trials.csv, *.hgrm and report.html")
	for _, name := range []string{"direct", "routed", "out"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

// addSides adds what tells the two sides.
func (c *compareFlags) addSides(f *pflag.FlagSet) {
	c.upstreamFlags.add(f)
	f.StringVar(&c.direct, "direct", "", "URL at the server itself")
	f.StringVar(&c.routed, "routed", "", "URL through the proxy")
	f.StringVar(&c.directHost, "direct-host", "", "Host header to ask with, if not the URL's")
	f.StringVar(&c.routedHost, "routed-host", "", "Host header to ask with, if not the URL's")
	f.IntSliceVar(&c.directPIDs, "direct-pid", nil, "processes of the server, where they cannot be found by its port")
	f.IntSliceVar(&c.routedPIDs, "routed-pid", nil, "processes of the proxy, where they cannot be found by its port")
}

// addLimits adds when a trial does not count.
func addLimits(f *pflag.FlagSet, cfg *trial.Config) {
	f.BoolVar(&cfg.Unpinned, "unpinned", false, "leave all processes on the CPUs where they are")
	f.DurationVar(&cfg.Limits.OwnLag, "limit-own-lag", time.Millisecond, "most that the generator may be late, at p99")
	f.Float64Var(&cfg.Limits.Generator, "limit-generator", 0.85, "most that it may use of its core")
	f.Float64Var(&cfg.Limits.Foreign, "limit-foreign", 0.15, "most that others may use, in cores")
	f.Float64Var(&cfg.Limits.Steal, "limit-steal", 0.02, "most that the hypervisor may take, in cores")
	f.Float64Var(&cfg.Limits.Drift, "limit-drift", 1.5, "factor by which a direct p50 may be off that of all trials")
}

func (c *compareFlags) fill(cfg *trial.Config) (err error) {
	if cfg.Protocol, err = pick("protocol", c.protocol, protocols); err != nil {
		return err
	}
	cfg.Conns, cfg.Timeout, cfg.Warmup = c.conns, c.timeout, c.warmup
	cfg.Upstream, cfg.UpstreamDelay, cfg.UpstreamSize = c.socket, c.delay, c.size
	if cfg.Direct, err = c.side(c.direct, c.directHost, c.directPIDs); err != nil {
		return err
	}
	cfg.Routed, err = c.side(c.routed, c.routedHost, c.routedPIDs)
	return err
}

func (c *compareFlags) side(url, host string, pids []int) (trial.Side, error) {
	address, target, err := c.to(url, host)
	if err != nil {
		return trial.Side{}, err
	}
	if len(pids) == 0 {
		pids = trial.Listeners(address)
	}
	return trial.Side{URL: url, Address: address, Target: target, PIDs: pids}, nil
}

func compare(ctx context.Context, cfg trial.Config) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := prepare(&cfg.Lane, cfg.Out); err != nil {
		return err
	}
	cfg.Progress = os.Stderr
	manifest := trial.NewManifest(version, os.Args)
	summary, err := trial.Compare(ctx, cfg)
	if summary == nil {
		return err
	}
	summary.Manifest = manifest
	if saved := summary.Save(cfg.Out); saved != nil {
		return saved
	}
	if shown := summary.Text(os.Stdout); shown != nil {
		return shown
	}
	if _, written := report.Write(cfg.Out); written != nil {
		return errors.Join(err, written)
	}
	if err == nil && summary.Accepted < cfg.Trials {
		err = fmt.Errorf("%d of %d trials accepted, of %d made", summary.Accepted, cfg.Trials, summary.Made)
	}
	return err
}

// newLane is the process of one run of compare.
func newLane() *cobra.Command {
	return &cobra.Command{
		Use: laneCommand, Hidden: true, Short: "Make one run of compare, whose plan is on standard input", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return failed(trial.RunLane(ctx, os.Stdin, os.Stdout))
		},
	}
}
