package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rouse-dev/rouse/loadtest/openloop"
	"github.com/rouse-dev/rouse/loadtest/report"
	"github.com/rouse-dev/rouse/loadtest/schedule"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// runFlags are what each scenario of one load has.
type runFlags struct {
	targetFlags
	scenario  string
	url, host string
	streams   int
	drain     time.Duration
	spin      time.Duration
	served    string
	out       string
	output    string
	progress  string
}

func (r *runFlags) add(f *pflag.FlagSet) {
	r.targetFlags.add(f)
	f.StringVar(&r.url, "url", "http://127.0.0.1:8080/", "what to ask for")
	f.StringVar(&r.host, "host", "", "Host header to ask with, if not the URL's")
	f.IntVar(&r.streams, "streams", 0, "most requests at once on a connection of h2c (0: 16)")
	f.DurationVar(&r.drain, "drain", 0, "time after the last arrival in which what is left may end (0: --timeout)")
	f.DurationVar(&r.spin, "spin", 0, "time before each arrival in which to look at the clock instead of sleeping")
	f.StringVar(&r.served, "served", "", "URL of the mimic workload behind it, whose count must agree")
	f.StringVar(&r.out, "out", "", "directory for result.json, *.hgrm, intervals.hlog and report.html")
	f.StringVarP(&r.output, "output", "o", "text", "text or json, on standard output")
	f.StringVar(&r.progress, "progress", "auto", "once a second, on standard error: auto (on a terminal), json, or none")
}

