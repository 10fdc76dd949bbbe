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

	"github.com/rouse-dev/rouse/loadtest/coldstart"
)

// coldstartFlags are what Config does not hold.
type coldstartFlags struct {
	out        string
	dockerHost string
	container  string
	process    string
}

func newColdstart() *cobra.Command {
	var cfg coldstart.Config
	var flags coldstartFlags
	cmd := &cobra.Command{
		Use:   "coldstart --workload NAME",
		Short: "Measure what Rouse adds to a cold start",
		Long: `Put a mimic workload to sleep, wake it by a request, and tell how much of the
time was Rouse's own: the whole request, less the time from the start call to
the app's listen(). With --pair-container or --pair-process an equal workload
is started without Rouse once a trial, so that both sides meet the same
machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return failed(measureColdstart(ctx, cfg, flags))
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.URL, "url", "http://127.0.0.1:8080/", "what to ask for through Rouse")
	f.StringVar(&cfg.Host, "host", "", "Host header to ask with, if not the URL's")
	f.StringVar(&cfg.Admin, "admin", "http://127.0.0.1:8081", "base URL of Rouse's admin API")
	f.StringVar(&cfg.Workload, "workload", "", "name of the workload that answers at the URL")
	f.IntVarP(&cfg.Trials, "n", "n", 20, "number of cold starts")
	f.DurationVar(&cfg.Settle, "settle", 500*time.Millisecond, "time between asleep and the next start")
	f.DurationVar(&cfg.Timeout, "timeout", time.Minute, "bound of each step")
	f.StringVar(&flags.out, "out", "", "directory for summary.json, summary.txt and report.html")
	f.StringVar(&flags.dockerHost, "docker-host", "unix:///var/run/docker.sock", "socket of the Docker engine")
	f.StringVar(&flags.container, "pair-container", "", "stopped container to start without Rouse, equal to the workload's")
	f.StringVar(&flags.process, "pair-process", "", "command to run without Rouse, equal to the workload's; {port} is a free port")
	cmd.MarkFlagsMutuallyExclusive("pair-container", "pair-process")
	_ = cmd.MarkFlagRequired("workload") // fails only for a flag that does not exist
	return cmd
}

func measureColdstart(ctx context.Context, cfg coldstart.Config, flags coldstartFlags) error {
	engine, err := coldstart.NewEngine(flags.dockerHost)
	if err != nil {
		return err
	}
	switch {
	case flags.container != "":
		cfg.Bare = coldstart.Container{Engine: engine, Name: flags.container}
	case flags.process != "":
		cfg.Bare = coldstart.NewProcess(strings.Fields(flags.process))
	}
	cfg.Progress = os.Stderr
	summary, err := coldstart.Run(ctx, cfg)
	if err != nil {
		return err
	}
	summary.Version, summary.Command = version, os.Args
	summary.Machine = coldstart.ThisMachine()
	summary.Machine.Engine, _ = engine.Version(ctx) // none: the workload is a process
	if err := summary.Text(os.Stdout); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if flags.out != "" {
		if err := errors.Join(summary.Save(flags.out), saveColdstarts(flags.out)); err != nil {
			return err
		}
	}
	if summary.Failed > 0 {
		return fmt.Errorf("%d of %d trials failed", summary.Failed, cfg.Trials)
	}
	return nil
}

// stormFlags are what coldstart.StormConfig does not hold as it is.
type stormFlags struct {
	workloads, containers []string
	out, dockerHost       string
	processes             string
}

func newStorm() *cobra.Command {
	var cfg coldstart.StormConfig
	var flags stormFlags
	cmd := &cobra.Command{
		Use:   "storm --workloads NAME,NAME...",
		Short: "Measure sleeping workloads that are all woken at once",
		Long: `Put mimic workloads to sleep and wake all by one request each at the same
moment, again and again; in turn, start equal ones without Rouse, as many at a time
as Rouse does. A workload NAME is asked for at the host NAME.localhost.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return failed(measureStorm(ctx, cfg, flags))
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.URL, "url", "http://127.0.0.1:8080/", "what to ask for through Rouse")
	f.StringVar(&cfg.Admin, "admin", "http://127.0.0.1:8081", "base URL of Rouse's admin API")
	f.StringSliceVar(&flags.workloads, "workloads", nil, "names of the workloads")
	f.IntVar(&cfg.Rounds, "rounds", 5, "number of storms")
	f.DurationVar(&cfg.Settle, "settle", 500*time.Millisecond, "time between asleep and the next start")
	f.DurationVar(&cfg.Timeout, "timeout", 2*time.Minute, "bound of each step")
	f.StringVar(&flags.dockerHost, "docker-host", "unix:///var/run/docker.sock", "socket of the Docker engine")
	f.StringSliceVar(&flags.containers, "pair-containers", nil, "stopped containers to start without Rouse, equal to the workloads'")
	f.StringVar(&flags.processes, "pair-process", "", "command to run once for each workload without Rouse; {port} is a free port")
	f.IntVar(&cfg.Parallel, "parallel", 4, "bare starts at a time: Rouse's limits.starts_in_parallel")
	f.StringVar(&flags.out, "out", "", "directory for summary.json and table.md")
	cmd.MarkFlagsMutuallyExclusive("pair-containers", "pair-process")
	_ = cmd.MarkFlagRequired("workloads") // fails only for a flag that does not exist
	return cmd
}

func measureStorm(ctx context.Context, cfg coldstart.StormConfig, flags stormFlags) error {
	engine, err := coldstart.NewEngine(flags.dockerHost)
	if err != nil {
		return err
	}
	for _, name := range flags.containers {
		cfg.Bare = append(cfg.Bare, coldstart.Container{Engine: engine, Name: name})
	}
	for _, name := range flags.workloads {
		cfg.Targets = append(cfg.Targets, coldstart.StormTarget{Workload: name, Host: name + ".localhost"})
		if flags.processes != "" {
			cfg.Bare = append(cfg.Bare, coldstart.NewProcess(strings.Fields(flags.processes)))
		}
	}
	cfg.Progress = os.Stderr
	storm, err := coldstart.RunStorm(ctx, cfg)
	if err != nil {
		return err
	}
	storm.Version, storm.Command, storm.Machine = version, os.Args, coldstart.ThisMachine()
	storm.Machine.Engine, _ = engine.Version(ctx) // none: the workloads are processes
	if err := storm.Text(os.Stdout); err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	if flags.out != "" {
		if err := storm.Save(flags.out); err != nil {
			return err
		}
	}
	if storm.Failed > 0 {
		return fmt.Errorf("%d cold starts failed", storm.Failed)
	}
	return nil
}
