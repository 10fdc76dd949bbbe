package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/api"
)

// Both are stamped by the linker (-X main.version=…); empty means that Go's
// own record of the build is asked.
var version, revision string

// programBuild names the program that runs.
func programBuild() api.Build {
	b := api.Build{Version: version, Revision: revision}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && b.Revision == "" {
			b.Revision = s.Value
		}
	}
	return b
}

// versionReport is what `rouse version` prints.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := programBuild()
			r := versionReport{b.Version, b.Revision, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return g.print(cmd.OutOrStdout(), r, func(out io.Writer) error {
				_, err := fmt.Fprintf(out, "rouse %s (revision %s, %s, %s)\n", r.Version, r.Revision, r.Go, r.Platform)
				return err
			})
		},
	}
}
