package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/trial"
)

func newManifest() *cobra.Command {
	var text bool
	cmd := &cobra.Command{
		Use: "manifest", Short: "Describe this program and this machine, as in each result", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m := trial.NewManifest(version, os.Args)
			if text {
				_, err := fmt.Printf("Machine: %s, %d cores, Linux %s; %s; Rouse %s. Load before it: %s.\n",
					m.Machine.CPU, m.Machine.Cores, m.Machine.Kernel, m.Machine.Go, m.Version, m.Load)
				return failed(err)
			}
			out := json.NewEncoder(os.Stdout)
			out.SetIndent("", "  ")
			return failed(out.Encode(m))
		},
	}
	cmd.Flags().BoolVar(&text, "text", false, "in a line")
	return cmd
}
