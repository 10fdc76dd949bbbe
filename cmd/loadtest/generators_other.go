//go:build !linux

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rouse-dev/rouse/loadtest/burst"
)

// generators are the commands that need Linux.
func generators() []*cobra.Command { return nil }

// saveColdstarts: the page needs Linux as well.
func saveColdstarts(string) error { return nil }

// saveBurst leaves the result alone.
func saveBurst(dir, _ string, result *burst.Result, verdict error) error {
	return errors.Join(verdict, result.Save(dir))
}
