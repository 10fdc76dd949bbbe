package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/schedule"
	"github.com/rouse-dev/rouse/loadtest/soak"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

// soakFlags are what soak.Config does not hold as it is.
type soakFlags struct {
	url, ledgers, trace, out string
	speed                    float64
}

func newSoak() *cobra.Command {
	var cfg soak.Config
	var flags soakFlags
	cmd := &cobra.Command{
		Use:   "soak --pid PID --ledgers DIR --steady HOST",
		Short: "Let a Rouse work on everything for a long time, and tell what was lost or grows",
		Long: `Send requests to what is awake and to what sleeps, uploads, WebSockets, event
streams, clients that give up, and a trace, all at once, while workloads fall
asleep and wake. Each request has an id, and the ledgers of the mimic workloads
tell that each answered one was seen exactly once. Memory, goroutines, open files
and the NATS store of the process are read all along: what rises with 99 %
(Theil-Sen) by more than its allowance is a leak, and a failure.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := flags.fill(&cfg); err != nil {
				return err
			}
			return failed(runSoak(cmd.Context(), cfg, flags.out))
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.url, "url", "http://127.0.0.1:8080", "Rouse's traffic")
	f.StringVar(&cfg.Admin, "admin", "http://127.0.0.1:8081", "base URL of Rouse's admin API")
	f.IntVar(&cfg.Process.PID, "pid", 0, "Rouse's process")
	f.StringVar(&cfg.Process.Store, "store", "", "its nats.store_dir, if it embeds the server")
	f.StringVar(&flags.ledgers, "ledgers", "", "directory with the ledgers of all mimic workloads")
	f.StringVar(&cfg.Steady, "steady", "", "host of the workload that always has requests")
	f.StringSliceVar(&cfg.Sleepers, "sleepers", nil, "hosts of workloads that sleep in between")
	f.DurationVar(&cfg.Every, "every", 10*time.Second, "mean time between two requests to a sleeper")
	f.StringVar(&flags.trace, "trace", "", "CSV file to replay over and over, with the columns at_ms and target, a path")
	f.Float64Var(&flags.speed, "speed", 1, "2 replays it twice as fast")
	f.StringVar(&cfg.TraceHost, "trace-host", "", "host that the trace's paths are asked at")
	f.Float64Var(&cfg.Rate, "rate", 100, "requests per second to --steady; a twentieth of it are uploads on top")
	f.IntVar(&cfg.Sessions, "sessions", 20, "WebSockets at once, and as many event streams; half as many clients give up")
	f.DurationVar(&cfg.Pause, "pause", time.Second, "most between two sessions of a client, and two messages of a session")
	f.DurationVar(&cfg.Timeout, "timeout", time.Minute, "bound of each request and session")
	f.DurationVar(&cfg.Duration, "duration", 10*time.Minute, "length")
	f.Uint64Var(&cfg.Seed, "seed", 1, "what is random in sessions comes from")
	f.StringVar(&flags.out, "out", "", "directory for summary.json and series.csv")
	for _, name := range []string{"pid", "ledgers", "steady"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

func (s *soakFlags) fill(cfg *soak.Config) error {
	u, err := url.Parse(s.url)
	if err != nil || u.Scheme != "http" || u.Port() == "" {
		return fmt.Errorf("--url %q: want http://HOST:PORT", s.url)
	}
	cfg.Address, cfg.Process.Metrics = u.Host, cfg.Admin+"/metrics"
	cfg.Ledgers, err = filepath.Glob(filepath.Join(s.ledgers, "*"))
	if err != nil || len(cfg.Ledgers) == 0 {
		return fmt.Errorf("--ledgers %s: no file is in it", s.ledgers)
	}
	if s.trace == "" {
		return nil
	}
	file, err := os.Open(s.trace)
	if err != nil {
		return err
	}
	defer file.Close()
	cfg.Trace, err = schedule.ReadTrace(file, s.speed)
	return err
}

func runSoak(ctx context.Context, cfg soak.Config, out string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	cfg.Progress = os.Stderr
	manifest := trial.NewManifest(version, os.Args)
	report, err := soak.Run(ctx, cfg)
	if err != nil {
		return err
	}
	report.Manifest = manifest
	if err := report.Text(os.Stdout); err != nil {
		return err
	}
	if out != "" {
		if err := report.Save(out); err != nil {
			return err
		}
	}
	if !report.Passed() {
		return errors.New("not passed")
	}
	return nil
}
