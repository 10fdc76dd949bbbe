package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/burst"
)

func newBurst() *cobra.Command {
	var cfg burst.Config
	var out string
	cmd := &cobra.Command{
		Use:   "burst --workload NAME",
		Short: "Measure many requests at once to one sleeping workload",
		Long: `Open the connections, send all requests at once to a workload that sleeps, and
tell what became of each, how soon, and how long after readiness the last was
answered. With --pid, what holding one costs that process in memory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return failed(measureBurst(cmd.Context(), cfg, out))
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.URL, "url", "http://127.0.0.1:8080/", "what to ask for through Rouse")
	f.StringVar(&cfg.Host, "host", "", "Host header to ask with, if not the URL's")
	f.StringVar(&cfg.Admin, "admin", "http://127.0.0.1:8081", "base URL of Rouse's admin API")
	f.StringVar(&cfg.Workload, "workload", "", "name of the workload that answers at the URL, asleep")
	f.IntVarP(&cfg.Requests, "n", "n", 1000, "number of requests")
	f.DurationVar(&cfg.Timeout, "timeout", time.Minute, "bound of everything")
	f.IntVar(&cfg.PID, "pid", 0, "process that holds the requests")
	f.DurationVar(&cfg.MemoryAfter, "memory-after", time.Second, "when to read its memory, after the last request was sent")
	f.StringVar(&out, "out", "", "directory for result.json and report.html")
	_ = cmd.MarkFlagRequired("workload") // fails only for a flag that does not exist
	return cmd
}

func measureBurst(ctx context.Context, cfg burst.Config, dir string) error {
	result, err := burst.Run(ctx, cfg)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(result); err != nil {
		return err
	}
	if result.Lost > 0 {
		err = fmt.Errorf("%d of %d requests had no answer", result.Lost, result.Requests)
	}
	if dir == "" {
		return err
	}
	return saveBurst(dir, cfg.URL, result, err)
}
