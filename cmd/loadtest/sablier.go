package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/sablier"
)

func newSablier() *cobra.Command {
	var cfg sablier.Config
	var out string
	cmd := &cobra.Command{
		Use:   "sablier --workload NAME --group NAME --never NAME",
		Short: "Make the four scenarios of Sablier's benchmark on Rouse",
		Long: `Make the scenarios blocking warm, blocking cold, dynamic warm and dynamic
not-ready, through Rouse as the proxy and at the API that Sablier's plugins
call. Every answer is read, and one that is not the scenario's ends it. A cold
call is cold each time; "not ready" is a workload that never becomes ready.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			cfg.Progress = os.Stderr
			summary, err := sablier.Run(ctx, cfg)
			if err != nil {
				return failed(err)
			}
			summary.Version, summary.Command = version, os.Args
			if err := summary.Text(os.Stdout); err != nil || out == "" {
				return failed(err)
			}
			return failed(summary.Save(out))
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Proxy, "proxy", "http://127.0.0.1:8080", "base URL of Rouse's traffic")
	f.StringVar(&cfg.API, "api", "http://127.0.0.1:10000", "base URL of the API for Sablier's plugins (sablier.listen)")
	f.StringVar(&cfg.Admin, "admin", "http://127.0.0.1:8081", "base URL of Rouse's admin API")
	f.StringVar(&cfg.Workload, "workload", "", "name of a mimic workload that wakes")
	f.StringVar(&cfg.Group, "group", "", "group that has it and no other")
	f.StringVar(&cfg.Host, "host", "", "Host header by which the proxy knows it")
	f.StringVar(&cfg.Never, "never", "", "name of a workload that does not become ready, with wait: page")
	f.StringVar(&cfg.NeverHost, "never-host", "", "Host header by which the proxy knows that")
	f.IntVar(&cfg.PID, "pid", 0, "process of Rouse, for CPU time and memory")
	f.IntVar(&cfg.Conns, "conns", 10, "connections of the warm scenarios")
	f.DurationVar(&cfg.Duration, "duration", 30*time.Second, "length of each of them")
	f.IntVarP(&cfg.Cold, "n", "n", 20, "number of cold calls")
	f.IntVar(&cfg.Calls, "calls", 0, "length, in calls, of one more warm run of the API, for its memory (0: none)")
	f.StringVar(&out, "out", "", "directory for summary.json and table.md")
	for _, name := range []string{"workload", "group", "never"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}
