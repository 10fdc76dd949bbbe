package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/selftest"
)

func newSelftest() *cobra.Command {
	var cfg selftest.Config
	var output string
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "Prove that the generator tells the truth",
		Long: `Try the generator on servers whose behaviour is known: one that stalls for 1 s in
10, one with known latencies, and one for each way in which an answer can be
wrong. A tool that waits for answers before it sends hides the stall.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: unknown", output)
			}
			checks, err := selftest.Run(ctx, cfg)
			if err != nil {
				return failed(err)
			}
			if output == "json" {
				out := json.NewEncoder(os.Stdout)
				out.SetIndent("", "  ")
				err = out.Encode(checks)
			} else {
				err = selftest.Text(os.Stdout, checks)
			}
			if err == nil && !selftest.Passed(checks) {
				err = errors.New("the generator is not to be believed here")
			}
			return failed(err)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&cfg.Stall, "stall", time.Second, "how long the server stalls, once in ten times that")
	f.Float64Var(&cfg.Rate, "rate", 1000, "requests per second")
	f.BoolVar(&cfg.Busy, "busy", false, "let known latencies be longer: the machine has other work")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// generators are the commands that need Linux.
func generators() []*cobra.Command {
	return []*cobra.Command{newRun(), newCompare(), newLane(), newSelftest(), newSoak(), newUpstream(), newOverhead(), newPeers(), newManifest(), newReport(), newVerify()}
}
