package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/burst"
	"github.com/rouse-dev/rouse/loadtest/report"
	"github.com/rouse-dev/rouse/loadtest/trial"
)

func newReport() *cobra.Command {
	return &cobra.Command{
		Use:   "report DIR",
		Short: "Make a page of the results in a directory",
		Long: `Write report.html into a directory that run, compare, coldstart or burst has
filled, or into one of several such directories. Its figures are computed again
from the files; the exit code is 1 if the result is not valid, as the page then
says as well.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			verdict, err := report.Write(args[0])
			if err != nil {
				return failed(err)
			}
			fmt.Println(filepath.Join(args[0], report.Name))
			return failed(verdict.Err())
		},
	}
}

func newVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Compute the figures of a result again from its files",
		Long: `Compare every figure of the summaries in a directory with what the histograms,
logs and trials beside them come to. The exit code is 1 if one differs.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			check, err := report.Verify(args[0])
			if err == nil {
				err = check.Err()
			}
			if err == nil {
				fmt.Printf("%d figures agree with their files\n", check.Figures)
			}
			return failed(err)
		},
	}
}

// writePage leaves the report of one load, and gives its verdict back.
func writePage(dir string, origin report.Origin, verdict error) error {
	if verdict != nil {
		origin.Problem = verdict.Error()
	}
	err := origin.Save(dir)
	if err == nil {
		_, err = report.Write(dir)
	}
	return errors.Join(verdict, err)
}

// saveColdstarts adds the page to a summary that is saved.
func saveColdstarts(dir string) error {
	_, err := report.Write(dir)
	return err
}

// saveBurst leaves the files of a burst.
func saveBurst(dir, url string, result *burst.Result, verdict error) error {
	if err := result.Save(dir); err != nil {
		return errors.Join(verdict, err)
	}
	return writePage(dir, report.Origin{
		Schema: report.BurstSchema, URL: url, Manifest: trial.NewManifest(version, os.Args),
	}, verdict)
}
