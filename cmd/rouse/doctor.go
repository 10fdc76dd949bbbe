package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/doctor"
	"github.com/rouse-dev/rouse/migration"
)

func newDoctorCommand(g *globals) *cobra.Command {
	within := 20 * time.Second
	var file string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong, and what to do about it",
		Long: `Doctor looks at the configuration, at a running Rouse, at the Docker engine with
its containers, and at NATS: at as much of it as can be reached from here, and it
says what it could not look at, and why. It changes nothing, and looks into no
container that did not opt in. Only the scaler has the Docker socket, so that is
where it finds most. Exit code 1 means that there are errors; warnings and notes
are none.

With --import it looks at nothing but a compose file with labels of Sablier,
Lazytainer or GoDoxy, or at ContainerNursery's config.yml, and prints the labels
of Rouse that say the same, as a compose file to put over the other. Exit code 3
means that the file cannot be read.`,
		Example: "  rouse doctor\n  rouse doctor --import compose.yml > compose.override.yaml\n  docker compose exec scaler /rouse doctor\n  rouse doctor -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file != "" {
				return importFile(cmd.OutOrStdout(), file)
			}
			if within <= 0 {
				return fail(exitUsage, fmt.Errorf("--timeout %s is not a time to wait", within))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), within)
			defer cancel()
			r := doctor.Examine(g.examine(ctx))
			if err := g.print(cmd.OutOrStdout(), r, func(out io.Writer) error { return g.writeReport(out, r) }); err != nil {
				return err
			}
			if n := r.Count(doctor.Error); n > 0 {
				return fmt.Errorf("%s found", several(n, "error"))
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&within, "timeout", within, "how long it may take in all")
	cmd.Flags().StringVar(&file, "import", "", "propose labels for what a `file` of another product describes")
	return cmd
}

// importFile prints what is proposed for a file of another product.
func importFile(out io.Writer, file string) error {
	data, err := readFile(file)
	if err != nil {
		return fail(exitConfig, fmt.Errorf("%s: cannot be read: %s", file, bare(err)))
	}
	plan, wrong := migration.Read(file, data)
	if len(wrong) > 0 {
		return problems(wrong).err()
	}
	return plan.Write(out)
}

func (g *globals) writeReport(out io.Writer, r doctor.Report) error {
	var b strings.Builder
	for _, f := range r.Findings {
		severity := strings.ToUpper(string(f.Severity))
		if g.colored(out) {
			severity = color(severityColor(f.Severity), severity)
		}
		fmt.Fprintf(&b, "%s  %s  (%s)\n", severity, printable(f.Place), f.Code)
		fmt.Fprintf(&b, "  what  %s\n  why   %s\n  fix   %s\n\n", printable(f.What), printable(f.Why), printable(f.Fix))
	}
	for _, c := range r.Checked {
		fmt.Fprintf(&b, "checked      %s\n", printable(c))
	}
	for _, u := range r.Unchecked {
		fmt.Fprintf(&b, "not checked  %s: %s\n", printable(u.What), printable(u.Why))
	}
	fmt.Fprintf(&b, "\n%s, %s, %s\n", several(r.Count(doctor.Error), "error"), several(r.Count(doctor.Warning), "warning"), several(r.Count(doctor.Note), "note"))
	_, err := io.WriteString(out, b.String())
	return err
}

func severityColor(s doctor.Severity) string {
	switch s {
	case doctor.Error:
		return "31" // red
	case doctor.Warning:
		return "33" // yellow
	}
	return "2" // dim
}

func several(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
