package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// globals are the flags that every command has.
type globals struct {
	config, natsURL  string
	admin, tokenFile string
	output           outputFormat
	noColor          bool
}

// newRoot makes the whole command tree, to write to these two.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	g := &globals{output: formatTable}
	root := &cobra.Command{
		Use:           "rouse",
		Short:         "Put web workloads to sleep while nobody uses them, and wake them with the first request",
		Version:       programBuild().Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return g.environment(cmd)
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetVersionTemplate("rouse {{.Version}}\n")
	g.define(root)
	root.AddCommand(newRoleCommands(g)...)
	root.AddCommand(
		newStatusCommand(g), newTopCommand(g), newDoctorCommand(g), newWakeCommand(g), newSleepCommand(g), newKeepCommand(g), newEventsCommand(g),
		newExplainCommand(g), newLogsCommand(g), newHealthCommand(g), newVersionCommand(g),
		newConfigCommand(func() (Config, error) { return g.load(nil) }),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	strictUsage(root)
	return root
}

func (g *globals) define(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&g.config, "config", "", "config `file` (ROUSE_CONFIG; default ./rouse.yaml, then /etc/rouse/rouse.yaml)")
	flags.StringVar(&g.natsURL, "nats-url", "", "NATS server `url` (nats.url; empty takes the embedded one)")
	flags.StringVar(&g.admin, "admin", "", "`url` of the admin API to ask (ROUSE_ADMIN; default admin.listen, http://127.0.0.1:8081)")
	flags.StringVar(&g.tokenFile, "token-file", "", "`file` of the admin API's token (ROUSE_TOKEN_FILE, or ROUSE_TOKEN with the token itself)")
	flags.VarP(&g.output, "output", "o", "table, json or yaml (ROUSE_OUTPUT)")
	flags.BoolVar(&g.noColor, "no-color", false, "no colours (NO_COLOR)")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
}

// environment fills in what has a variable and no flag.
func (g *globals) environment(cmd *cobra.Command) error {
	if format := os.Getenv("ROUSE_OUTPUT"); format != "" && !cmd.Flags().Changed("output") {
		if err := g.output.Set(format); err != nil {
			return fail(exitUsage, fmt.Errorf("ROUSE_OUTPUT: %w", err))
		}
	}
	return nil
}

// load reads the configuration with the flags that are settings: the global
// ones, and those of a command, a map of keys to their text.
func (g *globals) load(flags map[string]string) (Config, error) {
	all := map[string]string{}
	if g.natsURL != "" {
		all["nats.url"] = g.natsURL
	}
	for key, text := range flags {
		all[key] = text
	}
	return loadConfig(g.config, os.Environ(), all)
}

// strictUsage gives every mistake in a call its exit code, also those that
// cobra answers with a help text and no error.
func strictUsage(cmd *cobra.Command) {
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fail(exitUsage, err) })
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = knownCommand
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return fail(exitUsage, check(cmd, args)) }
	}
	for _, child := range cmd.Commands() {
		strictUsage(child)
	}
}

// knownCommand refuses a word where a command was expected.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s", message)
}
