package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/mimic"
)

// exitTerminated is what a shell reports for a process that SIGTERM ended.
const exitTerminated = 128 + int(syscall.SIGTERM)

func newMimic() *cobra.Command {
	var cfg mimic.Config
	cmd := &cobra.Command{
		Use:   "mimic",
		Short: "Be a workload: HTTP/1.1 and h2c on one port, well or badly behaved",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port := os.Getenv("PORT"); port != "" && !cmd.Flags().Changed("listen") {
				cfg.Listen = ":" + port
			}
			return runMimic(cfg)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cfg.Listen, "listen", ":8080", "address to listen on; without it, the port in $PORT")
	flags.DurationVar(&cfg.Startup, "startup", 0, "time before it listens")
	flags.StringVar(&cfg.Await, "await", "", "file that has to exist before it listens")
	flags.DurationVar(&cfg.Delay, "delay", 0, "time before each answer")
	flags.IntVar(&cfg.Size, "size", 0, "least size of the answer of /, in bytes")
	flags.DurationVar(&cfg.ExitAfter, "exit-after", 0, "time after its start at which it exits by itself (0: never)")
	flags.IntVar(&cfg.ExitCode, "exit-code", 0, "code that --exit-after exits with")
	flags.BoolVar(&cfg.Deaf, "ignore-sigterm", false, "be deaf to SIGTERM and SIGINT")
	flags.StringVar(&cfg.Ledger, "ledger", "", "file to append each start, request and SIGTERM to")
	flags.IntVar(&cfg.HealthzStatus, "healthz-status", 200, "status that /healthz answers")
	return cmd
}

func runMimic(cfg mimic.Config) error {
	cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := mimic.New(cfg).Run(ctx)
	var exit *mimic.ExitError
	switch {
	case errors.As(err, &exit):
		return exit
	case err != nil && ctx.Err() != nil: // told to stop before it listened
		return &mimic.ExitError{Code: exitTerminated}
	default:
		return failed(err)
	}
}
