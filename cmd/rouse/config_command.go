package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/catalog"
	"github.com/rouse-dev/rouse/internal/strict"
	"github.com/rouse-dev/rouse/router/waitpage"
	"github.com/rouse-dev/rouse/workload"
)

// newConfigCommand makes `rouse config`. load reads the configuration as the
// other commands would with the same flags.
func newConfigCommand(load func() (Config, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, show and describe the configuration",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newConfigCheck(load), newConfigShow(load), newConfigSchema())
	return cmd
}

func newConfigCheck(load func() (Config, error)) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Find everything that is wrong with the configuration",
		Long: `Check reads the file, the environment and the flags as the other commands
do, and reports every problem with its place and how to mend it. It asks no
server and changes nothing. Exit code 3 means that there are problems.`,
		Example: "  rouse config check --config /etc/rouse/rouse.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := load()
			if err == nil {
				err = c.checkTheme()
			}
			if err != nil {
				return err
			}
			file := c.File
			if file == "" {
				file = "no file, defaults"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: good, %s\n", file, several(len(c.Workloads), "workload"))
			return err
		},
	}
}

// checkTheme reports a theme that the built-in page would stand in for. It is
// no reason not to start.
func (c *Config) checkTheme() error {
	var p problems
	if file := c.WaitingPage.Template; file != "" {
		if err := waitpage.CheckTheme(file); err != nil {
			p.add(c.Origin("waiting_page.template"), "waiting_page.template: "+err.Error(),
				"correct it; until then the built-in page stands in for it")
		}
	}
	return p.err()
}

func newConfigShow(load func() (Config, error)) *cobra.Command {
	var origin bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the configuration in force, each key explained",
		Long: `Show prints every setting with the value that is in force, as YAML that can
be used as a config file. Passwords are blotted out. What is wrong with the
configuration is told on stderr afterwards.`,
		Example: "  rouse config show --origin",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, loadErr := load()
			if err := printConfig(cmd, &c, origin); err != nil {
				return err
			}
			return loadErr
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "tell where each value came from instead of what it means")
	return cmd
}

func printConfig(cmd *cobra.Command, c *Config, origin bool) error {
	if output := cmd.Flag("output"); output == nil || output.Value.String() != "json" {
		return c.show(cmd.OutOrStdout(), origin)
	}
	tree := c.view()
	if origin {
		origins := map[string]string{}
		for _, name := range configTable(c).Names() {
			origins[name] = c.Origin(name)
		}
		tree["origins"] = origins
	}
	return writeJSON(cmd.OutOrStdout(), tree)
}

func newConfigSchema() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the config file",
		Long:    "Schema prints what editors and linters need to complete and check a config file.",
		Example: "  rouse config schema >rouse.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeJSON(cmd.OutOrStdout(), configSchema())
		},
	}
}

// configSchema is the JSON Schema of the whole file.
func configSchema() map[string]any {
	c := defaultConfig()
	schema := configTable(&c).Schema()
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "Configuration of Rouse"
	return schema
}

// entryTable is the table of an entry that nothing reads.
func entryTable() strict.Table {
	w := catalog.BuiltIn()
	return catalog.EntryTable(&catalog.Entry{}, &workload.Process{}, &w)
}

func writeJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