// newRun has a subcommand for each kind of load.
func newRun() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run SCENARIO",
		Short: "Send a load whose arrivals do not wait for answers",
		Long: `Send a load whose arrivals are fixed in advance, and tell how late each answer
came, counted from the moment at which its request was due. Ctrl-C ends it with
the results so far.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return errors.New("which scenario?") },
	}
	cmd.AddCommand(newRunRate(), newRunBursts(), newRunReplay())
	return cmd
}

// scenario is a command that makes a schedule and then the load.
func scenario(use, short string, flags *runFlags, plan func() (schedule.Schedule, []string, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := flags.config()
			if err != nil {
				return err
			}
			arrivals, paths, err := plan()
			if err != nil {
				return err
			}
			cfg.Schedule, cfg.Targets = arrivals, onPaths(cfg.Targets[0], paths)
			flags.scenario = use
			return failed(flags.run(cmd.Context(), cfg))
		},
	}
	flags.add(cmd.Flags())
	return cmd
}

// onPaths has one target for each path; an empty one is the URL's own.
func onPaths(target openloop.Target, paths []string) []openloop.Target {
	if len(paths) == 0 {
		return []openloop.Target{target}
	}
	targets := make([]openloop.Target, len(paths))
	for i, path := range paths {
		targets[i] = target
		if path != "" {
			targets[i].Request.Path = path
		}
	}
	return targets
}

// warmed has a warm-up unless told otherwise.
func warmed() *runFlags { return &runFlags{targetFlags: targetFlags{warmup: time.Second}} }

func newRunRate() *cobra.Command {
	var rate float64
	var duration time.Duration
	var phases string
	var rates schedule.Rates
	cmd := scenario("rate", "A rate: constant, in steps, or rising and falling", warmed(), func() (schedule.Schedule, []string, error) {
		rates.Phases = schedule.Constant(rate, duration).Phases
		var err error
		if phases != "" {
			rates.Phases, err = schedule.ParseRates(phases)
		}
		if err == nil && (!(rate > 0) || duration <= 0) {
			err = errors.New("want a rate and a duration of more than 0")
		}
		return rates, nil, err
	})
	f := cmd.Flags()
	f.Float64Var(&rate, "rate", 1000, "requests per second")
	f.DurationVar(&duration, "duration", 10*time.Second, "length of the load, with its warm-up")
	f.StringVar(&phases, "phases", "", `instead of both: "1000x10s,1000..5000x30s,0x5s", rates for times, two dots for a ramp`)
	f.BoolVar(&rates.Poisson, "poisson", false, "random distances between arrivals, as of many independent users")
	f.Uint64Var(&rates.Seed, "seed", 1, "what the random distances come from")
	return cmd
}

func newRunBursts() *cobra.Command {
	var bursts schedule.Bursts
	cmd := scenario("bursts", "Many requests at the same moment, again and again", &runFlags{}, func() (schedule.Schedule, []string, error) {
		if bursts.Size < 1 || bursts.Count < 1 || bursts.Every <= 0 {
			return nil, nil, errors.New("want a size, a count and a distance of more than 0")
		}
		return bursts, nil, nil
	})
	f := cmd.Flags()
	f.IntVar(&bursts.Size, "size", 100, "requests at once")
	f.IntVar(&bursts.Count, "count", 10, "number of bursts")
	f.DurationVar(&bursts.Every, "every", time.Second, "time from one to the next")
	return cmd
}

func newRunReplay() *cobra.Command {
	var path string
	var speed float64
	cmd := scenario("replay", "The arrivals of a trace", &runFlags{}, func() (schedule.Schedule, []string, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer file.Close()
		trace, err := schedule.ReadTrace(file, speed)
		if err != nil {
			return nil, nil, err
		}
		return trace, trace.Targets(), nil
	})
	f := cmd.Flags()
	f.StringVar(&path, "trace", "", "CSV file with a column at_ms, and target (a path) if they differ")
	f.Float64Var(&speed, "speed", 1, "2 is twice as fast")
	_ = cmd.MarkFlagRequired("trace") // fails only for a flag that does not exist
	return cmd
}

func (r *runFlags) config() (openloop.Config, error) {
	address, target, err := r.to(r.url, r.host)
	if err != nil {
		return openloop.Config{}, err
	}
	protocol, err := pick("protocol", r.protocol, protocols)
	if err != nil {
		return openloop.Config{}, err
	}
	if r.output != "text" && r.output != "json" {
		return openloop.Config{}, fmt.Errorf("--output %q: unknown", r.output)
	}
	return openloop.Config{
		Address: address, Protocol: protocol, Targets: []openloop.Target{target}, Conns: r.conns, Streams: r.streams,
		Warmup: r.warmup, Timeout: r.timeout, Drain: r.drain, Spin: r.spin,
	}, nil
}

func (r *runFlags) run(ctx context.Context, cfg openloop.Config) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	manifest := trial.NewManifest(version, os.Args)
	before, err := r.count(ctx)
	if err != nil {
		return err
	}
	result, err := r.record(ctx, cfg)
	if err != nil {
		return err
	}
	if err := r.write(os.Stdout, result.Report()); err != nil {
		return err
	}
	verdict := r.verdict(ctx, result, before)
	return r.page(report.Origin{
		Schema: report.RunSchema, Scenario: r.scenario, URL: r.url, Protocol: r.protocol, Manifest: manifest,
	}, verdict)
}

// page writes the report, if there is a directory for it, and gives the
// verdict back.
func (r *runFlags) page(origin report.Origin, verdict error) error {
	if r.out == "" {
		return verdict
	}
	return writePage(r.out, origin, verdict)
}

// record makes the run, with its files and its progress.
func (r *runFlags) record(ctx context.Context, cfg openloop.Config) (*openloop.Result, error) {
	show, err := newProgress(r.progress, os.Stderr)
	if err != nil {
		return nil, err
	}
	cfg.Every = show
	if r.out == "" {
		return openloop.Run(ctx, cfg)
	}
	files, err := openloop.NewFiles(r.out)
	if err != nil {
		return nil, err
	}
	cfg.Every = func(i openloop.Interval) { files.Interval(i); show(i) }
	result, err := openloop.Run(ctx, cfg)
	return result, errors.Join(err, files.Close(result))
}

func (r *runFlags) write(w io.Writer, result openloop.Report) error {
	if r.output == "text" {
		return result.Text(w)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(result)
}

func (r *runFlags) count(ctx context.Context) (int64, error) {
	if r.served == "" {
		return 0, nil
	}
	return openloop.Served(ctx, r.served)
}

// verdict is an error unless each request was answered as it should be.
func (r *runFlags) verdict(ctx context.Context, result *openloop.Result, before int64) error {
	if result.Aborted {
		return errors.New("ended early")
	}
	failures := result.WarmUp.Failed() + result.Measured.Failed()
	if failures > 0 {
		return fmt.Errorf("%d of %d requests failed", failures, result.WarmUp.Scheduled+result.Measured.Scheduled)
	}
	if r.served == "" {
		return nil
	}
	after, err := r.count(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if served, sent := after-before-1, result.WarmUp.Sent+result.Measured.Sent; served != sent {
		return fmt.Errorf("the server has served %d requests of %d", served, sent)
	}
	return nil
}
